"""Answers to a task: how often they are right, how far samples agree, and what the commonest ones are."""

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
from auditor.metrics.share import mean_share
from auditor.reports.estimate_conversion import estimate_mean, estimate_share, missing_estimate, to_estimate
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import ReportSource
from auditor.reports.task.schema import ScoreAccuracy, TaskItemReport, TaskModelRow, TaskReport
from auditor.tasks import is_correct, most_common_answer

NO_TRUTH_REASON = "no item has a known truth"
NO_TOLERANCE_REASON = "no tolerance says how near the truth is right"
MAX_QUESTION_CHARS = 300


@dataclass(frozen=True)
class TaskAnswerSet:
    """An audit's answers by what they are worth.

    Attributes:
        task: what was asked.
        models: all audited, in order.
        given: every usable answer, by model, item and sample.
        samples: planned of each model on each item.
    """

    task: Task
    models: Sequence[str]
    usable_answers: Mapping[tuple[str, Cell, int], str]
    samples_per_item: int

    @cached_property
    def by_item(self) -> Mapping[tuple[str, Cell], list[str]]:
        """Usable answers by model and item, in order of the samples."""
        found: dict[tuple[str, Cell], list[str]] = defaultdict(list)
        for model, cell, sample in sorted(self.usable_answers):
            found[model, cell].append(self.usable_answers[model, cell, sample])
        return found

    @cached_property
    def correctness(self) -> Mapping[tuple[str, Cell, int], bool]:
        """Whether each usable answer is right, of those of which that is known."""
        known = {
            key: is_correct(self.task, self.task.item_for(key[1]), said) for key, said in self.usable_answers.items()
        }
        return {key: value for key, value in known.items() if value is not None}

    @cached_property
    def correctness_by_item(self) -> Mapping[Cell, list[bool]]:
        """The same by item, over all models."""
        found: dict[Cell, list[bool]] = defaultdict(list)
        for (_, cell, _), value in self.correctness.items():
            found[cell].append(value)
        return found

    @property
    def items_with_truth(self) -> list[TaskItem]:
        """Items whose truth is known."""
        return [item for item in self.task.items.values() if item.truth is not None]

    @property
    def accuracy_missing_reason(self) -> str | None:
        """Why nothing is said to be right; None where it is."""
        if not self.items_with_truth:
            return NO_TRUTH_REASON
        return NO_TOLERANCE_REASON if self.task.kind is AnswerKind.SCORE and self.task.tolerance is None else None


def build_task_report(source: ReportSource) -> TaskReport | None:
    """What models answered; None for an audit of a survey."""
    from auditor.reports.task.peer_validity import build_peer_validity_report

    found, config = source.survey.task, source.config
    if found is None or config is None:
        return None
    answers = TaskAnswerSet(found, source.models, source.task_answers, config.direct.samples)
    rows = [_build_model_row(answers, model) for model in source.models]
    options = [1 / len(item.options) for item in answers.items_with_truth if item.options]
    return TaskReport(
        source=found.source,
        kind=found.kind,
        range=found.range,
        tolerance=found.tolerance,
        samples=answers.samples_per_item,
        chance=fmean(options) if options else None,
        models=rows,
        telling=build_peer_validity_report(source, answers, rows),
        items=[_build_item_report(answers, item) for item in found.items.values()],
    )


def _build_model_row(answers: TaskAnswerSet, model: str) -> TaskModelRow:
    cells = [item.cell for item in answers.items_with_truth]
    mine = {cell: answers.by_item.get((model, cell), []) for cell in cells}
    hits = Counter(cell for (who, cell, _), ok in answers.correctness.items() if who == model and ok)
    usable, planned = sum(map(len, mine.values())), len(cells) * answers.samples_per_item
    right = hits.total()
    is_known = answers.accuracy_missing_reason is None and planned > 0
    decided = {cell: held for cell, said in mine.items() if (held := most_common_answer(said)) is not None}
    voted = [is_correct(answers.task, answers.task.item_for(cell), held) for cell, held in decided.items()]
    return TaskModelRow(
        model=model,
        planned=planned,
        usable=usable,
        accuracy=_estimate_accuracy(answers, [hits[c] for c in cells], [len(mine[c]) for c in cells]),
        bound_low=right / planned if is_known else None,
        bound_high=(right + planned - usable) / planned if is_known else None,
        commonest=estimate_share(sum(map(bool, voted)), len(voted))
        if is_known
        else missing_estimate(answers.accuracy_missing_reason or NO_TRUTH_REASON),
        undecided=sum(bool(said) for said in mine.values()) - len(decided),
        sample_agreement=_estimate_sample_agreement(answers, model),
        score=_compute_score_accuracy(answers, model) if answers.task.kind is AnswerKind.SCORE else None,
    )


def _estimate_accuracy(answers: TaskAnswerSet, hits: Sequence[int], counts: Sequence[int]) -> Estimate:
    if answers.accuracy_missing_reason is not None:
        return missing_estimate(answers.accuracy_missing_reason)
    return to_estimate(clustered_share(hits, counts, "no answer could be read"))


def _estimate_sample_agreement(answers: TaskAnswerSet, model: str) -> Estimate:
    """Of every item the share of pairs of samples that are the same; Wilson's interval over items is wide enough."""
    shares = [
        sum(comb(n, 2) for n in Counter(said).values()) / comb(len(said), 2)
        for item in answers.task.items.values()
        if len(said := answers.by_item.get((model, item.cell), [])) > 1
    ]
    return (
        to_estimate(mean_share(sum(shares), len(shares)))
        if shares
        else missing_estimate("no item has two usable samples")
    )


def _compute_score_accuracy(answers: TaskAnswerSet, model: str) -> ScoreAccuracy:
    values = {
        item.id: [float(said) for said in answers.by_item.get((model, item.cell), [])]
        for item in answers.task.items.values()
    }
    truth = np.array([float(item.truth or "nan") for item in answers.items_with_truth])
    means = np.array([fmean(values[item.id]) if values[item.id] else np.nan for item in answers.items_with_truth])
    spread = np.array([stdev(said) if len(said) > 1 else np.nan for said in values.values()])
    known = bool(answers.items_with_truth)
    return ScoreAccuracy(
        pearson_r=_to_correlation_estimate(pearson(means, truth)) if known else missing_estimate(NO_TRUTH_REASON),
        spearman_rho=_to_correlation_estimate(spearman(means, truth)) if known else missing_estimate(NO_TRUTH_REASON),
        mae=to_estimate(mae(means, truth)) if known else missing_estimate(NO_TRUTH_REASON),
        bias=to_estimate(bias(means, truth)) if known else missing_estimate(NO_TRUTH_REASON),
        spread=estimate_mean(spread, "no item has two usable samples"),
    )


def _to_correlation_estimate(correlation: Correlation) -> Estimate:
    words = {"x constant": "all scores are the same", "y constant": "all truths are the same"}
    reason = correlation.reason and words.get(correlation.reason, correlation.reason.replace("pairs", "items"))
    return Estimate(
        value=correlation.r, n=correlation.n, ci_low=correlation.ci_low, ci_high=correlation.ci_high, reason=reason
    )


def _build_item_report(answers: TaskAnswerSet, item: TaskItem) -> TaskItemReport:
    mine = answers.correctness_by_item.get(item.cell, [])
    held = {model: _commonest_answer(answers, model, item.cell) for model in answers.models}
    text = " ".join(item.question.split())
    return TaskItemReport(
        id=item.id,
        question=text if len(text) <= MAX_QUESTION_CHARS else f"{text[:MAX_QUESTION_CHARS]} …",
        truth=item.truth,
        right=estimate_share(sum(mine), len(mine)) if mine else None,
        answers=held,
    )


def _commonest_answer(answers: TaskAnswerSet, model: str, cell: Cell) -> str | None:
    said = answers.by_item.get((model, cell), [])
    if answers.task.kind is AnswerKind.SCORE:
        return f"{fmean(map(float, said)):.6g}" if said else None
    return most_common_answer(said)
