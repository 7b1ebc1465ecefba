"""Triggers: what watches pods in the triggerer."""
