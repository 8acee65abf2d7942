"""Agreement of models with people: correlations, errors, regions, baselines and rankings."""
