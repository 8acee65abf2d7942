"""Documented wire formats of providers, and what an audit makes of each of them."""
