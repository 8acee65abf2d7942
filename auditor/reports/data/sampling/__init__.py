"""Sampling experiment: accuracy, stability and cost at several settings of the direct probe."""
