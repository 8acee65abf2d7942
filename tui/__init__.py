"""The review in the terminal, and its twin in plain text."""

if __name__ != "auditor.tui":
    raise ImportError(f"import auditor.tui, not {__name__}")
