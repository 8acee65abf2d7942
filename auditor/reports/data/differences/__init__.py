"""Compare series of scores: two audits, models, prompts or judges."""
