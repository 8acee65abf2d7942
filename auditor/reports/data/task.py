"""Answers to a user-defined task: accuracy, agreement between samples, and the most common answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import comb
from statistics import fmean, stdev
from typing import Annotated

import numpy as np

from auditor.domain import AnswerKind, Cell, Task, TaskItem
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate, Tested, TestedShare, proportion
from auditor.metrics.intervals.items import correlation_over_items
from auditor.metrics.intervals.unit_means import (
    ShareTable,
    mean_over_units,
    share_over_units,
    share_p_values,
    shares_over_units,
)
from auditor.metrics.labels.annotator_test import AnnotatorTest
from auditor.metrics.people.over_models import ModelCorrelation
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.report_model import FlatRow, JudgeName, ModelName, ReportModel, RowShareTest, publish
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.document import Column
from auditor.tasks import is_correct, most_common_answer


class ScoreAccuracy(ReportModel):
    """One model's scores against the truth, over items, in the units of the task; an item's score is its mean."""

    pearson_r: Estimate
    spearman_rho: Estimate
    mae: Estimate
    bias: Estimate
    """Mean of the model's score minus the truth."""
    spread: Estimate
    """Mean over items of the standard deviation of the samples."""


class TaskModelRow(FlatRow):
    """Accuracy and agreement of one model's answers."""

    model: ModelName
    accuracy: Annotated[RowShareTest, Column("Accuracy", emphasis=True)]
    """Share of the usable answers that are right; n counts answers. Its p-value is of `chance`, the adjusted one for
    all models; null without options."""
    chance: float | None
    """Expected accuracy of a random choice among the options of the items that these answers are to; null without
    options. Recorded answers of two models may be to different items."""
    bound_low: float | None
    """Accuracy if every unusable sample were wrong; null where correctness is unknown."""
    bound_high: float | None
    """Accuracy if every unusable sample were right."""
    commonest: Annotated[Estimate, Column("Most frequent correct")]
    """Share of items whose most common answer is right; n counts items that have one."""
    undecided: Annotated[int, Column("Undecided")]
    """Items with usable answers but no single most common one."""
    sample_agreement: Annotated[Estimate, Column("Samples agree")]
    """Probability that two samples on one item give the same answer: mean over items with at least two samples."""
    usable: Annotated[int, Column("Usable")]
    """Samples with a readable answer, of `planned`."""
    planned: Annotated[int, Column("Planned")]
    """Samples on items whose truth is known."""
    score: Annotated[
        ScoreAccuracy | None,
        Column("r", part="pearson_r", is_optional=True),
        Column("Spearman ρ", part="spearman_rho", is_optional=True),
        Column("MAE", part="mae", emphasis=True, is_optional=True),
        Column("Bias", part="bias", style="signed", is_optional=True),
        Column("Spread", part="spread", is_optional=True),
    ]
    """Null if answers are not scores."""


class VerdictAccuracyRow(ReportModel):
    """Accuracy of the answers that share one verdict."""

    said: Annotated[str, Column("Verdict", "name")]
    """`VALID` or `INVALID` for single verdicts; `majority VALID` and similar labels for answers."""
    n: int
    accuracy: Annotated[ShareEstimate, Column("Correct", emphasis=True)]


class JudgeValidityRow(ReportModel):
    """One judge's verdicts on right and on wrong answers."""

    judge: JudgeName
    right: Annotated[ShareEstimate, Column("Correct answers")]
    """Share of VALID among the verdicts on right answers."""
    wrong: Annotated[ShareEstimate, Column("Incorrect answers")]
    """Share of VALID among the verdicts on wrong answers."""
    difference: Annotated[Estimate, Column("Difference", style="signed", emphasis=True)]
    """`right` minus `wrong`: 0 is no discrimination, 1 is perfect."""


class PeerValidityReport(ReportModel):
    """Association of peer verdicts with correctness; its tests are one family."""

    answers: int
    """Answers with a verdict and a known truth."""
    area: Tested | None
    """AUC: how likely a right answer has the larger share VALID than a wrong one; null if correctness is unknown."""
    area_within: Tested | None
    """AUC among answers to the same item, which removes differences in difficulty between items."""
    verdicts: list[VerdictAccuracyRow]
    difference: Estimate | None
    """Accuracy of the answers with a verdict VALID minus that of those with a verdict INVALID."""
    closeness: Tested | None
    """For scores: Spearman's correlation over answers of the share VALID with closeness to the truth."""
    models: ModelCorrelation
    """Correlation over models of peer agreement with accuracy; with minus the MAE for scores without a tolerance."""
    judges: list[JudgeValidityRow]


class RaterTestRow(FlatRow):
    """The alternative annotator test of one model against the people who answered the same items."""

    model: ModelName
    epsilon: Annotated[float, Column("ε")]
    """What the lower cost of the model is worth, as a share of items."""
    test: Annotated[
        AnnotatorTest,
        publish("passed", "winning_rate", "advantage_probability", "reason", n="items"),
        Column("Passes", part="passed", emphasis=True),
        Column("Wins against", part="winning_rate"),
        Column("At least as close", part="advantage_probability"),
        Column("Items", part="n"),
        Column("Remark", part="reason"),
    ]


class RaterReport(ReportModel):
    """People who answered the items of the task, and the models that might replace one of them."""

    people: list[str]
    answers: int
    """Usable answers of people."""
    items: int
    """Items with answers of at least two people."""
    tests: list[RaterTestRow]


class TaskItemReport(ReportModel):
    """One item with the models' answers."""

    id: str
    question: str
    truth: str | None
    right: ShareEstimate | None
    """Share of all models' usable answers that are right, with an interval over other models; null where correctness is
    unknown."""
    answers: dict[str, str | None]
    """Most common answer, or mean score, by model; null where there is none."""


class TaskReport(FlatRow):
    """The task, the models' results and the items."""

    task: Annotated[Task, publish("source", "kind", "range", "tolerance")]
    samples: int
    """Samples of each model on each item."""
    chance: float | None
    """Expected accuracy of a random choice among the options, over all items with a truth; null without options."""
    models: list[TaskModelRow]
    telling: PeerValidityReport | None
    """Null where no answer was judged, or no truth is known."""
    raters: RaterReport | None = None
    """Null unless people's answers were imported too."""
    items: list[TaskItemReport]
    """Items in the order of the task file."""


NO_TRUTH_REASON = "no item has a known truth"
NO_TOLERANCE_REASON = "the task sets no tolerance for a correct number"
MAX_QUESTION_CHARS = 300


@dataclass(frozen=True)
class TaskAnswerSet:
    """The answers of an audit to a task, and their correctness.

    Attributes:
        task: the task with its items.
        models: all audited models, in order.
        usable_answers: usable answers by model, item and sample.
        samples_per_item: planned samples of each model on each item; of recorded answers, the most that there are.
        n_recorded: recorded samples by model and item, which are those that were planned; None for an audit that was
            run.
    """

    task: Task
    models: Sequence[str]
    usable_answers: Mapping[tuple[str, Cell, int], str]
    samples_per_item: int
    n_recorded: Mapping[tuple[str, Cell], int] | None = None

    def count_planned(self, model: str, cells: Sequence[Cell]) -> int:
        """Number of planned samples of a model on items."""
        if self.n_recorded is None:
            return len(cells) * self.samples_per_item
        return sum(self.n_recorded.get((model, cell), 0) for cell in cells)

    @cached_property
    def by_item(self) -> Mapping[tuple[str, Cell], list[str]]:
        """Usable answers by model and item, in order of the samples."""
        answers: dict[tuple[str, Cell], list[str]] = defaultdict(list)
        for model, cell, sample in sorted(self.usable_answers):
            answers[model, cell].append(self.usable_answers[model, cell, sample])
        return answers

    @cached_property
    def correctness(self) -> Mapping[tuple[str, Cell, int], bool]:
        """Correctness of each usable answer; answers whose correctness is unknown are absent."""
        correct_or_unknown = {
            key: is_correct(self.task, self.task.item_for(key[1]), answer)  # a key is (model, cell of the item, sample)
            for key, answer in self.usable_answers.items()
        }
        return {key: is_right for key, is_right in correct_or_unknown.items() if is_right is not None}

    @cached_property
    def correctness_by_item(self) -> Mapping[Cell, list[tuple[str, bool]]]:
        """Model and correctness of the answers to each item."""
        correct_by_item: dict[Cell, list[tuple[str, bool]]] = defaultdict(list)
        for (model, cell, _), is_right in self.correctness.items():
            correct_by_item[cell].append((model, is_right))
        return correct_by_item

    @property
    def items_with_truth(self) -> list[TaskItem]:
        """Items whose truth is known."""
        return [item for item in self.task.items.values() if item.truth is not None]

    @property
    def accuracy_missing_reason(self) -> str | None:
        """Reason why accuracy cannot be computed; None where it can."""
        if not self.items_with_truth:
            return NO_TRUTH_REASON
        return NO_TOLERANCE_REASON if self.task.kind is AnswerKind.SCORE and self.task.tolerance is None else None


def build_task_report(source: ReportSource) -> TaskReport | None:
    """Build the section on a task; None for an audit of a survey."""
    # these import this module: a cycle
    from auditor.reports.data.task_validity import build_peer_validity_report, build_rater_report

    task = source.survey.task
    if task is None:
        return None
    answers = select_model_answers(source, task)
    accuracies = _estimate_accuracies(answers)
    rows = adjust_rows(
        (_build_model_row(answers, model, accuracies[model]) for model in source.models),
        "accuracy",
        "accuracy of models compared with chance",
    )
    chances = [1 / len(item.options) for item in answers.items_with_truth if item.options]
    return TaskReport(
        task=task,
        samples=answers.samples_per_item,
        chance=fmean(chances) if chances else None,
        models=rows,
        # How well peer verdicts separate right from wrong answers.
        telling=build_peer_validity_report(source, answers, rows),
        raters=build_rater_report(answers, source.task_answers),
        items=[_build_item_report(answers, item) for item in task.items.values()],
    )


def select_model_answers(source: ReportSource, task: Task) -> TaskAnswerSet:
    """The models' answers to a task, without those of people."""
    people = set(task.people)
    usable_answers = {key: answer for key, answer in source.task_answers.items() if key[0] not in people}
    if source.config is not None:
        return TaskAnswerSet(task, source.models, usable_answers, source.config.direct.samples)
    n_recorded = Counter[tuple[str, Cell]]()
    for count in source.trace_counts:
        n_recorded[count.model, Cell(count.country, count.topic)] += count.n
    return TaskAnswerSet(task, source.models, usable_answers, max(n_recorded.values(), default=0), n_recorded)


def _build_model_row(answers: TaskAnswerSet, model: str, accuracy: TestedShare) -> TaskModelRow:
    """Compute one model's bounds of accuracy over the items with a known truth, and its agreement between samples."""
    cells = [item.cell for item in answers.items_with_truth]
    answers_by_cell = {cell: answers.by_item.get((model, cell), []) for cell in cells}
    hits = Counter(
        cell for (answer_model, cell, _), is_right in answers.correctness.items() if answer_model == model and is_right
    )
    usable, planned = sum(map(len, answers_by_cell.values())), answers.count_planned(model, cells)
    n_right = hits.total()
    is_known = answers.accuracy_missing_reason is None and planned > 0
    commonest_answers = {
        cell: answer
        for cell, sample_answers in answers_by_cell.items()
        if (answer := most_common_answer(sample_answers)) is not None
    }
    commonest_right = [
        is_correct(answers.task, answers.task.item_for(cell), answer) for cell, answer in commonest_answers.items()
    ]
    return TaskModelRow(
        model=model,
        planned=planned,
        usable=usable,
        accuracy=accuracy,
        chance=_expect_by_chance(answers, model),
        bound_low=n_right / planned if is_known else None,
        bound_high=(n_right + planned - usable) / planned if is_known else None,
        commonest=proportion(sum(map(bool, commonest_right)), len(commonest_right), "item")
        if is_known
        else Estimate(None, 0, reason=answers.accuracy_missing_reason or NO_TRUTH_REASON),
        undecided=sum(bool(sample_answers) for sample_answers in answers_by_cell.values()) - len(commonest_answers),
        sample_agreement=_estimate_sample_agreement(answers, model),
        score=_compute_score_accuracy(answers, model) if answers.task.kind is AnswerKind.SCORE else None,
    )


def _expect_by_chance(answers: TaskAnswerSet, model: str) -> float | None:
    """Accuracy of a random choice among the options of the items that a model's answers are to; None without any."""
    chances = [
        1 / len(item.options)
        for item in answers.items_with_truth
        if item.options
        for _ in answers.by_item.get((model, item.cell), [])
    ]
    return fmean(chances) if chances else None


def _estimate_accuracies(answers: TaskAnswerSet) -> dict[str, TestedShare]:
    """Compute each model's share of right answers, with an interval over items, and test it against chance."""
    if answers.accuracy_missing_reason is not None:
        missing = TestedShare(None, 0, reason=answers.accuracy_missing_reason)
        return dict.fromkeys(answers.models, missing)
    cells = [item.cell for item in answers.items_with_truth]
    hits = Counter((model, cell) for (model, cell, _), is_right in answers.correctness.items() if is_right)
    tables = [
        ShareTable(
            [hits[model, cell] for cell in cells],
            [len(answers.by_item.get((model, cell), [])) for cell in cells],
            {"item": [cell.topic for cell in cells]},
        )
        for model in answers.models
    ]
    chances = [_expect_by_chance(answers, model) for model in answers.models]
    shares = shares_over_units(tables, empty_reason="no answer could be read")
    p_values = share_p_values(tables, [chance or 0.0 for chance in chances])
    return {
        model: TestedShare(**asdict(share), p_value=None if chance is None else p_value)
        for model, share, chance, p_value in zip(answers.models, shares, chances, p_values, strict=True)
    }


def _estimate_sample_agreement(answers: TaskAnswerSet, model: str) -> Estimate:
    """Mean over items of the share of pairs of samples with the same answer."""
    shares = [
        sum(comb(n, 2) for n in Counter(item_answers).values()) / comb(len(item_answers), 2)
        for item in answers.task.items.values()
        if len(item_answers := answers.by_item.get((model, item.cell), [])) > 1
    ]
    return mean_over_units(
        shares, {"item": range(len(shares))}, (0.0, 1.0), empty_reason="no item has two usable samples"
    )


def _compute_score_accuracy(answers: TaskAnswerSet, model: str) -> ScoreAccuracy:
    """Compare one model's mean score on each item with the truth of the item."""
    scores_by_item = {
        item.id: [float(answer) for answer in answers.by_item.get((model, item.cell), [])]
        for item in answers.task.items.values()
    }
    truth = np.array([float(item.truth or "nan") for item in answers.items_with_truth])
    means = np.array(
        [fmean(scores_by_item[item.id]) if scores_by_item[item.id] else np.nan for item in answers.items_with_truth]
    )
    spread = np.array([stdev(scores) if len(scores) > 1 else np.nan for scores in scores_by_item.values()])
    if not answers.items_with_truth:
        r = rho = mae = bias = Estimate(None, 0, reason=NO_TRUTH_REASON)
    else:
        items, no_answer_reason = np.arange(len(means)), "no item has a usable answer"
        r, rho = (_correlate_with_truth(means, truth, ranks=ranks) for ranks in (False, True))
        width = np.nan if answers.task.range is None else answers.task.range[1] - answers.task.range[0]
        errors, bounds = means - truth, (0.0, float(np.nan_to_num(width, nan=np.inf)))
        mae = mean_over_units(np.abs(errors), {"item": items}, bounds, empty_reason=no_answer_reason)
        bias = mean_over_units(errors, {"item": items}, empty_reason=no_answer_reason)
    return ScoreAccuracy(
        pearson_r=r,
        spearman_rho=rho,
        mae=mae,
        bias=bias,
        spread=mean_over_units(
            spread, {"item": np.arange(len(spread))}, (0.0, np.inf), empty_reason="no item has two usable samples"
        ),
    )


def _correlate_with_truth(means: FloatArray, truth: FloatArray, *, ranks: bool) -> Estimate:
    """Correlation of scores with the truth over items, with its reason in terms of the task."""
    correlation = correlation_over_items(means, truth, np.arange(len(means)), ranks=ranks)
    reason_labels = {
        "all values of the first measure are the same": "all scores are the same",
        "all values of the second measure are the same": "all truths are the same",
        "fewer than 3 answers": "fewer than 3 items",
    }
    return replace(correlation, reason=reason_labels.get(correlation.reason or "", correlation.reason))


def _build_item_report(answers: TaskAnswerSet, item: TaskItem) -> TaskItemReport:
    """Build the report of one item: question, truth, share of right answers, and each model's commonest answer."""
    commonest_by_model = {model: _commonest_answer(answers, model, item.cell) for model in answers.models}
    question = " ".join(item.question.split())
    return TaskItemReport(
        id=item.id,
        question=question if len(question) <= MAX_QUESTION_CHARS else f"{question[:MAX_QUESTION_CHARS]} …",
        truth=item.truth,
        right=_estimate_item_accuracy(answers, item),
        answers=commonest_by_model,
    )


def _estimate_item_accuracy(answers: TaskAnswerSet, item: TaskItem) -> ShareEstimate | None:
    """Share of right answers to one item, with an interval over models; None where correctness is unknown."""
    by_model: dict[str, list[bool]] = defaultdict(list)
    for model, is_right in answers.correctness_by_item.get(item.cell, []):
        by_model[model].append(is_right)
    flags = list(by_model.values())
    return share_over_units(list(map(sum, flags)), list(map(len, flags)), {"model": list(by_model)}) if flags else None


def _commonest_answer(answers: TaskAnswerSet, model: str, cell: Cell) -> str | None:
    """Most common answer of a model to an item, or its mean score; None without one."""
    sample_answers = answers.by_item.get((model, cell), [])
    if answers.task.kind is AnswerKind.SCORE:
        return f"{fmean(map(float, sample_answers)):.6g}" if sample_answers else None
    return most_common_answer(sample_answers)
