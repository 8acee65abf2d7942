"""Calls, tokens and cost of an audit, before anything is spent."""
