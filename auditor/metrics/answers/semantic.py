"""Consistency of answers to one question: semantic graph entropy, alternative measures, and quality of paraphrases."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import LOWER_QUANTILE, UPPER_QUANTILE, NullDistribution
from auditor.metrics.intervals.items import AveragedEstimate, Averaging, CaseCounts, averaged_share

EntropyVariant = Literal["sage", "sge"]
Floats = NDArray[np.float64]


class SizedScores(NamedTuple):
    """Scores of questions, nan where there is none, and the number of usable texts of each; shape (questions,) each."""

    values: Floats
    sizes: Floats


def semantic_graph_entropy(embeddings: ArrayLike, variant: EntropyVariant = "sage", alpha: float = 10.0) -> float:
    """Consistency of the answers to one question, from the graph of their similarities.

    With cosines s_ij, `sage` (SaGE, LREC-COLING 2024): f_i = sum over j != i of max(s_ij, 0), p_i = f_i^alpha / sum of
    f^alpha, H = -sum of p log p, the value is mean(s_ij) * H / log n. Where no cosine is positive, p is taken as
    uniform, which leaves the mean cosine. `sge` (arXiv 2402.01719): with d_ij = 1 - s_ij, p_i = sum over j of d_ij /
    the sum of d, the value is 1 - mean(d_ij) * H / log n; it does not use alpha.

    Equation 6 of the SaGE paper, as printed, has no minus, so that n identical answers score 1 + n / (n - 1) by
    equation 7; the form here gives them 1. alpha = 10 equals the released program of its authors for answers with
    different texts; alpha = 1 is the text of the paper, but for j = i, which its equations 4 and 5 include.

    Args:
        embeddings: shape (n, d), one row an answer (or its rule of thumb); lengths do not matter.
        variant: "sage" or "sge".
        alpha: power that sharpens the weights, > 0.

    Returns:
        Higher is more consistent; 1 for answers with the same direction. `sage` is 0 for orthogonal answers and
        negative only if the mean cosine is; `sge` is at least -1. nan with fewer than two answers.

    Raises:
        ValueError: another shape, an unknown variant, or alpha is not above 0.
    """
    rows = np.asarray(embeddings, dtype=float)
    if rows.ndim != 2:
        raise ValueError(f"embeddings must have the shape (n, d), but got {rows.shape}")
    return float(entropy_of_similarities(cosine_similarities(rows), variant, alpha))


def semantic_graph_entropies(
    embeddings: NDArray[np.floating], variant: EntropyVariant = "sage", alpha: float = 10.0, block: int = 64
) -> Floats:
    """`semantic_graph_entropy` of many questions at once, `block` of them in memory at a time.

    Args:
        embeddings: shape (q, n, d); a memory-mapped file is read block by block. Pad with nan where a question has
            fewer answers than n.
        variant, alpha: as in `semantic_graph_entropy`.
        block: questions computed together.

    Returns:
        Shape (q,).

    Raises:
        ValueError: as `semantic_graph_entropy`.
    """
    if embeddings.ndim != 3:
        raise ValueError(f"embeddings must have the shape (q, n, d), but got {embeddings.shape}")
    values = np.empty(len(embeddings))
    for start in range(0, len(embeddings), block):
        block_slice = slice(start, start + block)
        values[block_slice] = entropy_of_similarities(cosine_similarities(embeddings[block_slice]), variant, alpha)
    return values


def cosine_similarities(embeddings: ArrayLike) -> Floats:
    """Cosines between the rows: (..., n, d) to (..., n, n), clipped to [-1, 1]; nan at rows without a direction."""
    rows = np.asarray(embeddings, dtype=float)
    products: Floats = rows @ rows.swapaxes(-1, -2)
    # Normalised after the product: n x n numbers are far fewer than n x d.
    squares = np.diagonal(products, axis1=-2, axis2=-1)
    lengths = np.sqrt(np.where(squares > 0, squares, np.nan))
    cosines: Floats = np.clip(products / (lengths[..., :, None] * lengths[..., None, :]), -1.0, 1.0)
    return cosines


def entropy_of_similarities(similarities: ArrayLike, variant: EntropyVariant = "sage", alpha: float = 10.0) -> Floats:
    """`semantic_graph_entropy` from similarities, so that mixes (of answers and rules of thumb) can be scored.

    Args:
        similarities: shape (..., n, n), symmetric, in [-1, 1]; nan on the diagonal marks a missing answer.
        variant, alpha: as in `semantic_graph_entropy`.

    Returns:
        Shape (...).

    Raises:
        ValueError: as `semantic_graph_entropy`.
    """
    if variant not in ("sage", "sge"):
        raise ValueError(f"variant must be 'sage' or 'sge', but got {variant!r}")
    if not alpha > 0:
        raise ValueError(f"alpha must be above 0, but got {alpha!r}")
    values = np.asarray(similarities, dtype=float)
    if values.ndim < 2 or values.shape[-1] != values.shape[-2]:
        raise ValueError(f"similarities must have the shape (..., n, n), but got {values.shape}")
    present = ~np.isnan(np.diagonal(values, axis1=-2, axis2=-1))
    pairs = present[..., :, None] & present[..., None, :] & ~np.eye(values.shape[-1], dtype=bool)
    if variant == "sage":
        return _scaled_entropy(np.where(pairs, values, 0.0), present, alpha)
    return 1.0 - _scaled_entropy(np.where(pairs, np.maximum(1.0 - values, 0.0), 0.0), present, 1.0)


def _scaled_entropy(edges: Floats, present: NDArray[np.bool_], alpha: float) -> Floats:
    """Mean edge times the entropy of the nodes' shares of the edges, divided by its maximum log n."""
    n = present.sum(axis=-1)
    weight = np.maximum(edges, 0.0).sum(axis=-1)
    largest = weight.max(axis=-1, keepdims=True, initial=0.0)
    # Scaled before the power, which would underflow; if all weights are 0, nodes have equal weights.
    weight = np.where(largest > 0, weight / np.where(largest > 0, largest, 1.0), present) ** alpha
    with np.errstate(divide="ignore", invalid="ignore"):
        p = weight / weight.sum(axis=-1, keepdims=True)
        entropy = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=-1)
        value = edges.sum(axis=(-1, -2)) / (n * (n - 1)) * entropy / np.log(n)
    return np.where(n >= 2, value, np.nan)


def shuffled_null(
    embeddings: NDArray[np.floating],
    variant: EntropyVariant = "sage",
    alpha: float = 10.0,
    *,
    shuffles: int = 20,
    seed: int = 0,
    lengths: ArrayLike | None = None,
    strata: int = 5,
) -> NullDistribution:
    """The mean score of groups of answers that come from different questions; groups are as large as the questions'.

    Args:
        embeddings: shape (q, n, d); nan for a missing answer.
        variant, alpha: as in `semantic_graph_entropy`.
        shuffles: number of shuffled data sets, drawn with `seed`.
        lengths: shape (q,), typical length of a question's answers: groups then mix only questions of similar length.
        strata: number of length classes; fewer if a class would have fewer than n questions.
    """
    q, n = embeddings.shape[:2]
    if q < max(n, 2) or n < 2:
        return NullDistribution(None, None, None, 0, q, f"too few questions to shuffle: {q}, with {n} answers each")
    order = np.arange(q) if lengths is None else np.argsort(np.asarray(lengths, dtype=float), kind="stable")
    length_classes = np.array_split(order, 1 if lengths is None else max(1, min(strata, q // n)))
    present = np.isfinite(embeddings).all(axis=2)
    rng = np.random.default_rng(seed)
    means = np.empty(shuffles)
    for shuffle in range(shuffles):
        sources = [_mix_answers(present, members, rng) for members in length_classes]
        questions, numbers, is_present = (np.concatenate(column) for column in zip(*sources, strict=True))
        scores = [
            semantic_graph_entropies(
                np.where(is_present[block, :, None], embeddings[questions[block], numbers[block]], np.nan),
                variant,
                alpha,
            )
            for block in (slice(start, start + 64) for start in range(0, len(questions), 64))
        ]
        all_scores = np.concatenate([np.empty(0), *scores])
        scored = all_scores[~np.isnan(all_scores)]
        means[shuffle] = scored.mean() if len(scored) else np.nan
    known = means[~np.isnan(means)]
    if not len(known):
        return NullDistribution(None, None, None, 0, q, "no group of shuffled answers has two of them")
    low, high = np.quantile(known, (LOWER_QUANTILE, UPPER_QUANTILE))
    return NullDistribution(float(known.mean()), float(low), float(high), len(known), q)


class _Sources(NamedTuple):
    """Where the answers of mixed groups are taken from, shape (groups, n) each.

    Attributes:
        questions, numbers: the question of an answer, and its number among those of that question.
        is_present: whether the group has this answer.
    """

    questions: NDArray[np.intp]
    numbers: NDArray[np.intp]
    is_present: NDArray[np.bool_]


def _mix_answers(present: NDArray[np.bool_], members: NDArray[np.intp], rng: np.random.Generator) -> _Sources:
    """Mix the answers of some questions into groups, none with two answers to one question.

    Groups have as many answers as the questions, since the score depends on their number.

    Args:
        present: shape (q, n), the usable answers of all questions.
    """
    n = present.shape[1]
    if present[members].all():
        questions = _mix_questions(members, n, rng)
        return _Sources(questions, np.broadcast_to(np.arange(n), questions.shape), np.ones(questions.shape, dtype=bool))
    sizes = present[members].sum(axis=1)
    usable = members[sizes > 0]
    sizes = np.minimum(sizes[sizes > 1], len(usable))
    mixed = _mix_questions(usable, min(n, len(usable)), rng)[: len(sizes)]
    questions = np.zeros((len(sizes), n), dtype=np.intp)
    questions[:, : mixed.shape[1]] = mixed
    # A random usable answer to each question.
    numbers = np.where(present[questions], rng.random((*questions.shape, n)), -1.0).argmax(axis=2)
    return _Sources(questions, numbers, np.arange(n) < sizes[:, None])


def _mix_questions(members: NDArray[np.intp], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The question that each answer is taken from, shape (members, n), without a question twice in a group."""
    size = len(members)
    offsets = rng.permutation(size)[:n]
    sources: NDArray[np.intp] = rng.permutation(members)[(np.arange(size)[:, None] + offsets) % size]
    return sources


def consistency_score(decisions: Iterable[float | None]) -> float:
    """Share of the judged pairs of one question's answers that the judge found consistent.

    Args:
        decisions: one per pair: True or 1 consistent, False or 0 not, None or nan where the judge failed.

    Returns:
        In [0, 1]; nan when no judgement is valid. See `consistency_of` for counts, and `estimate_consistency_score` for
        several questions.

    Raises:
        ValueError: another decision.
    """
    value = consistency_of(decisions).value
    return float("nan") if value is None else value


def consistency_of(decisions: Iterable[float | None]) -> CaseCounts:
    """Count the pairs of one question's answers: `hits` of `n` valid judgements, and `lost` (failed judgements)."""
    values = np.array([np.nan if decision is None else float(decision) for decision in decisions])
    valid = values[~np.isnan(values)]
    if not np.isin(valid, (0.0, 1.0)).all():
        raise ValueError(f"decisions must be 0, 1 or missing, but got {valid[~np.isin(valid, (0.0, 1.0))][0]!r}")
    return CaseCounts(float(valid.sum()), len(valid), lost=len(values) - len(valid))


def estimate_consistency_score(
    consistent: ArrayLike, judged: ArrayLike, questions: ArrayLike, averaged: Averaging
) -> AveragedEstimate:
    """The consistency score over questions, with an interval over other questions.

    Args:
        consistent, judged: shape (n,), the consistent pairs and the pairs with a valid judgement of each question.
        questions: shape (n,), their ids.
        averaged: `instances` is the mean over questions of each one's score; `pooled` divides by all judged pairs.

    Raises:
        ValueError: as `auditor.metrics.intervals.unit_means.share_over_units`.
    """
    return averaged_share(consistent, judged, {"question": questions}, averaged, empty_reason="no judgement is valid")


def pairwise_consistency(texts: Sequence[str], similarity: Callable[[str, str], float]) -> float:
    """Mean similarity over all pairs i < j, 2 / (n (n - 1)) * sum of similarity (Elazar et al., TACL 2021).

    Args:
        texts: the n answers to one question, in order.
        similarity: of two texts, on any scale; called once a pair, the earlier text first.

    Returns:
        On the scale of `similarity`; nan with fewer than two texts or where a similarity is nan.
    """
    values = [similarity(left, right) for left, right in combinations(texts, 2)]
    return float(np.mean(values)) if values else float("nan")


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
