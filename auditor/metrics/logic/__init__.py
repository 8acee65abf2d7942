"""Comparisons of items: consistency, transitivity, cycles, rankings, and PairS."""
