"""Experiments on a finished audit: whether another choice would change its results; one module for each."""
