"""What the product and KubernetesPodOperator rely on, as tests that run on the embedded and on the real cluster.

The real one is right by definition: a test that fails there is a wrong test, one that fails on the embedded cluster
alone is a mistake of the embedded cluster (all that were found are listed in docs/conformance.md).
"""
