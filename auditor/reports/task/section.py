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
from auditor.reports.estimate_conversion import estimate, mean_of, share_of, unmeasured
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import Source
from auditor.reports.task.schema import ScorePart, TaskItemPart, TaskModelRow, TaskPart
from auditor.tasks import commonest, is_right

NO_TRUTH = "no item has a known truth"
NO_RIGHT = "no tolerance says how near the truth is right"
MAX_QUESTION = 300


@dataclass(frozen=True)
class Answers:
    """An audit's answers by what they are worth.

    Attributes:
        task: what was asked.
        models: all audited, in order.
        given: every usable answer, by model, item and sample.
        samples: planned of each model on each item.
    """

    task: Task
    models: Sequence[str]
    given: Mapping[tuple[str, Cell, int], str]
    samples: int

    @cached_property
    def by_item(self) -> Mapping[tuple[str, Cell], list[str]]:
        """Usable answers by model and item, in order of the samples."""
        found: dict[tuple[str, Cell], list[str]] = defaultdict(list)
        for model, cell, sample in sorted(self.given):
            found[model, cell].append(self.given[model, cell, sample])
        return found

    @cached_property
    def right(self) -> Mapping[tuple[str, Cell, int], bool]:
        """Whether each usable answer is right, of those of which that is known."""
        known = {key: is_right(self.task, self.task.item_of(key[1]), said) for key, said in self.given.items()}
        return {key: value for key, value in known.items() if value is not None}

    @cached_property
    def right_on(self) -> Mapping[Cell, list[bool]]:
        """The same by item, over all models."""
        found: dict[Cell, list[bool]] = defaultdict(list)
        for (_, cell, _), value in self.right.items():
            found[cell].append(value)
        return found

    @property
    def known(self) -> list[TaskItem]:
        """Items whose truth is known."""
        return [item for item in self.task.items.values() if item.truth is not None]

    @property
    def why_not(self) -> str | None:
        """Why nothing is said to be right; None where it is."""
        if not self.known:
            return NO_TRUTH
        return NO_RIGHT if self.task.kind is AnswerKind.SCORE and self.task.tolerance is None else None


def task(source: Source) -> TaskPart | None:
    """What models answered; None for an audit of a survey."""
    from auditor.reports.task.peer_validity import telling

    found, config = source.survey.task, source.config
    if found is None or config is None:
        return None
    answers = Answers(found, source.models, source.answers, config.direct.samples)
    rows = [_model(answers, model) for model in source.models]
    options = [1 / len(item.options) for item in answers.known if item.options]
    return TaskPart(
        source=found.source,
        kind=found.kind,
        range=found.range,
        tolerance=found.tolerance,
        samples=answers.samples,
        chance=fmean(options) if options else None,
        models=rows,
        telling=telling(source, answers, rows),
        items=[_item(answers, item) for item in found.items.values()],
    )


def _model(answers: Answers, model: str) -> TaskModelRow:
    cells = [item.cell for item in answers.known]
    mine = {cell: answers.by_item.get((model, cell), []) for cell in cells}
    hits = Counter(cell for (who, cell, _), ok in answers.right.items() if who == model and ok)
    usable, planned = sum(map(len, mine.values())), len(cells) * answers.samples
    right = hits.total()
    is_known = answers.why_not is None and planned > 0
    decided = {cell: held for cell, said in mine.items() if (held := commonest(said)) is not None}
    voted = [is_right(answers.task, answers.task.item_of(cell), held) for cell, held in decided.items()]
    return TaskModelRow(
        model=model,
        planned=planned,
        usable=usable,
        accuracy=_accuracy(answers, [hits[c] for c in cells], [len(mine[c]) for c in cells]),
        bound_low=right / planned if is_known else None,
        bound_high=(right + planned - usable) / planned if is_known else None,
        commonest=share_of(sum(map(bool, voted)), len(voted)) if is_known else unmeasured(answers.why_not or NO_TRUTH),
        undecided=sum(bool(said) for said in mine.values()) - len(decided),
        sample_agreement=_sample_agreement(answers, model),
        score=_scores(answers, model) if answers.task.kind is AnswerKind.SCORE else None,
    )


def _accuracy(answers: Answers, hits: Sequence[int], counts: Sequence[int]) -> Estimate:
    if answers.why_not is not None:
        return unmeasured(answers.why_not)
    return estimate(clustered_share(hits, counts, "no answer could be read"))


def _sample_agreement(answers: Answers, model: str) -> Estimate:
    """Of every item the share of pairs of samples that are the same; Wilson's interval over items is wide enough."""
    shares = [
        sum(comb(n, 2) for n in Counter(said).values()) / comb(len(said), 2)
        for item in answers.task.items.values()
        if len(said := answers.by_item.get((model, item.cell), [])) > 1
    ]
    return estimate(mean_share(sum(shares), len(shares))) if shares else unmeasured("no item has two usable samples")


def _scores(answers: Answers, model: str) -> ScorePart:
    values = {
        item.id: [float(said) for said in answers.by_item.get((model, item.cell), [])]
        for item in answers.task.items.values()
    }
    truth = np.array([float(item.truth or "nan") for item in answers.known])
    means = np.array([fmean(values[item.id]) if values[item.id] else np.nan for item in answers.known])
    spread = np.array([stdev(said) if len(said) > 1 else np.nan for said in values.values()])
    known = bool(answers.known)
    return ScorePart(
        pearson_r=_correlation(pearson(means, truth)) if known else unmeasured(NO_TRUTH),
        spearman_rho=_correlation(spearman(means, truth)) if known else unmeasured(NO_TRUTH),
        mae=estimate(mae(means, truth)) if known else unmeasured(NO_TRUTH),
        bias=estimate(bias(means, truth)) if known else unmeasured(NO_TRUTH),
        spread=mean_of(spread, "no item has two usable samples"),
    )


def _correlation(found: Correlation) -> Estimate:
    words = {"x constant": "all scores are the same", "y constant": "all truths are the same"}
    reason = found.reason and words.get(found.reason, found.reason.replace("pairs", "items"))
    return Estimate(value=found.r, n=found.n, ci_low=found.ci_low, ci_high=found.ci_high, reason=reason)


def _item(answers: Answers, item: TaskItem) -> TaskItemPart:
    mine = answers.right_on.get(item.cell, [])
    held = {model: _held(answers, model, item.cell) for model in answers.models}
    text = " ".join(item.question.split())
    return TaskItemPart(
        id=item.id,
        question=text if len(text) <= MAX_QUESTION else f"{text[:MAX_QUESTION]} …",
        truth=item.truth,
        right=share_of(sum(mine), len(mine)) if mine else None,
        answers=held,
    )


def _held(answers: Answers, model: str, cell: Cell) -> str | None:
    said = answers.by_item.get((model, cell), [])
    if answers.task.kind is AnswerKind.SCORE:
        return f"{fmean(map(float, said)):.6g}" if said else None
    return commonest(said)
