"""The measured parts of a report: coverage, agreement with people, consistency, the panel.

What cannot be measured is null beside a reason, never 0; every estimate says its n. See
`auditor.reports.report_schema`.
"""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator


class ReportModel(BaseModel):
    """Any part of a report: frozen, strict about its keys, and without nan or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


class Estimate(ReportModel):
    """A number read off a sample, how large the sample is, and a 95% interval."""

    value: float | None
    n: int
    """What was counted or averaged, such as cells or verdicts."""
    ci_low: float | None = None
    ci_high: float | None = None
    reason: str | None = None
    """Why there is no value, or no interval; or that the interval is over less than it should be."""

    @model_validator(mode="after")
    def _require_reason(self) -> Self:
        if None in (self.value, self.ci_low, self.ci_high) and not self.reason:
            raise ValueError("a missing value or interval needs a reason")
        return self


# --- agreement with people --------------------------------------------------------------------------------------


class TwoWayEstimates(ReportModel):
    """The same figures with intervals over other countries and other topics: jackknife of both as crossed clusters."""

    countries: int
    topics: int
    pearson_r: Estimate
    corrected_r: Estimate
    mae: Estimate
    rmse: Estimate
    bias: Estimate


class AlignmentRow(ReportModel):
    """How well one model's scores agree with what people say, over the cells where both are known."""

    model: str
    survey: str
    method: str
    n: int
    """Pairs of a model's and people's score."""
    pearson_r: float | None
    p_value: float | None
    """Of r = 0, two-sided, by Student's t, which takes cells for independent; see `crossed_p_value`."""
    ci_low: float | None
    ci_high: float | None
    """95% interval of r by Fisher's z, which takes cells for independent."""
    spearman_rho: float | None
    mae: float | None
    rmse: float | None
    n_dropped: int
    """Cells without one side or both."""
    n_without_survey: int
    """Of the dropped, those in which people were not asked."""
    reason: str | None = None
    """Why r, or its interval, is null."""
    spearman_ci_low: float | None
    spearman_ci_high: float | None
    mae_ci_low: float | None
    mae_ci_high: float | None
    rmse_ci_low: float | None
    rmse_ci_high: float | None
    bias: Estimate
    """Mean of model minus people: positive is more permissive than people are."""
    corrected_r: Estimate
    """r as it would be without the noise of few samples a cell (Spearman's correction, on the model's side only)."""
    reliability: float | None
    """Share of the variance of the scores that is not such noise; null, with the reason there, where unknown."""
    crossed: TwoWayEstimates
    crossed_p_value: float | None
    """Of r = 0, two-sided, over countries and topics: below 0.05 where the crossed interval of r leaves out 0. Null
    where there is no such interval."""
    ceiling: float | None = None
    """The r that a perfect model is expected to reach against this survey; null, with the reason under `ceiling`, where
    its respondents are not known."""


class RegionRow(ReportModel):
    """One model in one region."""

    model: str
    method: str
    region: str
    countries: int
    n: int
    n_dropped: int
    pearson_r: float | None
    ci_low: float | None
    ci_high: float | None
    """95% interval of r over other countries of the region and other topics, as that of MAE."""
    mae: Estimate
    reason: str | None = None
    """Why r, or its interval, is null."""


class RegionGapRow(ReportModel):
    """The difference between two regions for one model; bounded where their coverage differs much, and
    withheld where the bounds cross zero."""

    model: str
    method: str
    first: str
    second: str
    mae_gap: Estimate
    """MAE in the second less MAE in the first: positive is worse in the second. Interval over countries and topics."""
    bound_low: float | None = None
    """Where coverage differs too much: the gap if all missing scores suited the second region best and the first worst,
    and the other way round. With zero between them the gap is withheld."""
    bound_high: float | None = None
    compared: int
    """Regions there were to choose from. Of more than two these are the ones furthest apart for this model, and the
    interval allows for the choice: it holds for all pairs at once."""
    left_out: list[str]
    """Regions of too few countries to be compared."""


class RegionsReport(ReportModel):
    """Agreement by region."""

    grouping: str
    """The built-in grouping's name, or the file's."""
    title: str
    rows: list[RegionRow]
    gaps: list[RegionGapRow]
    """One a model: the two regions, or the two furthest apart of several."""
    ungrouped: list[str]
    """Countries that the grouping does not place; they are in no row."""


class GroupErrorRow(ReportModel):
    """One model on one topic, or in one country."""

    name: str
    model: str
    method: str
    n: int
    n_dropped: int
    mae: Estimate
    bias: Estimate


# --- what agreement is worth -----------------------------------------------------------------------------------


class CeilingRow(ReportModel):
    """How high r can be: the survey's agreement with itself, over random halves of its respondents."""

    scope: str
    """`all`: over all cells of the survey. `within topics`: with each topic's mean over countries taken out."""
    reliability: Estimate
    """Split-half reliability of the whole survey, over all its cells, not the audit's alone; interval over splits."""
    largest_r: float | None
    """The r that a perfect model is expected to reach: the square root of the reliability."""


class BaselineRow(ReportModel):
    """What one can say without any model, on the cells that a model has a score on."""

    model: str
    method: str
    baseline: str
    """A mean of cells of the audit's survey."""
    pearson_r: Estimate
    """Of means with the cell itself among them, so at best: leaving it out pushes r down, within a topic to -1."""
    mae: Estimate
    """Of means that leave the cell itself out."""


class GainRow(ReportModel):
    """What a model knows beyond what each topic is like everywhere: how far it agrees on how countries differ."""

    model: str
    method: str
    within_topics: Estimate
    """Pearson's r after each topic's mean over countries is taken out of both sides; 0 is expected of scores that have
    nothing to do with how countries differ. Interval over countries and topics."""
    p_value: float | None
    """Of that r = 0, two-sided; null where there is no interval."""


class NonresponseTreatmentRow(ReportModel):
    """The alignment under one treatment of respondents without an answer."""

    treatment: str
    alignment: list[AlignmentRow]
    ranking: list[str]
    """Models by r, largest first."""


class NonresponseBoundsRow(ReportModel):
    """How near people one model could be, and how far, whatever those without an answer think."""

    model: str
    method: str
    n: int
    mae_best: float | None
    mae_worst: float | None
    reason: str | None = None


class NonresponseReport(ReportModel):
    """Whether the result depends on what becomes of respondents without an answer."""

    treatments: list[NonresponseTreatmentRow]
    """The audit's own scores first."""
    not_possible: dict[str, str]
    """Why a treatment is not there."""
    bounds: list[NonresponseBoundsRow]
    ranking_holds: bool | None
    """Whether all treatments rank the models alike; null with a reason where there is nothing to compare."""
    reason: str | None


# --- consistency and the panel ----------------------------------------------------------------------------------


class ConsistencyRow(ReportModel):
    """How far the samples of a cell agree among themselves, over cells; intervals are over countries and topics."""

    model: str
    method: str
    cosine: Estimate
    """Mean over cells of the mean pairwise cosine of the reasoning's embeddings."""
    variance: Estimate
    """Mean over cells of the variance of the scores."""
    sign_agreement: Estimate
    """Mean over cells of the share of samples with the cell's commonest sign."""
    straddling: Estimate
    """Share of cells whose samples lie on both sides of zero."""


class PeerAgreementRow(ReportModel):
    """What the other models say of one model's traces; intervals are over countries and topics."""

    model: str
    given: int
    """Verdicts given."""
    valid: int
    agreement: Estimate
    """Valid / given."""
    cultural_accuracy: Estimate
    logical_consistency: Estimate
    score_fit: Estimate
