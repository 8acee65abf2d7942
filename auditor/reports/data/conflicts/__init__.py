"""Conflicts: contradictions between models, or between methods, and how they were resolved."""
