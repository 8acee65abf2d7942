"""Estimates of an audit's calls, tokens and cost before it is run."""
