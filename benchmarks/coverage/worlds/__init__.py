"""Simulated audits with known truth, written apart from the estimators: nothing here imports `auditor`."""
