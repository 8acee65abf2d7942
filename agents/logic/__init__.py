"""The probe `logic`: pairwise comparisons of the items of a set."""
