"""What judges' verdicts are worth, measured on a random sample of traces that people labelled."""
