"""auditor.storage."""

if __name__ != "auditor.storage":
    raise ImportError(f"import auditor.storage, not {__name__}")
