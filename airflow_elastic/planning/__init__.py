"""What to do, as pure functions of a snapshot: no clock, no randomness, no I/O, no Airflow, no Kubernetes.

``planner.plan`` is the way in. A plan is made in these steps, one module each:

1. ``skyline``: when each unfinished task of a run is expected to start and end (trigger rules: ``outcome``).
2. ``demand``: all runs and pods as one table of intervals that want a node; ``validate`` takes out the impossible.
3. ``packing``: the intervals are placed on nodes over time; the result is the nodes needed from now on.
4. ``sizing`` and ``release``: how many nodes each pool should have, and which ones go.
5. ``slots``: what fits on usable nodes, for each Airflow pool.
6. ``reservations``: who owns the warm capacity, along the table of transitions.

``profile`` keeps what tasks and boots took so far.
"""
