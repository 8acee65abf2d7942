"""Answers to a task of one's own."""
