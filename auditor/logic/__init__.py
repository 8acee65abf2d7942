"""Uses of compared items: repair of contradicting comparisons, ranking, and training data."""
