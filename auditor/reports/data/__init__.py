"""What was measured, as pydantic models: the JSON report. No sentences, no markup."""
