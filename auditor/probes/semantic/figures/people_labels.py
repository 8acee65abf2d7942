"""People's labels of pairs of answers: those of an audit, grouped by model and question, and their summaries."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.domain.labels import EQUIVALENCE
from auditor.errors import UsageError
from auditor.metrics.agreement import count_ratings, fleiss_kappa, krippendorff_alpha
from auditor.metrics.estimate import Estimate
from auditor.probes.semantic.probe import ANSWER_PAIR
from auditor.storage.database import Database
from auditor.storage.label_draws import load_label_frame, load_label_sample
from auditor.storage.labels import load_labels

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
        weight: number of pairs of the audit that the pair stands for, if it is one of a random sample.
    """

    rater: str
    model: str
    question: str
    left: int
    right: int
    score: float
    weight: float = 1.0


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


def load_sampled_labels(db: Database, audit_id: int) -> list[PairLabel]:
    """Load the labels of `auditor review --sample --kind answer_pair` on pairs of answers to two wordings.

    They are weighted by the inverse of their probability: the planned one times the labelled share of the stratum's
    sample, since labelling may stop early. Empty without labels, and if the audit's pairs have changed since.
    """
    frame = load_label_frame(db, audit_id, ANSWER_PAIR)
    labels = load_labels(db, audit_id, ANSWER_PAIR)
    if frame is None or frame.is_outdated or not labels:
        return []
    sample = {sampled.unit: sampled for sampled in load_label_sample(db, audit_id, ANSWER_PAIR)}
    labelled = {label.unit for label in labels if label.unit in sample}
    n_sampled = Counter(sampled.stratum for sampled in sample.values())
    n_labelled = Counter(sample[unit].stratum for unit in labelled)
    pair_labels = []
    for label in labels:
        purpose, model, question, left, right = label.unit.parts
        if purpose != EQUIVALENCE or label.unit not in labelled:
            continue
        sampled = sample[label.unit]
        rate = sampled.inclusion * n_labelled[sampled.stratum] / n_sampled[sampled.stratum]
        score = {"yes": 1.0, "no": 0.0}.get(label.value, float("nan"))
        pair_labels.append(PairLabel(label.rater, model, question, int(left), int(right), score, 1 / rate))
    return pair_labels


def make_no_label_error(file: Path | None, audit_name: str) -> UsageError:
    """Build the error that a file, or else the sample of an audit, has no label of its answers."""
    if file is None:
        return UsageError(
            f"the audit '{audit_name}' has no labels on pairs of answers to two wordings.",
            f"Label a random sample with `auditor review {shlex.quote(audit_name)} --sample 200 --kind answer_pair`, "
            "or name a FILE.",
        )
    return UsageError(
        f"{file}: no row is about a model, question and wordings of the audit '{audit_name}'.",
        "Check the columns model, question_id, left and right. Wordings are numbered from 1.",
    )


def share_judged_consistent(labels: Sequence[PairLabel]) -> float:
    """Share of Y among the labels that are Y or N, by the weights of their pairs; nan if all are NA."""
    decided = [(label.score, label.weight) for label in labels if not np.isnan(label.score)]
    if not decided:
        return float("nan")
    scores, weights = zip(*decided, strict=True)
    return float(np.average(scores, weights=weights))


def count_represented_pairs(labels: Sequence[PairLabel]) -> float:
    """Number of pairs that the labelled pairs of a model and question stand for; 1 if they are no random sample."""
    weights = {(label.left, label.right): label.weight for label in labels}
    return 1.0 if all(weight == 1 for weight in weights.values()) else sum(weights.values())


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
    table, questions = _tabulate_ratings(labels)
    return _to_estimate(krippendorff_alpha(table, units={"question": questions}))


def estimate_kappa(labels: Sequence[PairLabel]) -> Estimate:
    """Fleiss' kappa of the raters over the labelled pairs, with an interval over questions; NA is no rating."""
    table, questions = _tabulate_ratings(labels)
    return _to_estimate(fleiss_kappa(count_ratings(table), units={"question": questions}))


def _tabulate_ratings(labels: Sequence[PairLabel]) -> tuple[Floats, list[str]]:
    """Ratings, shape (raters, pairs), nan where there is none, and the question of each pair."""
    pairs = {pair: i for i, pair in enumerate(sorted({label[1:5] for label in labels}))}
    raters = {rater: i for i, rater in enumerate(sorted({label.rater for label in labels}))}
    table = np.full((len(raters), len(pairs)), np.nan)
    for label in labels:
        table[raters[label.rater], pairs[label[1:5]]] = label.score
    return table, [question for _, question, _, _ in pairs]


def _to_estimate(agreement: Estimate) -> Estimate:
    """An agreement without the fields that only it has."""
    return Estimate(
        agreement.value, agreement.n, agreement.ci_low, agreement.ci_high, agreement.reason, agreement.resampled
    )
