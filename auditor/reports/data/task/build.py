"""Answers to a task: accuracy, agreement between samples, and the most common answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from statistics import fmean, stdev

import numpy as np

from auditor.domain import AnswerKind, Cell, Task, TaskItem
from auditor.metrics.clustered import clustered_share
from auditor.metrics.correlation import Correlation, pearson, spearman
from auditor.metrics.error import bias, mae
from auditor.metrics.estimate import Estimate
from auditor.metrics.share import mean_share
from auditor.reports.data.estimate_conversion import estimate_mean, estimate_share, missing_estimate, to_estimate
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.task.schema import ScoreAccuracy, TaskItemReport, TaskModelRow, TaskReport
from auditor.tasks import is_correct, most_common_answer

NO_TRUTH_REASON = "no item has a known truth"
NO_TOLERANCE_REASON = "no tolerance says how near the truth is right"
MAX_QUESTION_CHARS = 300


@dataclass(frozen=True)
class TaskAnswerSet:
    """The answers of an audit to a task, and their correctness.

    Attributes:
        task: the task with its items.
        models: all audited models, in order.
        usable_answers: usable answers by model, item and sample.
        samples_per_item: planned samples of each model on each item.
    """

    task: Task
    models: Sequence[str]
    usable_answers: Mapping[tuple[str, Cell, int], str]
    samples_per_item: int

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
    def correctness_by_item(self) -> Mapping[Cell, list[bool]]:
        """Correctness of the answers to each item, over all models and samples."""
        correct_by_item: dict[Cell, list[bool]] = defaultdict(list)
        for (_, cell, _), is_right in self.correctness.items():
            correct_by_item[cell].append(is_right)
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
    from auditor.reports.data.task.peer_validity import build_peer_validity_report  # imports this module: a cycle

    task, config = source.survey.task, source.config
    if task is None or config is None:
        return None
    answers = TaskAnswerSet(task, source.models, source.task_answers, config.direct.samples)
    rows = [_build_model_row(answers, model) for model in source.models]
    chances = [1 / len(item.options) for item in answers.items_with_truth if item.options]
    return TaskReport(
        source=task.source,
        kind=task.kind,
        range=task.range,
        tolerance=task.tolerance,
        samples=answers.samples_per_item,
        chance=fmean(chances) if chances else None,
        models=rows,
        # How well peer verdicts separate right from wrong answers.
        telling=build_peer_validity_report(source, answers, rows),
        items=[_build_item_report(answers, item) for item in task.items.values()],
    )


def _build_model_row(answers: TaskAnswerSet, model: str) -> TaskModelRow:
    """Compute one model's accuracy over the items with a known truth, and its agreement between samples."""
    cells = [item.cell for item in answers.items_with_truth]
    answers_by_cell = {cell: answers.by_item.get((model, cell), []) for cell in cells}
    hits = Counter(
        cell for (answer_model, cell, _), is_right in answers.correctness.items() if answer_model == model and is_right
    )
    usable, planned = sum(map(len, answers_by_cell.values())), len(cells) * answers.samples_per_item
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
        accuracy=_estimate_accuracy(
            answers, [hits[cell] for cell in cells], [len(answers_by_cell[cell]) for cell in cells]
        ),
        bound_low=n_right / planned if is_known else None,
        bound_high=(n_right + planned - usable) / planned if is_known else None,
        commonest=estimate_share(sum(map(bool, commonest_right)), len(commonest_right))
        if is_known
        else missing_estimate(answers.accuracy_missing_reason or NO_TRUTH_REASON),
        undecided=sum(bool(sample_answers) for sample_answers in answers_by_cell.values()) - len(commonest_answers),
        sample_agreement=_estimate_sample_agreement(answers, model),
        score=_compute_score_accuracy(answers, model) if answers.task.kind is AnswerKind.SCORE else None,
    )


def _estimate_accuracy(answers: TaskAnswerSet, hits: Sequence[int], counts: Sequence[int]) -> Estimate:
    """Compute the share of right answers with an interval over items; `hits` and `counts` have one number per item."""
    if answers.accuracy_missing_reason is not None:
        return missing_estimate(answers.accuracy_missing_reason)
    return to_estimate(clustered_share(hits, counts, "no answer could be read"))


def _estimate_sample_agreement(answers: TaskAnswerSet, model: str) -> Estimate:
    """Mean over items of the share of pairs of samples with the same answer.

    The interval is Wilson's over items, which is conservative for shares between 0 and 1.
    """
    shares = [
        sum(comb(n, 2) for n in Counter(item_answers).values()) / comb(len(item_answers), 2)
        for item in answers.task.items.values()
        if len(item_answers := answers.by_item.get((model, item.cell), [])) > 1
    ]
    return (
        to_estimate(mean_share(sum(shares), len(shares)))
        if shares
        else missing_estimate("no item has two usable samples")
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
    has_truth = bool(answers.items_with_truth)
    return ScoreAccuracy(
        pearson_r=_to_correlation_estimate(pearson(means, truth)) if has_truth else missing_estimate(NO_TRUTH_REASON),
        spearman_rho=_to_correlation_estimate(spearman(means, truth))
        if has_truth
        else missing_estimate(NO_TRUTH_REASON),
        mae=to_estimate(mae(means, truth)) if has_truth else missing_estimate(NO_TRUTH_REASON),
        bias=to_estimate(bias(means, truth)) if has_truth else missing_estimate(NO_TRUTH_REASON),
        spread=estimate_mean(spread, "no item has two usable samples"),
    )


def _to_correlation_estimate(correlation: Correlation) -> Estimate:
    """Convert a correlation over items to an estimate, with its reason in terms of the task."""
    reason_labels = {"x constant": "all scores are the same", "y constant": "all truths are the same"}
    reason = correlation.reason and reason_labels.get(correlation.reason, correlation.reason.replace("pairs", "items"))
    return Estimate(
        value=correlation.r, n=correlation.n, ci_low=correlation.ci_low, ci_high=correlation.ci_high, reason=reason
    )


def _build_item_report(answers: TaskAnswerSet, item: TaskItem) -> TaskItemReport:
    """Build the report of one item: question, truth, share of right answers, and each model's commonest answer."""
    right_flags = answers.correctness_by_item.get(item.cell, [])
    commonest_by_model = {model: _commonest_answer(answers, model, item.cell) for model in answers.models}
    question = " ".join(item.question.split())
    return TaskItemReport(
        id=item.id,
        question=question if len(question) <= MAX_QUESTION_CHARS else f"{question[:MAX_QUESTION_CHARS]} …",
        truth=item.truth,
        right=estimate_share(sum(right_flags), len(right_flags)) if right_flags else None,
        answers=commonest_by_model,
    )


def _commonest_answer(answers: TaskAnswerSet, model: str, cell: Cell) -> str | None:
    """Most common answer of a model to an item, or its mean score; None without one."""
    sample_answers = answers.by_item.get((model, cell), [])
    if answers.task.kind is AnswerKind.SCORE:
        return f"{fmean(map(float, sample_answers)):.6g}" if sample_answers else None
    return most_common_answer(sample_answers)
