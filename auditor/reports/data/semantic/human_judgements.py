"""Validity of each consistency measure against human judgements of pairs of answers; no model is called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.errors import UsageError
from auditor.metrics.agreement import krippendorff_alpha
from auditor.metrics.clustered_correlation import correlate_over_units, correlation_difference_over_units
from auditor.metrics.estimate import Estimate, EstimateWithTest
from auditor.metrics.unit_means import mean_over_units
from auditor.reports.data.report_model import ReportModel
from auditor.storage import audits, semantic_results
from auditor.storage.database import Database

Floats = NDArray[np.float64]
MAX_ENTROPY = float(np.log2(3))
"""Entropy in bits of as many Y as N and NA."""
JudgementsByPair = dict[tuple[str, str, str, str, str], float]
"""1 for Y, 0 for N and nan for NA, by rater, model, question and the two wordings in sorted order."""


class HumanCorrelationRow(ReportModel):
    """Pearson's r of a measure with people, over models and questions; the interval is over other questions."""

    text: str
    metric: str
    n: int
    r: float | None
    """Correlation with the share of judgements that find two answers alike."""
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None
    r_entropy: float | None
    """Correlation with the entropy of the judgements: questions on which people disagree should be less consistent."""
    r_pair_entropy: EstimateWithTest | None = None
    """Correlation with the entropy over pairs: where people find many pairs alike, answers should be consistent. A
    question without a pair that people find alike is left out, since it has no distribution."""


class CorrelationDifferenceRow(ReportModel):
    """Difference in r with people between the audit's score and another measure; interval and test over questions."""

    text: str
    metric: str
    than_text: str
    than_metric: str
    difference: float | None
    """r of the audit's score minus r of the other measure."""
    p_value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    reason: str | None = None


class HumanJudgementReport(ReportModel):
    """Measures of consistency against people's judgements on pairs of answers."""

    questions: int
    """Pairs of model and question that people judged."""
    judgements: int
    alpha: Estimate
    """Nominal Krippendorff's alpha of the raters over pairs; NA counts as no judgement."""
    entropy: Estimate
    """Mean entropy of the judgements on a question, in bits."""
    pair_entropy: Estimate | None = None
    """Mean entropy over the pairs of a question, in bits, as the SaGE paper words it: the labels 1 and 0 of the pairs,
    divided by their sum, are one distribution a question. NA is dropped; n counts the pairs of model and question with
    a pair that people find alike, since others have no distribution."""
    correlations: list[HumanCorrelationRow]
    differences: list[CorrelationDifferenceRow]


def compare_with_human_judgements(
    db: Database, audit_name: str, judgements: JudgementsByPair, file: Path
) -> HumanJudgementReport:
    """Correlate each consistency measure with human judgements of pairs of answers; calls no model.

    Args:
        audit_name: an audit with semantic scores, run or imported.
        judgements: whether the answers to two wordings say the same.
        file: that they were read from, for the error.

    Raises:
        UsageError: the audit has no semantic scores, or none for the judged models and questions.
    """
    audit = audits.get_audit(db, audit_name)
    facts = semantic_results.load_facts(db, audit.id)
    stored = semantic_results.load_scores(db, audit.id)
    if facts is None:
        raise UsageError(
            f"the audit '{audit_name}' has no scores of consistency under paraphrase.",
            "Run an audit with `semantic = {}` under [probes], or import answers: auditor import answers.",
        )
    # A unit is one model's answers to one question. Judgements have the keys of `JudgementsByPair`.
    scored_units = {(score.model, score.question) for score in stored}
    units = sorted({(model, question) for _, model, question, _, _ in judgements} & scored_units)
    if not units:
        raise UsageError(
            f"{file}: no row is about a model and question of the audit '{audit_name}'.",
            "Check the columns model and question_id.",
        )
    labels = {
        unit: [judgement for (_, model, question, _, _), judgement in judgements.items() if (model, question) == unit]
        for unit in units
    }
    consistent_shares = np.array([_share_judged_consistent(labels[unit]) for unit in units])
    entropy = np.array([_judgement_entropy(labels[unit]) for unit in units])
    columns: dict[tuple[str, str], Floats] = {}  # by (scored text, measure): one value per unit, nan where none
    unit_index = {unit: i for i, unit in enumerate(units)}
    for score in stored:
        if (score.model, score.question) in unit_index and score.value is not None:
            column = columns.setdefault((score.text, score.metric), np.full(len(units), np.nan))
            column[unit_index[score.model, score.question]] = score.value
    pair_entropy = np.array([_entropy_over_pairs(judgements, unit) for unit in units])
    questions = [question for _, question in units]
    main_key = (facts.measured, facts.variant)  # the audit's own measure, with which the others are compared
    return HumanJudgementReport(
        questions=len(units),
        judgements=len(judgements),
        alpha=_krippendorff_estimate(judgements),
        entropy=mean_over_units(
            entropy, {"question": questions}, (0.0, MAX_ENTROPY), empty_reason="there are no judgements"
        ),
        pair_entropy=mean_over_units(
            pair_entropy,
            {"question": questions},
            (0.0, max(1.0, float(np.log2(len(judgements))))),
            empty_reason="people find no pair alike",
        ),
        correlations=[
            _correlation_row(key, values, consistent_shares, entropy, pair_entropy, questions)
            for key, values in sorted(columns.items())
        ],
        differences=[
            _correlation_difference(main_key, key, columns[main_key], values, consistent_shares, questions)
            for key, values in sorted(columns.items())
            if key != main_key and main_key in columns
        ],
    )


def _share_judged_consistent(labels: Sequence[float]) -> float:
    """Share of Y (1) among the judgements that are Y or N (0), without those of NA (nan); nan if all are NA."""
    decided = [label for label in labels if label == label]  # nan is not equal to itself
    return float(np.mean(decided)) if decided else float("nan")


def _judgement_entropy(labels: Sequence[float]) -> float:
    """Entropy in bits over Y, N and NA: 0 where all judgements are the same."""
    counts = np.array(
        [
            sum(label == 1 for label in labels),
            sum(label == 0 for label in labels),
            sum(label != label for label in labels),
        ]
    )
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum()) + 0.0  # + 0.0 turns -0.0 into 0.0


def _entropy_over_pairs(judgements: JudgementsByPair, unit: tuple[str, str]) -> float:
    """Entropy in bits over the pairs of a model and question, each with its share of Y; nan without a Y.

    The SaGE paper (section 5.2) maps Y to 1 and N to 0 and converts this into a probability distribution for each
    question. Its program has no code for it; here the values are divided by their sum. NA is dropped.
    """
    labels_by_pair: dict[tuple[str, str], list[float]] = {}
    for (_, model, question, left, right), label in judgements.items():
        if (model, question) == unit and label == label:  # nan is not equal to itself
            labels_by_pair.setdefault((left, right), []).append(label)
    means = np.array([np.mean(labels) for labels in labels_by_pair.values()])
    shares = means[means > 0] / means.sum() if len(means) else means
    return float(-(shares * np.log2(shares)).sum()) + 0.0 if len(shares) else float("nan")


def _krippendorff_estimate(judgements: JudgementsByPair) -> Estimate:
    """Krippendorff's alpha of the raters over the judged pairs, with an interval over questions; NA is no rating."""
    # key[0] is the rater, key[1:] the pair: model, question and the two wordings.
    pairs = sorted({key[1:] for key in judgements})
    alpha = krippendorff_alpha(_rating_table(judgements, pairs), units={"question": [pair[1] for pair in pairs]})
    return Estimate(alpha.value, alpha.n, alpha.ci_low, alpha.ci_high, alpha.reason, alpha.resampled)


def _rating_table(judgements: JudgementsByPair, pairs: Sequence[tuple[str, str, str, str]]) -> Floats:
    """Judgements (1 or 0) as a table, shape (raters, pairs); nan where a rater did not judge, or could not say."""
    raters = sorted({key[0] for key in judgements})
    rater_index, pair_index = {rater: i for i, rater in enumerate(raters)}, {pair: j for j, pair in enumerate(pairs)}
    table = np.full((len(raters), len(pairs)), np.nan)
    for key, value in judgements.items():
        table[rater_index[key[0]], pair_index[key[1:]]] = value
    return table


def _correlation_row(
    metric_key: tuple[str, str],
    values: Floats,
    human_scores: Floats,
    entropy: Floats,
    pair_entropy: Floats,
    questions: Sequence[str],
) -> HumanCorrelationRow:
    """Correlate one measure with the share of consistent judgements, and with the entropy of the judgements.

    Args:
        metric_key: the scored text, and the measure.
        values, human_scores, entropy, pair_entropy: one value per model and question: of the measure, the share judged
            consistent, and the entropies of its judgements and over its pairs in bits.
        questions: of these values.
    """
    with_people = correlate_over_units(human_scores, values, {"question": questions})
    return HumanCorrelationRow(
        text=metric_key[0],
        metric=metric_key[1],
        n=with_people.n,
        r=with_people.value,
        ci_low=with_people.ci_low,
        ci_high=with_people.ci_high,
        reason=with_people.reason,
        r_entropy=correlate_over_units(entropy, values, {"question": questions}).value,
        r_pair_entropy=correlate_over_units(pair_entropy, values, {"question": questions}),
    )


def _correlation_difference(
    main_key: tuple[str, str],
    metric_key: tuple[str, str],
    first: Floats,
    second: Floats,
    human_scores: Floats,
    questions: Sequence[str],
) -> CorrelationDifferenceRow:
    """Difference between the main measure's correlation with people and another measure's.

    Args:
        main_key, metric_key: scored text and measure of the main measure and of the other.
        first, second: values of the main measure and of the other, one per model and question.
        human_scores: share judged consistent, one per model and question.
        questions: of these values.
    """
    difference = correlation_difference_over_units(human_scores, first, second, {"question": questions})
    return CorrelationDifferenceRow(
        text=metric_key[0],
        metric=metric_key[1],
        than_text=main_key[0],
        than_metric=main_key[1],
        difference=difference.value,
        p_value=difference.p_value,
        ci_low=difference.ci_low,
        ci_high=difference.ci_high,
        n=difference.n,
        reason=difference.reason,
    )
