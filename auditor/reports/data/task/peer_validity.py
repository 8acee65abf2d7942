"""Validity of peer verdicts: how well they separate right from wrong answers, over answers, judges and models."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np

from auditor.domain import AnswerKind, Cell, Ruling
from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.metrics.item_statistics import (
    area_under_curve,
    area_under_curve_within_items,
    correlation_over_items,
    share_difference_over_items,
)
from auditor.metrics.model_correlation import ModelCorrelation, correlate_models
from auditor.metrics.unit_means import ShareTable, share_over_units, shares_over_units
from auditor.reports.data.coverage.missing_scores import replace_reason
from auditor.reports.data.panel.peer_agreement import compute_peer_agreement
from auditor.reports.data.panel.verdict_matrix import find_family
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.task.build import TaskAnswerSet
from auditor.reports.data.task.schema import JudgeValidityRow, PeerValidityReport, TaskModelRow, VerdictAccuracyRow
from auditor.storage.votes import Vote

SampleKey = tuple[str, Cell, int]
"""Model, cell and sample number of an answer; the cell's topic is the item's id."""
VerdictWithTruth = tuple[Vote, bool]
"""A verdict, and whether the judged answer is right."""
TIED_LABEL = "as many VALID as INVALID"


def build_peer_validity_report(
    source: ReportSource, answers: TaskAnswerSet, model_rows: Sequence[TaskModelRow]
) -> PeerValidityReport | None:
    """Compare verdicts with the truth; None where no answer was judged, or no truth is known.

    Verdicts that an adaptive panel asked for because others disagreed are left out, since they would over-represent
    disputed answers.
    """
    # `always`: the judge was asked in any case, not only because an adaptive panel was split.
    votes = [vote for vote in source.votes if vote.always]
    cells_with_truth = {item.cell for item in answers.items_with_truth}
    judged_samples = {
        _sample_key(vote)
        for vote in votes
        if _sample_key(vote)[1] in cells_with_truth and _sample_key(vote) in answers.usable_answers
    }
    if not judged_samples:
        return None
    valid_shares = _valid_shares(vote for vote in votes if _sample_key(vote) in judged_samples)
    verdicts_with_truth = [
        (vote, answers.correctness[_sample_key(vote)]) for vote in votes if _sample_key(vote) in answers.correctness
    ]
    has_accuracy = answers.accuracy_missing_reason is None
    keys = sorted(valid_shares)
    # A key is (model, cell of the item, sample); the topic of that cell is the id of the item.
    sample_shares, item_ids = [float(valid_shares[key]) for key in keys], np.array([key[1].topic for key in keys])
    is_correct = [answers.correctness.get(key, False) for key in keys]
    return PeerValidityReport(
        answers=len(judged_samples),
        area=area_under_curve(sample_shares, is_correct, item_ids) if has_accuracy else None,
        area_within=area_under_curve_within_items(sample_shares, is_correct, item_ids) if has_accuracy else None,
        verdicts=_build_verdict_rows(verdicts_with_truth, valid_shares, answers) if has_accuracy else [],
        # Accuracy of answers called VALID minus that of answers called INVALID.
        difference=_share_difference(
            verdicts_with_truth, lambda verdict: bool(verdict[0].valid), lambda verdict: verdict[1]
        )
        if has_accuracy
        else None,
        closeness=_correlate_closeness(answers, keys, sample_shares) if answers.task.kind is AnswerKind.SCORE else None,
        models=_correlate_models(source, model_rows, has_accuracy=has_accuracy),
        judges=_build_judge_rows(source.judge_names, verdicts_with_truth) if has_accuracy else [],
    )


def _sample_key(vote: Vote) -> SampleKey:
    """Key of the answer that a verdict is on."""
    return vote.model, Cell(vote.country, vote.topic), vote.sample


def _valid_shares(votes: Iterable[Vote]) -> dict[SampleKey, Fraction]:
    """Return the share of VALID among the verdicts on each answer, as exact fractions to recognise ties."""
    n_valid, n_verdicts = Counter[SampleKey](), Counter[SampleKey]()
    for vote in votes:
        n_verdicts[_sample_key(vote)] += 1
        n_valid[_sample_key(vote)] += vote.valid
    return {key: Fraction(n_valid[key], n) for key, n in n_verdicts.items()}


def _build_verdict_rows(
    verdicts: Sequence[VerdictWithTruth], valid_shares: dict[SampleKey, Fraction], answers: TaskAnswerSet
) -> list[VerdictAccuracyRow]:
    """Compute accuracy by single verdict, and by majority of the verdicts on an answer; one row per label.

    `valid_shares` holds the share of VALID among the verdicts on each answer; the row of ties may be absent.
    """
    rows = [
        _build_verdict_row(
            ruling.value,
            [(_sample_key(vote), is_right) for vote, is_right in verdicts if vote.valid == (ruling is Ruling.VALID)],
        )
        for ruling in Ruling
    ]
    half = Fraction(1, 2)
    side_tests: dict[str, Callable[[Fraction], bool]] = {
        "majority VALID": lambda share: share > half,
        "majority INVALID": lambda share: share < half,
        TIED_LABEL: lambda share: share == half,
    }
    for label, is_side in side_tests.items():
        sample_hits = [(key, answers.correctness[key]) for key, share in valid_shares.items() if is_side(share)]
        if sample_hits or label != TIED_LABEL:
            rows.append(_build_verdict_row(label, sample_hits))
    return rows


def _build_verdict_row(verdict_label: str, sample_hits: Sequence[tuple[SampleKey, bool]]) -> VerdictAccuracyRow:
    """Compute the share of right answers among those with one verdict; `sample_hits` pairs answer and correctness."""
    share = share_over_units(**_share_table(sample_hits)._asdict(), empty_reason=f"nothing is judged {verdict_label}")
    return VerdictAccuracyRow(said=verdict_label, n=share.n, accuracy=share)


def _share_table(sample_hits: Sequence[tuple[SampleKey, bool]]) -> ShareTable:
    """Count hits and cases of each answer; an answer's cases, such as verdicts on it, are not independent."""
    hits, totals = Counter[SampleKey](), Counter[SampleKey]()
    for key, is_hit in sample_hits:
        hits[key] += is_hit
        totals[key] += 1
    return ShareTable(
        [hits[key] for key in totals],
        list(totals.values()),
        {"item": [key[1].topic for key in totals]},
        np.ones(len(totals)),
    )


def _share_difference(
    verdicts: Sequence[VerdictWithTruth],
    is_first_side: Callable[[VerdictWithTruth], bool],
    is_hit: Callable[[VerdictWithTruth], bool],
) -> Estimate:
    """Share of hits on the first side minus that on the second, with an interval over items.

    Args:
        is_first_side: whether a verdict belongs to the first side.
        is_hit: whether a verdict is a hit.
    """
    # Per item: hits and verdicts on the first side, then hits and verdicts on the second.
    counts_by_item: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for verdict in verdicts:
        column = 0 if is_first_side(verdict) else 2
        counts_by_item[verdict[0].topic][column] += is_hit(verdict)
        counts_by_item[verdict[0].topic][column + 1] += 1
    return share_difference_over_items(*np.array(list(counts_by_item.values()), dtype=float).reshape(-1, 4).T)


def _build_judge_rows(judges: Sequence[str], verdicts: Sequence[VerdictWithTruth]) -> list[JudgeValidityRow]:
    """Compare each judge's shares of VALID on right and on wrong answers."""
    shares_by_truth = [
        shares_over_units(
            [
                _share_table(
                    [
                        (_sample_key(vote), bool(vote.valid))
                        for vote, is_right in verdicts
                        if vote.judge == judge and is_right is side
                    ]
                )
                for judge in judges
            ],
            empty_reason=reason,
        )
        for side, reason in (
            (True, "it has no verdict on a correct answer"),
            (False, "it has no verdict on an incorrect answer"),
        )
    ]
    return [
        _build_judge_row(judge, right, wrong, [verdict for verdict in verdicts if verdict[0].judge == judge])
        for judge, right, wrong in zip(judges, *shares_by_truth, strict=True)
    ]


def _build_judge_row(
    judge: str, right: ShareEstimate, wrong: ShareEstimate, verdicts: Sequence[VerdictWithTruth]
) -> JudgeValidityRow:
    """Add the difference of the judge's shares of VALID on right and on wrong answers."""
    return JudgeValidityRow(
        judge=judge,
        right=right,
        wrong=wrong,
        # A verdict is (vote, whether the answer is right): VALID on right answers minus VALID on wrong ones.
        difference=_share_difference(verdicts, lambda verdict: verdict[1], lambda verdict: bool(verdict[0].valid)),
    )


def _correlate_closeness(answers: TaskAnswerSet, keys: Sequence[SampleKey], valid_shares: Sequence[float]) -> Estimate:
    """Rank correlation over answers of the share of VALID with closeness: minus the distance from the truth."""
    closeness = [
        -abs(float(answers.usable_answers[key]) - float(answers.task.item_for(key[1]).truth or "nan")) for key in keys
    ]
    return correlation_over_items(valid_shares, closeness, [key[1].topic for key in keys], ranks=True)


def _correlate_models(
    source: ReportSource, model_rows: Sequence[TaskModelRow], *, has_accuracy: bool
) -> ModelCorrelation:
    """Pearson correlation over models of peer agreement with accuracy, or with minus the MAE."""
    agreement_by_model = {row.model: row.agreement.value for row in compute_peer_agreement(source)}
    peer_shares, qualities = (
        np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        for values in (
            [agreement_by_model.get(row.model) for row in model_rows],
            [_model_quality(row, has_accuracy=has_accuracy) for row in model_rows],
        )
    )
    correlation = correlate_models(
        peer_shares, qualities, [find_family(source.config, row.model) for row in model_rows]
    )
    reason_labels = {
        "x constant": "judges find all models equally VALID",
        "y constant": "all models are equally accurate",
        "fewer than 3 models (0)": "no model has both",
    }
    return replace_reason(correlation, reason_labels)


def _model_quality(row: TaskModelRow, *, has_accuracy: bool) -> float | None:
    """Accuracy of a model, or minus its MAE for scores without a tolerance; None where unknown."""
    if has_accuracy or row.score is None:
        return row.accuracy.value
    return None if row.score.mae.value is None else -row.score.mae.value
