"""Review of conflicts by people, without a user interface: what a rater may see, their decisions, and their evaluation.

The terminal app and the plain-text interface (`auditor.tui`) both use `session.ReviewSession`.
"""
