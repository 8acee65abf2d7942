"""The measured parts of a report: coverage, agreement with people, consistency, the panel.

What cannot be measured is null beside a reason, never 0; every estimate says its n. See `auditor.reports.model`.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator


class Part(BaseModel):
    """Any part of a report: frozen, strict about its keys, and without nan or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


class Estimate(Part):
    """A number read off a sample, how large the sample is, and a 95% interval."""

    value: float | None
    n: int
    """What was counted or averaged, such as cells or verdicts."""
    ci_low: float | None = None
    ci_high: float | None = None
    reason: str | None = None
    """Why there is no value, or no interval."""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if None in (self.value, self.ci_low, self.ci_high) and not self.reason:
            raise ValueError("a missing value or interval needs a reason")
        return self


# --- coverage ---------------------------------------------------------------------------------------------------


class CoverageRow(Part):
    """How much of what was planned is there. Planned = ok + all losses + missing."""

    stage: Literal["direct", "review"]
    """`direct`: samples of scores, or comparisons of log-probabilities. `review`: verdicts."""
    method: str | None
    """How scores were measured; null for verdicts."""
    name: str | None
    """The model, country, topic or judge; null for the whole."""
    planned: int
    ok: int
    losses: dict[str, int]
    """By outcome; only those that happened."""
    missing: int
    """Neither ok nor lost for a recorded cause: not asked yet, or imported without."""


class CoveragePart(Part):
    """How much of what was planned is there, seen from all sides."""

    total: list[CoverageRow]
    models: list[CoverageRow]
    """For verdicts: the model whose traces were judged."""
    countries: list[CoverageRow]
    topics: list[CoverageRow]
    judges: list[CoverageRow]


# --- agreement with people --------------------------------------------------------------------------------------


class CrossedPart(Part):
    """The same figures with intervals over other countries and other topics: jackknife of both as crossed clusters."""

    countries: int
    topics: int
    pearson_r: Estimate
    mae: Estimate
    rmse: Estimate
    bias: Estimate


class AlignmentRow(Part):
    """How well one model's scores agree with what people say, over the cells where both are known."""

    model: str
    survey: str
    method: str
    n: int
    """Pairs of a model's and people's score."""
    pearson_r: float | None
    p_value: float | None
    """Of r = 0, two-sided."""
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
    crossed: CrossedPart
    ceiling: float | None = None
    """The r that a perfect model is expected to reach against this survey; null, with the reason under `ceiling`, where
    its respondents are not known."""


class RegionRow(Part):
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
    mae: Estimate
    reason: str | None = None
    """Why r is null."""


class GapRow(Part):
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


class RegionsPart(Part):
    """Agreement by region."""

    grouping: str
    """The built-in grouping's name, or the file's."""
    title: str
    rows: list[RegionRow]
    gaps: list[GapRow]
    """One a model: the two regions, or the two furthest apart of several."""
    ungrouped: list[str]
    """Countries that the grouping does not place; they are in no row."""


class PlaceRow(Part):
    """One model on one topic, or in one country."""

    name: str
    model: str
    method: str
    n: int
    n_dropped: int
    mae: Estimate
    bias: Estimate


# --- what agreement is worth -----------------------------------------------------------------------------------


class CeilingRow(Part):
    """How high r can be: the survey's agreement with itself, over random halves of its respondents."""

    scope: str
    """`all`: over all cells of the survey. `within topics`: with each topic's mean over countries taken out."""
    reliability: Estimate
    """Split-half reliability of the whole survey, over all its cells, not the audit's alone; interval over splits."""
    largest_r: float | None
    """The r that a perfect model is expected to reach: the square root of the reliability."""


class BaselineRow(Part):
    """What one can say without any model, on the cells that a model has a score on."""

    model: str
    method: str
    baseline: str
    """A mean of other cells of the audit's survey; the cell itself is always left out."""
    pearson_r: Estimate
    mae: Estimate


class GainRow(Part):
    """A model's r less a baseline's, over the cells that both have; interval over countries and topics, paired."""

    model: str
    method: str
    baseline: str
    gain: Estimate
    pearson_r: float | None
    """Of the model, over those cells."""
    baseline_r: float | None


class TreatmentRow(Part):
    """The alignment under one treatment of respondents without an answer."""

    treatment: str
    alignment: list[AlignmentRow]
    ranking: list[str]
    """Models by r, largest first."""


class BoundsRow(Part):
    """How near people one model could be, and how far, whatever those without an answer think."""

    model: str
    method: str
    n: int
    mae_best: float | None
    mae_worst: float | None
    reason: str | None = None


class NonresponsePart(Part):
    """Whether the result depends on what becomes of respondents without an answer."""

    treatments: list[TreatmentRow]
    """The audit's own scores first."""
    not_possible: dict[str, str]
    """Why a treatment is not there."""
    bounds: list[BoundsRow]
    ranking_holds: bool | None
    """Whether all treatments rank the models alike; null with a reason where there is nothing to compare."""
    reason: str | None


# --- consistency and the panel ----------------------------------------------------------------------------------


class ConsistencyRow(Part):
    """How far the samples of a cell agree among themselves, over cells."""

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


class PeerRow(Part):
    """What the other models say of one model's traces."""

    model: str
    given: int
    """Verdicts given."""
    valid: int
    agreement: Estimate
    """Valid / given."""
    cultural_accuracy: Estimate
    logical_consistency: Estimate
    score_fit: Estimate
