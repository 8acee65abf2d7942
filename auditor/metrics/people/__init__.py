"""Models against people: errors, concordance, tiers of models, structure, and what fewer questions change."""
