"""The cluster's edge: client, watches, mapping to the model, placement of pods. No planning here, no Airflow database.

``placement`` and ``mapping`` are pure and import no Kubernetes client; ``client`` and ``watch`` import it lazily.
"""
