"""Pure data: the words of the product as frozen dataclasses.

Nothing here knows a clock, randomness, I/O, Airflow or Kubernetes. Times are Unix seconds (``float``, UTC), durations
are seconds, prices are per node-hour in the admin's currency, amounts of resources are integers (see ``resources``).
"""
