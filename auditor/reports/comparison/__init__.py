"""Series of scores side by side: two audits, models, prompts or judges."""
