"""What a report says of a task: how often models are right, and whether peers' verdicts tell right answers from wrong.

Intervals are over items: answers of several samples, models and judges to one item rise and fall together.
"""

from __future__ import annotations

from auditor.domain import AnswerKind
from auditor.reports.measurement_schema import Estimate, ReportModel


class ScoreAccuracy(ReportModel):
    """One model's scores against the truth, over items, in the units of the task; an item's score is its mean."""

    pearson_r: Estimate
    spearman_rho: Estimate
    mae: Estimate
    bias: Estimate
    """Mean of the model's score less the truth."""
    spread: Estimate
    """Mean over items of the standard deviation of the samples."""


class TaskModelRow(ReportModel):
    """One model's answers."""

    model: str
    planned: int
    """Samples on items whose truth is known."""
    usable: int
    """Of these, answers that could be read."""
    accuracy: Estimate
    """Share of the usable answers that are right; n counts answers."""
    bound_low: float | None
    """The share if every sample that is not usable were wrong; null where nothing is known to be right."""
    bound_high: float | None
    """The share if every sample that is not usable were right."""
    commonest: Estimate
    """Share of items whose commonest answer is right; n counts items that have one."""
    undecided: int
    """Items with usable answers of which none is the commonest."""
    sample_agreement: Estimate
    """How likely two samples on one item give the same answer: the mean over items with at least two."""
    score: ScoreAccuracy | None
    """Null for other answers than scores."""


class VerdictAccuracyRow(ReportModel):
    """How often answers are right of which judges say one thing."""

    said: str
    """`VALID` or `INVALID`, of single verdicts; `majority VALID` and the like, of answers."""
    n: int
    accuracy: Estimate


class JudgeValidityRow(ReportModel):
    """What one judge says of right and of wrong answers."""

    judge: str
    right: Estimate
    """Share of the verdicts on right answers that say VALID."""
    wrong: Estimate
    """Share of the verdicts on wrong answers that say VALID."""
    difference: Estimate
    """The first less the second: 0 tells nothing, 1 all."""


class PeerValidityReport(ReportModel):
    """Whether peer agreement tells anything about being right."""

    answers: int
    """Answers with a verdict whose truth is known."""
    area: Estimate | None
    """How likely a right answer has the larger share VALID than a wrong one; null where nothing is said to be right."""
    area_within: Estimate | None
    """The same among the answers to one item, so that no item is easier than another."""
    verdicts: list[VerdictAccuracyRow]
    difference: Estimate | None
    """Accuracy of the answers that a verdict calls VALID less that of those it calls INVALID."""
    closeness: Estimate | None
    """For scores: Spearman's correlation over answers of the share VALID with the nearness to the truth."""
    models: Estimate
    """Correlation over models of peer agreement with accuracy; with less MAE for scores that are not right or wrong."""
    judges: list[JudgeValidityRow]


class TaskItemReport(ReportModel):
    """One item and what models answered."""

    id: str
    question: str
    truth: str | None
    right: Estimate | None
    """Share of all models' usable answers that are right; null where nothing is said to be right."""
    answers: dict[str, str | None]
    """By model the commonest answer, or the mean score; null where there is none."""


class TaskReport(ReportModel):
    """The task and what came of it."""

    source: str
    kind: AnswerKind
    range: tuple[float, float] | None
    tolerance: float | None
    samples: int
    """Samples of an item by each model."""
    chance: float | None
    """Accuracy of choosing at random among the options of the items with a truth; null for other answers."""
    models: list[TaskModelRow]
    telling: PeerValidityReport | None
    """Null where no answer was judged, or no truth is known."""
    items: list[TaskItemReport]
    """In the order of the file."""
