"""Experiments on a finished audit: whether other settings would have given other results."""
