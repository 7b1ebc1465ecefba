"""The loop: observe → plan → act, each second or so and on each change of the cluster.

The only room in which the adapters meet the planner. It decides nothing itself; ``ports`` names what it needs of
others, so that tests and third parties can put something else there.
"""
