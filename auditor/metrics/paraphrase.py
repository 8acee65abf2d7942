"""Quality of a paraphrase: close in meaning, different in wording.

ParaScore (Shen et al., EMNLP 2022) without a reference: sim(X, C) + weight * DS(X, C), where DS increases with the edit
distance up to a cap, and is negative for a copy. Two differences from the paper: the similarity is a cosine of
sentence embeddings instead of BERTScore, and copies are rejected outright, since with the paper's weight a literal
copy would score 0.95.
"""

from __future__ import annotations

import unicodedata

DIVERGENCE_WEIGHT = 0.05
"""Weight of lexical divergence (the paper's omega)."""
MAX_COUNTED_DISTANCE = 0.35
"""Edit distance above which divergence no longer increases (the paper's gamma)."""
MIN_EDIT_DISTANCE = 0.2
"""A text closer than this to the question, or to an accepted paraphrase, is a copy of it."""


def edit_distance(left: str, right: str) -> float:
    """Levenshtein distance of two texts divided by the longer length, in [0, 1]; case and white space are ignored.

    >>> edit_distance("Kitten", "sitting")
    0.42857142857142855
    """
    a, b = normalize_text(left), normalize_text(right)
    if not a or not b:
        return float(a != b)
    # row[j]: edits that turn the first i letters of a into the first j letters of b.
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        previous_row, row = row, [i]
        for j, y in enumerate(b, start=1):
            row.append(min(previous_row[j] + 1, row[j - 1] + 1, previous_row[j - 1] + (x != y)))
    return row[-1] / max(len(a), len(b))


def normalize_text(text: str) -> str:
    """A text in lower case, with single spaces and without final punctuation, for comparison."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip("?!. ")


def lexical_divergence(distance: float, cap: float = MAX_COUNTED_DISTANCE) -> float:
    """How much the wording differs: from -1 for a copy to `cap` for an edit distance of `cap` or more.

    This is DS of ParaScore (equation 5).

    Args:
        distance: in [0, 1].
        cap: in (0, 1].
    """
    return cap if distance > cap else distance * (cap + 1) / cap - 1


def parascore(
    similarity: float, distance: float, *, weight: float = DIVERGENCE_WEIGHT, cap: float = MAX_COUNTED_DISTANCE
) -> float:
    """Quality of a paraphrase without a reference, at most 1 + weight * cap.

    Args:
        similarity: of question and paraphrase, in [-1, 1].
        distance: as `edit_distance`.
    """
    return similarity + weight * lexical_divergence(distance, cap)
