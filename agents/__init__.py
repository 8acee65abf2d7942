"""auditor.agents."""

if __name__ != "auditor.agents":
    raise ImportError(f"import auditor.agents, not {__name__}")
