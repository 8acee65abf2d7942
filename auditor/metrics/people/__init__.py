"""Models against people: errors, concordance, correlation, tiers of models, structure, and what fewer questions change."""
