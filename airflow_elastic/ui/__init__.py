"""The page in Airflow's UI: an authorised FastAPI application over what the controller published.

It decides nothing and talks to no cluster: it reads the status document and the decisions from our own tables.
``published`` and ``visibility`` need no FastAPI, so that the commands use them too.
"""
