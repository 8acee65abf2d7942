"""Convert published data sets to files of items, people's comparisons, questions and rules of thumb."""
