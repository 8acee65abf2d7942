"""Of what was planned, how much is there, and why the rest is not."""
