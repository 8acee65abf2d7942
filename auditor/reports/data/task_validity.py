"""Do peer verdicts follow accuracy on a task, and may a model replace one of the people who answered?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from statistics import fmean
from typing import Annotated

import numpy as np

from auditor.domain import AnswerKind, Cell, Ruling
from auditor.errors import UsageError
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate, Tested
from auditor.metrics.intervals.items import (
    area_under_curve,
    area_under_curve_within_items,
    correlation_over_items,
    share_difference_over_items,
    within_model_difference,
)
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.intervals.unit_means import ShareTable, share_over_units, shares_over_units
from auditor.metrics.labels.annotator_test import alternative_annotator_test
from auditor.metrics.people.over_models import ModelCorrelation, correlate_models
from auditor.reports.data.coverage.lost_samples import replace_reason
from auditor.reports.data.judge_quality.build import EPSILON_BY_RATER_KIND
from auditor.reports.data.panel.build import compute_peer_agreement
from auditor.reports.data.panel.verdict_matrix import find_family
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.task import (
    JudgeValidityRow,
    PeerValidityReport,
    RaterReport,
    RaterTestRow,
    TaskAnswerSet,
    TaskModelRow,
    VerdictAccuracyRow,
    select_model_answers,
)
from auditor.reports.document import Column
from auditor.storage.votes import Vote
from auditor.tasks import most_common_answer

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
    # An adaptive panel asks until the majority of all its judges is certain, so all verdicts decide.
    panel_shares = _valid_shares(vote for vote in source.votes if _sample_key(vote) in judged_samples)
    verdicts_with_truth = [
        (vote, answers.correctness[_sample_key(vote)]) for vote in votes if _sample_key(vote) in answers.correctness
    ]
    has_accuracy = answers.accuracy_missing_reason is None
    keys = sorted(valid_shares)
    # A key is (model, cell of the item, sample); the topic of that cell is the id of the item.
    sample_shares, item_ids = [float(valid_shares[key]) for key in keys], np.array([key[1].topic for key in keys])
    is_correct = [answers.correctness.get(key, False) for key in keys]
    report = PeerValidityReport(
        answers=len(judged_samples),
        area=area_under_curve(sample_shares, is_correct, item_ids) if has_accuracy else None,
        area_within=area_under_curve_within_items(sample_shares, is_correct, item_ids) if has_accuracy else None,
        verdicts=_build_verdict_rows(verdicts_with_truth, panel_shares, answers) if has_accuracy else [],
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
    # Each of these figures is a sentence.
    figures: dict[str, Tested] = {
        name: figure
        for name in ("area", "area_within", "closeness", "models")
        if (figure := getattr(report, name)) is not None
    }
    tests = adjust_tests(figures.values(), "verdicts as predictions of correctness")
    return report.model_copy(update=dict(zip(figures, tests, strict=True)))


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


def _correlate_closeness(answers: TaskAnswerSet, keys: Sequence[SampleKey], valid_shares: Sequence[float]) -> Tested:
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


MIN_CORRELATED_MODELS = 6
"""Fewest models for a correlation over models: with fewer, chance alone makes large ones."""


class ModelValidityRow(ReportModel):
    """VALID among the verdicts on one model's right and on its wrong answers."""

    model: ModelName
    accuracy: Annotated[ShareEstimate, Column("Accuracy")]
    right: Annotated[ShareEstimate, Column("VALID of right answers")]
    wrong: Annotated[ShareEstimate, Column("VALID of wrong answers")]
    difference: Annotated[Estimate, Column("Difference", style="signed", emphasis=True)]
    """VALID of right answers minus that of wrong ones, over items."""


class TaskValidityReport(ReportModel):
    """Whether peer review follows accuracy on a task."""

    answers: int
    """Answers with a verdict whose correctness is known."""
    items: int
    within: Tested
    """VALID of right minus wrong answers, within models; over items and models, which are crossed."""
    over_models: ModelCorrelation
    """Correlation of each model's share of VALID with its accuracy; none with fewer than six models."""
    models: list[ModelValidityRow]


def build_task_validity(source: ReportSource) -> TaskValidityReport:
    """Compare verdicts with accuracy on a task.

    Verdicts that an adaptive panel asked for because others disagreed are left out.

    Raises:
        UsageError: the audit is of a survey, right answers are not known, or no answer has a verdict.
    """
    task = source.survey.task
    if task is None:
        raise UsageError(
            f"the audit '{source.audit.name}' is of a survey, which has no right answers.", "Name an audit of a task."
        )
    answers = select_model_answers(source, task)
    if answers.accuracy_missing_reason is not None:
        raise UsageError(
            f"right answers are needed, but {answers.accuracy_missing_reason}.",
            "Name an audit of items with the column truth; of scores, also with task.tolerance.",
        )
    counts: dict[tuple[str, Cell, int], list[int]] = {}
    for vote in source.votes:
        key = vote.model, Cell(vote.country, vote.topic), vote.sample
        if vote.always and key in answers.correctness:
            n_valid_and_all = counts.setdefault(key, [0, 0])
            n_valid_and_all[0] += bool(vote.valid)
            n_valid_and_all[1] += 1
    if not counts:
        raise UsageError(
            f"the audit '{source.audit.name}' has no verdicts on answers.", "Run it with `judges` in its config."
        )
    keys = sorted(counts)
    valid, totals = np.array([counts[key] for key in keys], dtype=np.float64).T
    is_right = np.array([answers.correctness[key] for key in keys], dtype=np.bool_)
    models, items = (np.array(column) for column in zip(*((key[0], key[1].topic) for key in keys), strict=True))
    rows = [
        _build_row(
            model, valid[models == model], totals[models == model], is_right[models == model], items[models == model]
        )
        for model in source.models
        if (models == model).any()
    ]
    return TaskValidityReport(
        answers=len(keys),
        items=len(set(items.tolist())),
        within=within_model_difference(valid / totals, is_right, models, items),
        over_models=_correlate_over_models(
            source, rows, [valid[models == row.model].sum() for row in rows], totals, models
        ),
        models=rows,
    )


def _build_row(
    model: str, valid: FloatArray, totals: FloatArray, is_right: np.ndarray, items: np.ndarray
) -> ModelValidityRow:
    """The figures of one model, from the verdicts on each of its answers."""
    names, index = np.unique(items, return_inverse=True)
    columns = [
        np.bincount(index, part * side, len(names)) for side in (is_right, ~is_right) for part in (valid, totals)
    ]
    right, wrong = (
        share_over_units(
            valid[side],
            totals[side],
            {"item": items[side]},
            independent_cases=np.ones(int(side.sum())),
            empty_reason=f"it has no {name} answer with a verdict",
        )
        for side, name in ((is_right, "right"), (~is_right, "wrong"))
    )
    return ModelValidityRow(
        model=model,
        accuracy=share_over_units(is_right.astype(float), np.ones(len(items)), {"item": items}),
        right=right,
        wrong=wrong,
        difference=share_difference_over_items(*columns),
    )


def _correlate_over_models(
    source: ReportSource,
    rows: Sequence[ModelValidityRow],
    n_valid: Sequence[float],
    totals: FloatArray,
    models: np.ndarray,
) -> ModelCorrelation:
    """Correlate the models' shares of VALID with their accuracy, from six models."""
    if len(rows) < MIN_CORRELATED_MODELS:
        return ModelCorrelation(
            None,
            len(rows),
            reason=f"a correlation over models needs {MIN_CORRELATED_MODELS} of them, but there are {len(rows)}",
            models=len(rows),
        )
    shares = [n / totals[models == row.model].sum() for n, row in zip(n_valid, rows, strict=True)]
    accuracies = [np.nan if row.accuracy.value is None else row.accuracy.value for row in rows]
    return correlate_models(shares, accuracies, [find_family(source.config, row.model) for row in rows])


def build_rater_report(answers: TaskAnswerSet, all_answers: Mapping[tuple[str, Cell, int], str]) -> RaterReport | None:
    """Test each model against the people who answered; None without people.

    Scores are compared by their distance, other answers by equality, as the authors of the test do (Calderon, Reichart
    & Dror, ACL 2025). A model's answer to an item is its most frequent one, or its mean score.

    Args:
        answers: the models' answers.
        all_answers: usable answers by model or person, item and sample.
    """
    people = answers.task.people
    if not people:
        return None
    is_score = answers.task.kind is AnswerKind.SCORE
    codes: dict[str, float] = {}

    def encode(sample_answers: list[str]) -> float:
        if not sample_answers:
            return np.nan
        if is_score:
            return fmean(map(float, sample_answers))
        answer = most_common_answer(sample_answers)
        return np.nan if answer is None else codes.setdefault(answer, float(len(codes)))

    by_author: dict[tuple[str, Cell], list[str]] = {}
    for (author, cell, _), answer in sorted(all_answers.items()):
        by_author.setdefault((author, cell), []).append(answer)
    cells = [item.cell for item in answers.task.items.values()]

    def encode_all(author: str) -> FloatArray:
        return np.array([encode(by_author.get((author, cell), [])) for cell in cells])

    labels = np.array([encode_all(name) for name in people])
    tests = []
    for model in answers.models:
        model_labels = encode_all(model)
        for epsilon in EPSILON_BY_RATER_KIND.values():
            test = alternative_annotator_test(
                labels, model_labels, epsilon=epsilon, scoring="neg_rmse" if is_score else "accuracy"
            )
            tests.append(RaterTestRow(model=model, epsilon=epsilon, test=test))
    n_by_item = (~np.isnan(labels)).sum(axis=0)
    return RaterReport(
        people=list(people), answers=int(n_by_item.sum()), items=int((n_by_item >= 2).sum()), tests=tests
    )
