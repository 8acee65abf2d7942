"""The audit as a LangGraph graph: a node decides and routes; arithmetic is in metrics, I/O in models and storage."""

if __name__ != "auditor.agents":
    raise ImportError(f"import auditor.agents, not {__name__}")
