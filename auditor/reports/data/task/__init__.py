"""Answers to a user-defined task."""
