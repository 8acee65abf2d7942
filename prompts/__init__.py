"""auditor.prompts."""

if __name__ != "auditor.prompts":
    raise ImportError(f"import auditor.prompts, not {__name__}")
