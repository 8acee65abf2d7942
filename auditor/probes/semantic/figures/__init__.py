"""Consistency under paraphrase."""
