"""Validity of each consistency measure against people's labels and published judgements of pairs of answers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from auditor.domain.labels import EQUIVALENCE
from auditor.errors import UsageError
from auditor.metrics.intervals.correlation import correlate_over_units, correlation_difference_over_units
from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.unit_means import mean_over_units
from auditor.metrics.judges.agreement import count_ratings, fleiss_kappa, krippendorff_alpha
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.probe import ANSWER_PAIR
from auditor.probes.semantic.records import QuestionScore, SemanticScoringSettings
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.report_model import P_VALUE_KEYS, R_KEYS, FlatRow, PublishedAs, ReportModel, p_column
from auditor.reports.document import Column
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.labels import load_label_frame, load_label_sample, load_labels
from auditor.storage.records import load_records

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


MAX_ENTROPY = float(np.log2(3))
"""Entropy in bits of as many Y as N and NA."""


class HumanCorrelationRow(FlatRow):
    """Pearson's r of a measure with people, over models and questions; the interval is over other questions."""

    text: str
    metric: Annotated[str, Column("Measure")]
    r: Annotated[Tested, PublishedAs(R_KEYS | P_VALUE_KEYS), Column("r with people", emphasis=True), p_column()]
    """Correlation with the share of judgements that find answers alike; the adjusted p-value is for all measures."""
    r_entropy: Annotated[float | None, Column("r with entropy")]
    """Correlation with the entropy of the judgements: questions on which people disagree should be less consistent."""
    r_pair_entropy: Annotated[
        Tested | None,
        Column("r with entropy over pairs"),
        p_column("p of r with entropy over pairs (adjusted)", path="r_pair_entropy.adjusted_p_value"),
    ] = None
    """Correlation with the entropy over pairs: where people find many pairs alike, answers should be consistent. A
    question without a pair that people find alike is left out, since it has no distribution. The adjusted p-value is
    for all measures."""


class CorrelationDifferenceRow(FlatRow):
    """Difference in r with people between the audit's score and another measure; interval and test over questions."""

    text: str
    than_text: str
    than_metric: Annotated[str, Column("Audit’s measure")]
    metric: Annotated[str, Column("Other measure")]
    difference: Annotated[
        Tested,
        PublishedAs(R_KEYS | {"value": "difference"} | P_VALUE_KEYS),
        Column("Difference in r", style="signed", emphasis=True),
        p_column(),
    ]
    """r of the audit's score minus r of the other measure. The adjusted p-value is for all rows."""


class HumanJudgementReport(ReportModel):
    """Measures of consistency against people's judgements on pairs of answers."""

    questions: int
    """Questions that people judged, of one model or several."""
    judgements: int
    """Judgements of the audit's answers; all figures are of these."""
    left_out: dict[LeftOutReason, int] = Field(default_factory=dict)
    """Further judgements in the file, which are of another model, question or wording than the audit's, by reason."""
    alpha: Estimate
    """Nominal Krippendorff's alpha of the raters over pairs; NA counts as no judgement."""
    kappa: Estimate | None = None
    """Fleiss' kappa of the raters over pairs, as SGE's authors report it; NA counts as no judgement."""
    entropy: Estimate
    """Mean entropy of the judgements on a question, in bits."""
    pair_entropy: Estimate | None = None
    """Mean entropy over the pairs of a question, in bits, as the SaGE paper words it: the labels 1 and 0 of the pairs,
    divided by their sum, are one distribution a question. NA is dropped; n counts the pairs of model and question with
    a pair that people find alike, since others have no distribution."""
    correlations: list[HumanCorrelationRow]
    differences: list[CorrelationDifferenceRow]


def compare_with_human_judgements(
    db: Database, audit_name: str, labels: Sequence[PairLabel], file: Path | None
) -> HumanJudgementReport:
    """Correlate each consistency measure with human judgements of pairs of answers; calls no model.

    Args:
        audit_name: an audit with semantic scores, run or imported.
        labels: whether the answers to two wordings say the same; those of other answers are left out.
        file: that they were read from, for the error; None for those of `auditor review`.

    Raises:
        UsageError: the audit has no semantic scores, or none for the judged models, questions and wordings.
    """
    audit = audits.get_audit(db, audit_name)
    facts = answer_rows.load_facts(db, audit.id)
    if facts is None:
        raise UsageError(
            f"the audit '{audit_name}' has no scores of consistency under paraphrase.",
            "Run an audit with `semantic = {}` under [probes], or import answers: auditor import answers.",
        )
    report = measure_human_judgements(db, audit.id, facts, labels)
    if report is None:
        raise make_no_label_error(file, audit_name)
    return report


def measure_human_judgements(
    db: Database, audit_id: int, facts: SemanticScoringSettings, labels: Sequence[PairLabel]
) -> HumanJudgementReport | None:
    """Correlate each consistency measure with labels; None if no label is of the audit's answers."""
    scores = load_records(db, audit_id, QuestionScore)
    wordings = {
        question: {wording.number for wording in group if wording.number}
        for question, group in answer_rows.load_wordings(db, audit_id).items()
    }
    selected = select_labels(labels, {(score.model, score.question) for score in scores}, wordings)
    return _build_report(selected, scores, (facts.measured, facts.variant)) if selected.by_unit else None


def _build_report(
    selected: AuditLabels, scores: Sequence[QuestionScore], main_key: tuple[str, str]
) -> HumanJudgementReport:
    """Compare an audit's scores with the labels of its answers.

    Args:
        main_key: text and metric of the audit's own measure, with which the others are compared.
    """
    units, groups = zip(*selected.by_unit.items(), strict=True)
    used = [label for group in groups for label in group]
    questions = [question for _, question in units]
    consistent_shares, entropy, pair_entropy = (
        np.array([summarize(group) for group in groups])
        for summarize in (share_judged_consistent, label_entropy, entropy_over_pairs)
    )
    weights = np.array([count_represented_pairs(group) for group in groups])
    columns = _arrange_scores(scores, units)
    correlations = adjust_rows(
        (
            _correlation_row(key, values, consistent_shares, entropy, pair_entropy, questions, weights)
            for key, values in sorted(columns.items())
        ),
        "r",
        "agreement of measures with people",
    )
    return HumanJudgementReport(
        questions=len(set(questions)),
        judgements=len(used),
        left_out=selected.left_out,
        alpha=estimate_alpha(used),
        kappa=estimate_kappa(used),
        entropy=mean_over_units(
            entropy, {"question": questions}, (0.0, MAX_ENTROPY), empty_reason="there are no judgements"
        ),
        pair_entropy=mean_over_units(
            pair_entropy,
            {"question": questions},
            (0.0, _max_pair_entropy(groups)),
            empty_reason="people find no pair alike",
        ),
        correlations=adjust_rows(
            correlations, "r_pair_entropy", "correlation of measures with the entropy over people's pairs"
        ),
        differences=adjust_rows(
            (
                _correlation_difference(main_key, key, columns[main_key], values, consistent_shares, questions, weights)
                for key, values in sorted(columns.items())
                if key != main_key and main_key in columns
            ),
            "difference",
            "differences between measures in agreement with people",
        ),
    )


def _max_pair_entropy(groups: Sequence[Sequence[PairLabel]]) -> float:
    """Largest entropy over pairs, in bits: that of the group with most pairs, if all are alike; at least 1."""
    most_pairs = max(len({(label.left, label.right) for label in group}) for group in groups)
    return max(1.0, float(np.log2(most_pairs)))


def _arrange_scores(scores: Sequence[QuestionScore], units: Sequence[Unit]) -> dict[tuple[str, str], Floats]:
    """Scores by scored text and metric, shape (units,) each; nan where there is none."""
    columns: dict[tuple[str, str], Floats] = {}
    unit_index = {unit: i for i, unit in enumerate(units)}
    for score in scores:
        is_of_all_wordings = "@" not in score.metric and not score.metric.startswith("translations:")
        if (score.model, score.question) in unit_index and score.value is not None and is_of_all_wordings:
            column = columns.setdefault((score.text, score.metric), np.full(len(units), np.nan))
            column[unit_index[score.model, score.question]] = score.value
    return columns


def _correlation_row(
    metric_key: tuple[str, str],
    values: Floats,
    human_scores: Floats,
    entropy: Floats,
    pair_entropy: Floats,
    questions: Sequence[str],
    weights: Floats,
) -> HumanCorrelationRow:
    """Correlate one measure with the share of consistent judgements, and with the entropy of the judgements.

    Args:
        metric_key: the scored text, and the measure.
        values, human_scores, entropy, pair_entropy: one value per model and question: of the measure, the share judged
            consistent, and the entropies of its judgements and over its pairs in bits.
        questions: of these values.
        weights: number of pairs that each value stands for.
    """
    sides = ("the people's labels", "the measure")
    return HumanCorrelationRow(
        text=metric_key[0],
        metric=metric_key[1],
        r=correlate_over_units(human_scores, values, {"question": questions}, sides, weights=weights),
        r_entropy=correlate_over_units(entropy, values, {"question": questions}, weights=weights).value,
        r_pair_entropy=correlate_over_units(pair_entropy, values, {"question": questions}, sides, weights=weights),
    )


def _correlation_difference(
    main_key: tuple[str, str],
    metric_key: tuple[str, str],
    first: Floats,
    second: Floats,
    human_scores: Floats,
    questions: Sequence[str],
    weights: Floats,
) -> CorrelationDifferenceRow:
    """Difference between the main measure's correlation with people and another measure's.

    Args:
        main_key, metric_key: scored text and measure of the main measure and of the other.
        first, second: values of the main measure and of the other, one per model and question.
        human_scores: share judged consistent, one per model and question.
        questions: of these values.
        weights: number of pairs that each value stands for.
    """
    return CorrelationDifferenceRow(
        text=metric_key[0],
        metric=metric_key[1],
        than_text=main_key[0],
        than_metric=main_key[1],
        difference=correlation_difference_over_units(
            human_scores, first, second, {"question": questions}, weights=weights
        ),
    )
