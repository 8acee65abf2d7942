"""Schema of the measured parts of a report: agreement with people, consistency, peer agreement.

A figure that cannot be measured is null with a reason, never 0; every estimate has an n. The whole report is in
`auditor.reports.data.report_schema`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, create_model

from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.metrics.intervals.estimate import SHARED_LEVEL, Estimate, ShareEstimate, Tested
from auditor.metrics.people.over_models import ModelCorrelation
from auditor.metrics.people.structure import Structure
from auditor.metrics.people.survey_error import RangeCorrection
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.coverage.lost_samples import (
    LostSamples,
    LostSamplesShown,
    WorstCaseDifferences,
    WorstCaseFigures,
    has_unknown_sign,
)
from auditor.reports.data.report_model import (
    CORRELATION_COLUMNS,
    ClaimTest,
    FlatRow,
    ModelName,
    PublishedAs,
    ReportModel,
    RowTest,
    p_column,
)
from auditor.reports.document import Column

# --- agreement with people --------------------------------------------------------------------------------------


class RegionRow(FlatRow):
    """Agreement of one model with people in one region."""

    model: ModelName
    method: str
    region: Annotated[str, Column("Region", "name")]
    countries: Annotated[int, Column("Countries")]
    mae: Annotated[Estimate, Column("MAE", show_n=False, emphasis=True)]
    pearson_r: Annotated[
        Estimate,
        PublishedAs({"value": "pearson_r", "ci_low": "ci_low", "ci_high": "ci_high", "reason": "reason"}),
        Column("r", key="r", show_n=False),
    ]
    """Its interval is over other countries of the region and other topics, computed like that of MAE."""
    n: Annotated[int, Column("Cells")]
    n_dropped: Annotated[int, Column("Dropped")]
    lost_samples: LostSamplesShown
    """Planned samples of the region without a usable score, such as refusals."""
    worst_case: WorstCaseFigures | None = None
    """Bounds of r, MAE and bias over all planned samples; null unless more than 5% of them are lost."""


BOUND_COLUMNS = tuple(
    replace(column, style="signed", table="region-gap-bounds")
    for figure, label in (("mae", "MAE"), ("pearson_r", "r"))
    for column in (
        Column(f"Smallest gap in {label}", part=f"{figure}.bound_low"),
        Column(f"Largest gap in {label}", part=f"{figure}.bound_high"),
        Column(f"95% CI of the gap in {label} over all planned samples", "interval", part=figure),
    )
)
"""Columns of the worst-case bounds of gaps between regions."""


class RegionGapRow(FlatRow):
    """Differences of one model's MAE and r between two regions. Where the worst-case bounds of a difference include 0,
    its `reason` says that lost samples leave its sign open."""

    model: ModelName
    method: str
    first: Annotated[str, Column("Regions", key="regions")]
    second: str
    mae_gap: Annotated[
        RowTest, Column("Gap in MAE", style="signed", table="region-gaps"), p_column(table="region-gaps")
    ]
    """MAE in the second region minus MAE in the first: positive if the model is worse in the second. The interval is
    over countries and topics; that of the largest of several gaps, and its p-value, are corrected for that choice."""
    bias_gap: Annotated[
        Tested,
        Column("Gap in bias", style="signed", table="region-gaps"),
        p_column("p of bias (adjusted)", path="bias_gap.adjusted_p_value", table="region-gaps"),
    ]
    """Bias in the second region minus bias in the first: positive if the model is more permissive, relative to people,
    in the second. Its p-value is adjusted for the models, apart from those of `mae_gap`."""
    r_gap: Annotated[Estimate, Column("Gap in r", style="signed", table="region-gaps")]
    """r in the second region minus r in the first: negative if the model is worse in the second. The interval is that
    of the difference on Fisher's z."""
    range_corrected: RangeCorrection | None = None
    """r in both regions as it would be if people's scores varied equally in them, the gap of these (second minus
    first), and what it rests on: the slope on people's scores and the residual standard deviation. `r_gap` is mostly a
    difference of range where errors are equal; no sentence tests either."""
    first_lost_samples: LostSamples
    """Planned samples of the first region without a usable score, such as refusals."""
    second_lost_samples: LostSamples
    worst_case: Annotated[WorstCaseDifferences | None, *BOUND_COLUMNS] = None
    """Bounds of the differences over all planned samples; null unless more than 5% of the samples of a region are lost,
    or the shares of the two regions differ by more than 5 points."""
    compared: int
    """Number of regions compared. Of more than two, these two differ most in MAE for this model (in r for scores
    without errors); the intervals are corrected for that choice and hold for all pairs simultaneously."""
    left_out: list[str]
    """Regions with too few countries to be compared."""

    @property
    def is_gap_shown(self) -> bool:
        """Whether the MAE is shown to differ, given the number of models, whatever lost samples would have scored."""
        is_open = self.worst_case is not None and has_unknown_sign(self.worst_case.mae)
        return self.mae_gap.is_significant_at(SHARED_LEVEL) and not is_open

    @property
    def by_error(self) -> tuple[str, str]:
        """The region with the larger MAE, and the other."""
        return (self.second, self.first) if (self.mae_gap.value or 0.0) > 0 else (self.first, self.second)


class RegionsReport(ReportModel):
    """Agreement with people by region."""

    grouping: str
    """Name of the built-in grouping, or of the file that defines it."""
    title: str
    rows: list[RegionRow]
    gaps: list[RegionGapRow]
    """One row for each model: its gap between the two regions, or between the two that differ most of several."""
    ungrouped: list[str]
    """Countries that are in no region of the grouping; they are in no row."""


class GroupErrorRow(FlatRow):
    """Errors of one model on one topic, with intervals over other zones or countries; or in one country, over other
    topics."""

    name: str
    model: str
    method: str
    n: int
    n_dropped: int
    mae: Estimate
    mae_simultaneous: Estimate
    """`mae` with an interval that holds for all topics, or all countries, of the model together (Bonferroni): for those
    that are picked since their error is the largest."""
    mae_ratio: Tested
    """`mae` divided by the geometric mean of those of the model's other topics, or countries; tested against 1. The
    adjusted p-value is for all models and all topics, or all countries."""
    bias: Estimate
    """Its interval is Student's."""
    pearson_r: Annotated[
        Estimate,
        PublishedAs(
            {"value": "pearson_r", "ci_low": "pearson_r_ci_low", "ci_high": "pearson_r_ci_high", "reason": "r_reason"}
        ),
    ]
    """Over the topic's countries, or the country's topics; null for fewer than three, or constant scores."""
    lost_samples: LostSamples
    """Planned samples of the topic or country without a usable score, such as refusals."""
    mae_bound_low: float | None = Field(default=None, exclude=True)
    """The smallest MAE over all planned samples, whatever the lost ones would have scored; null if there is none. Only
    gates use it."""


# --- ceiling, baselines and nonresponse -------------------------------------------------------------------------


class CeilingRow(ReportModel):
    """Upper limit of r: the survey's split-half reliability, over random halves of its respondents."""

    scope: str
    """`all`: over all cells of the survey. `within topics`: after each topic's mean over countries is subtracted."""
    reliability: Estimate
    """Split-half reliability over all cells of the survey, not only those of the audit; the interval is over splits."""
    largest_r: float | None
    """The r that a perfect model is expected to reach: the square root of the reliability."""


class BaselineRow(FlatRow):
    """Agreement of a baseline without a model, on the cells on which one model has a score."""

    model: ModelName
    method: str
    baseline: Annotated[str, Column("Baseline")]
    """Name of the baseline, which predicts a cell by a mean of people's scores in the audit's survey."""
    pearson_r: Estimate
    """r of the means including the predicted cell, so an upper limit: leaving the cell out lowers r, within a topic to
    -1."""
    mae: Estimate
    """MAE of the means without the predicted cell."""
    mae_difference: Annotated[RowTest, Column("Difference in MAE", style="signed", emphasis=True), p_column()]
    """MAE of the model minus `mae`, on the same cells: negative if the model is nearer to people than the baseline."""


class StructureRow(ClaimTest):
    """Whether one model relates topics to each other as people do, over countries."""

    model: ModelName
    method: str
    structure: Annotated[
        Structure,
        Column("Difference", part="raw", show_n=False, emphasis=True),
        Column("p", part="raw.p_value", style="p_value"),
        Column("Without country means", part="without_country_means", show_n=False),
        Column("p (without means)", part="without_country_means.p_value", style="p_value"),
    ]
    """Root mean square difference of the correlations among topics from people's, of the scores themselves and with
    country means taken out. The intervals are over other countries; p-values are of no common structure."""
    is_found: Annotated[bool, Column("Found", key="found")]
    """Whether both p-values, adjusted for the models (Holm), are below 0.01."""


GuessLevel = Literal["means", "similar countries"]
"""`means`: of a topic, a country or a region. `similar countries`: estimates that use a country's other answers."""


class GuessClaim(ClaimTest):
    """Whether one model is closer to people than all guesses of a level, by mean absolute error."""

    model: str
    method: str
    level: GuessLevel
    is_closer: bool
    """Whether that is shown, at the 5% level."""


class GainRow(FlatRow):
    """Agreement of one model with people on how countries differ, beyond each topic's mean over countries."""

    model: ModelName
    method: str
    within_topics: Annotated[RowTest, Column("r within topics", key="r_within_topics", emphasis=True)]
    """Pearson's r after each topic's mean over countries is subtracted from both sides; its expectation is 0 for scores
    that are unrelated to differences between countries. The interval is over countries and topics."""


class NonresponseTreatmentRow(ReportModel):
    """Alignment under one treatment of survey respondents without an answer."""

    treatment: str
    alignment: list[AlignmentRow]
    ranking: list[str]
    """Models by mean absolute error, smallest first; those without one by r, after the others."""


class NonresponseBoundsRow(ReportModel):
    """Best and worst case of one model's MAE over all possible opinions of survey respondents without an answer."""

    model: str
    method: str
    n: int
    mae_best: float | None
    mae_worst: float | None
    reason: str | None = None


class NonresponseReport(ReportModel):
    """Sensitivity of the alignment to the treatment of survey respondents without an answer."""

    treatments: list[NonresponseTreatmentRow]
    """The scores that the audit uses come first."""
    not_possible: dict[str, str]
    """Treatments that could not be computed, with the reason for each."""
    bounds: list[NonresponseBoundsRow]
    ranking_holds: bool | None
    """Whether all treatments give the same ranking of models; null with a reason where there is nothing to compare."""
    reason: str | None


# --- consistency and the panel ----------------------------------------------------------------------------------


class ConsistencyRow(ReportModel):
    """Agreement among one model's samples of the same cell, averaged over cells. Intervals are over countries and
    topics."""

    model: ModelName
    method: str
    cosine: Annotated[Estimate, Column("Self-consistency (cosine)")]
    """Mean over cells of the mean pairwise cosine similarity of the embeddings of the samples' reasoning."""
    chance: Annotated[Estimate, Column("Another country and topic")]
    """The same of reasonings about another country and another topic, whose lengths differ by at most 10%: the
    self-consistency that the model has by chance."""
    same_topic: Annotated[Estimate, Column("Another country, same topic")]
    """The same of reasonings about another country and the same topic."""
    above_chance: Annotated[Estimate, Column("Above chance")]
    """Self-consistency minus `chance`, over cells with both. Its interval holds for all rows together (Bonferroni)."""
    variance: Annotated[Estimate, Column("Variance of the score", digits=3)]
    """Mean over cells of the variance of the scores."""
    sign_agreement: Annotated[Estimate, Column("Same sign")]
    """Mean over cells of the share of samples whose score has the cell's most frequent sign."""
    straddling: Annotated[ShareEstimate, Column("Both signs")]
    """Share of cells with samples on both sides of zero."""
    sampling: str | None = None
    """Sampling settings as sent, where they differ between models, so that these figures are not comparable; else
    null."""


class ConsistencyAlignmentRow(ReportModel):
    """Whether models that are more consistent with themselves agree more with people: a correlation over models."""

    method: Annotated[str, Column("Method", "name")]
    figure: Annotated[Literal["cosine", "variance"], Column("Figure")]
    """The figure of `ConsistencyRow` that is correlated with r against people: self-consistency, or sample variance."""
    r: Annotated[ModelCorrelation, *CORRELATION_COLUMNS]


Row = TypeVar("Row", bound=ReportModel)


def _add_aspect_fields(row_class: type[Row]) -> type[Row]:
    """Add a field for each review aspect, with its name: the share of verdicts that find it met."""
    shares: dict[str, Any] = {aspect.name: (ShareEstimate, ...) for aspect in REVIEW_ASPECTS}
    return create_model(
        row_class.__name__, __base__=row_class, __module__=row_class.__module__, __doc__=row_class.__doc__, **shares
    )


@_add_aspect_fields
class PeerAgreementRow(ReportModel):
    """Verdicts of the other models on one model's traces. Intervals are over countries and topics."""

    model: ModelName
    given: Annotated[int, Column("Verdicts")]
    """Number of verdicts."""
    valid: Annotated[int, Column("VALID")]
    """Number of VALID verdicts."""
    agreement: Annotated[ShareEstimate, Column("Share of VALID", emphasis=True)]
    """Peer agreement: the share valid / given."""
