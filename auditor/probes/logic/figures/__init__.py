"""Logical consistency of judges' preferences."""
