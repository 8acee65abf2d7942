"""Experiments on the design of an audit: which runs are made, and what each choice changes."""
