"""The audit as a LangGraph graph. Nodes coordinate; computations are in metrics, I/O is in models and storage."""

if __name__ != "auditor.agents":
    raise ImportError(f"import auditor.agents, not {__name__}")
