"""Simulator: the production planner, unchanged, over a simulated Airflow and a simulated cluster in simulated time.

``engine`` keeps the time, ``airflow`` runs DAGs, ``cluster`` boots nodes and packs pods, ``world`` ties them together.
``elastic`` drives the world by ``planning.planner.plan``; ``baselines`` and ``forecasters`` are the policies that it is
compared with, ``optimum`` what any policy could reach. ``workload`` and its sources (``traces``, ``generators``,
``history``) say what runs; ``compare`` and ``study`` run it and ``report`` shows it.
Nothing here reads a clock or global randomness: the same workload, settings and seed give the same figures.
"""
