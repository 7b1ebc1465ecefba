"""Operators: what DAG authors write. Thin: they state a task's capacity and place its pod, and decide nothing else."""
