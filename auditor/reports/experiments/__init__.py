"""Experiments on judges and consistency, and a page for each experiment."""
