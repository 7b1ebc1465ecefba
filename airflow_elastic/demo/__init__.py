"""The demo: an embedded cluster, a real Airflow and the example DAGs, all as processes in a temporary home.

May start processes, read the metadata DB (read-only, by plain SQL) and Airflow's REST API. Imports neither Airflow nor
the planner, the controller or the Kubernetes client: what it reports about them has to be seen from outside.
"""
