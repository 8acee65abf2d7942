"""Schema of the section on a task: accuracy of models, and validity of peer verdicts.

Intervals are over items: answers of several samples, models and judges to one item are correlated.
"""

from __future__ import annotations

from typing import Annotated

from auditor.domain import AnswerKind
from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.metrics.model_correlation import ModelCorrelation
from auditor.reports.data.report_model import JudgeName, ModelName, ReportModel
from auditor.reports.document import Column


class ScoreAccuracy(ReportModel):
    """One model's scores against the truth, over items, in the units of the task; an item's score is its mean."""

    pearson_r: Estimate
    spearman_rho: Estimate
    mae: Estimate
    bias: Estimate
    """Mean of the model's score minus the truth."""
    spread: Estimate
    """Mean over items of the standard deviation of the samples."""


class TaskModelRow(ReportModel):
    """Accuracy and agreement of one model's answers."""

    model: ModelName
    accuracy: Annotated[ShareEstimate, Column("Accuracy", emphasis=True)]
    """Share of the usable answers that are right; n counts answers."""
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
    """Association of peer verdicts with correctness."""

    answers: int
    """Answers with a verdict and a known truth."""
    area: Estimate | None
    """AUC: how likely a right answer has the larger share VALID than a wrong one; null if correctness is unknown."""
    area_within: Estimate | None
    """AUC among answers to the same item, which removes differences in difficulty between items."""
    verdicts: list[VerdictAccuracyRow]
    difference: Estimate | None
    """Accuracy of the answers with a verdict VALID minus that of those with a verdict INVALID."""
    closeness: Estimate | None
    """For scores: Spearman's correlation over answers of the share VALID with closeness to the truth."""
    models: ModelCorrelation
    """Correlation over models of peer agreement with accuracy; with minus the MAE for scores without a tolerance."""
    judges: list[JudgeValidityRow]


class RaterTestRow(ReportModel):
    """The alternative annotator test of one model against the people who answered the same items."""

    model: ModelName
    epsilon: Annotated[float, Column("ε")]
    """What the lower cost of the model is worth, as a share of items."""
    passed: Annotated[bool | None, Column("Passes", emphasis=True)]
    """Whether the model may replace a rater: its winning rate is at least 0.5; null if the test was not possible."""
    winning_rate: Annotated[float | None, Column("Wins against")]
    """Share of the raters that the model wins against."""
    advantage_probability: Annotated[float | None, Column("At least as close")]
    """Mean over raters of the share of items on which the model is at least as close to the other raters."""
    items: Annotated[int, Column("Items")]
    reason: Annotated[str | None, Column("Remark")] = None


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


class TaskReport(ReportModel):
    """The task, the models' results and the items."""

    source: str
    kind: AnswerKind
    range: tuple[float, float] | None
    tolerance: float | None
    samples: int
    """Samples of each model on each item."""
    chance: float | None
    """Expected accuracy of a random choice among the options, over items with a truth; null without options."""
    models: list[TaskModelRow]
    telling: PeerValidityReport | None
    """Null where no answer was judged, or no truth is known."""
    raters: RaterReport | None = None
    """Null unless people's answers were imported too."""
    items: list[TaskItemReport]
    """Items in the order of the task file."""
