"""People's labels of pairs of answers: those of an audit, grouped by model and question, and their summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.errors import UsageError
from auditor.metrics.agreement import krippendorff_alpha
from auditor.metrics.estimate import Estimate

Floats = NDArray[np.float64]
LeftOutReason = Literal["other_model", "other_question", "other_wording"]
"""What of a label the audit does not have: its model; its question; a wording of it."""
Unit: TypeAlias = tuple[str, str]
"""A model and a question: the model's answers to all wordings of it."""


class PairLabel(NamedTuple):
    """What a person says about a model's answers to two wordings of a question.

    Attributes:
        left, right: numbers of the wordings, from 1; `left` is the lower one.
        score: 1 if the answers say the same, 0 if not, nan if the person cannot say.
    """

    rater: str
    model: str
    question: str
    left: int
    right: int
    score: float


class AuditLabels(NamedTuple):
    """The labels that are of an audit.

    Attributes:
        by_unit: labels by model and question, in sorted order.
        left_out: number of other labels, by reason.
    """

    by_unit: dict[Unit, list[PairLabel]]
    left_out: dict[LeftOutReason, int]


def select_labels(
    labels: Iterable[PairLabel], units: Collection[Unit], wordings: Mapping[str, Collection[int]]
) -> AuditLabels:
    """Group the labels of an audit's answers by model and question, and count the others.

    Args:
        units: models and questions of the audit.
        wordings: numbers of the wordings by question.
    """
    models = {model for model, _ in units}
    by_unit: dict[Unit, list[PairLabel]] = {}
    left_out: Counter[LeftOutReason] = Counter()
    for label in labels:
        if label.model not in models:
            left_out["other_model"] += 1
        elif (label.model, label.question) not in units:
            left_out["other_question"] += 1
        elif not {label.left, label.right} <= set(wordings.get(label.question, ())):
            left_out["other_wording"] += 1
        else:
            by_unit.setdefault((label.model, label.question), []).append(label)
    return AuditLabels(dict(sorted(by_unit.items())), dict(left_out))


def make_no_label_error(file: Path, audit_name: str) -> UsageError:
    """Build the error that a file has no label of an audit, for the caller to raise."""
    return UsageError(
        f"{file}: no row is about a model, question and wordings of the audit '{audit_name}'.",
        "Check the columns model, question_id, left and right. Wordings are numbered from 1.",
    )


def share_judged_consistent(labels: Sequence[PairLabel]) -> float:
    """Share of Y among the labels that are Y or N; nan if all are NA."""
    decided = [label.score for label in labels if not np.isnan(label.score)]
    return float(np.mean(decided)) if decided else float("nan")


def label_entropy(labels: Sequence[PairLabel]) -> float:
    """Entropy in bits over Y, N and NA: 0 where all labels are the same."""
    counts = Counter("NA" if np.isnan(label.score) else label.score for label in labels)
    return _entropy(np.array(list(counts.values()), dtype=np.float64))


def entropy_over_pairs(labels: Sequence[PairLabel]) -> float:
    """Entropy in bits over the pairs of a model and question, each with its share of Y; nan without a Y.

    The SaGE paper (section 5.2) maps Y to 1 and N to 0 and converts this into a probability distribution for each
    question. Its program has no code for it; here the values are divided by their sum. NA is dropped.
    """
    scores_by_pair: dict[tuple[int, int], list[float]] = {}
    for label in labels:
        if not np.isnan(label.score):
            scores_by_pair.setdefault((label.left, label.right), []).append(label.score)
    means = np.array([np.mean(scores) for scores in scores_by_pair.values()])
    return _entropy(means) if means.any() else float("nan")


def _entropy(weights: Floats) -> float:
    """Entropy in bits of weights from 0, divided by their sum."""
    shares = weights[weights > 0] / weights.sum()
    return float(-(shares * np.log2(shares)).sum()) + 0.0  # + 0.0 turns -0.0 into 0.0


def estimate_alpha(labels: Sequence[PairLabel]) -> Estimate:
    """Krippendorff's alpha of the raters over the labelled pairs, with an interval over questions; NA is no rating."""
    pairs = {pair: i for i, pair in enumerate(sorted({label[1:5] for label in labels}))}
    raters = {rater: i for i, rater in enumerate(sorted({label.rater for label in labels}))}
    table = np.full((len(raters), len(pairs)), np.nan)
    for label in labels:
        table[raters[label.rater], pairs[label[1:5]]] = label.score
    alpha = krippendorff_alpha(table, units={"question": [question for _, question, _, _ in pairs]})
    return Estimate(alpha.value, alpha.n, alpha.ci_low, alpha.ci_high, alpha.reason, alpha.resampled)
