"""auditor.tui."""

if __name__ != "auditor.tui":
    raise ImportError(f"import auditor.tui, not {__name__}")
