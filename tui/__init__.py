"""User interfaces for reviewing conflicts: the terminal app, and the plain-text interface."""

if __name__ != "auditor.tui":
    raise ImportError(f"import auditor.tui, not {__name__}")
