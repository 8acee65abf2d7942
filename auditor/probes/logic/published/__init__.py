"""The published data sets with items that people, or a model, ranked or compared."""
