"""Imported comparisons of one judge and of people."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np

from auditor.probes.logic.comparison_imports import import_comparisons

NAMES = list("abcdefghijkl")


def import_recorded_comparisons(storage: str, folder: Path, noise: float, seed: int = 0) -> None:
    """Import the audit `judged`: a judge prefers what is earlier in the alphabet, and people always do.

    Args:
        noise: share of the judge's answers that are reversed.
    """
    rng = np.random.default_rng(seed)
    rows = ["judge,context,item_a,item_b,relation,decision,sample,paraphrase,people"]
    for a, b in permutations(NAMES, 2):
        right = (a < b) == (rng.random() >= noise)
        rows.append(f"j,c,{a},{b},standard,{'A' if right else 'B'},0,0,{'A' if a < b else 'B'}")
    file = folder / "x.csv"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    import_comparisons(file, audit="judged", storage=storage)
