"""Import scores, traces, verdicts, answers, comparisons and published data sets that other programs produced."""
