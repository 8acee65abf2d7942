"""What was measured elsewhere, brought in: scores, traces, verdicts, answers, comparisons, published data."""
