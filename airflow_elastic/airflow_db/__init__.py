"""Adapter to Airflow's metadata database: demand is read here, pool slots and our own tables are written here.

Used by the controller, the CLI and the api-server only: a worker has no access to the database. Everything goes through
short transactions on connections of our own, never through a session of Airflow's.
"""
