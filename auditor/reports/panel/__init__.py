"""The judges: how far they agree, what they lean to, and what experiments on them found."""
