"""Schema of the differences that `auditor compare --json` prints. They are the second minus the first."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from auditor.metrics.intervals.estimate import BoundedEstimate, Estimate, ShareEstimate, Tested
from auditor.reports.data.agreement.over_models import AttributesReport
from auditor.reports.data.coverage.lost_samples import LostSamples, WorstCaseDifferences
from auditor.reports.data.report_model import FlatRow, JudgeName, ReportModel, RowTest, p_column
from auditor.reports.document import Column, CountShare
from auditor.storage.votes import VerdictFlip

ChangeLabel = Literal["better", "worse", "not told apart", "not measurable"]
"""How the second series differs from the first, at the 5% level after Holm's correction."""


class ComparedSeries(ReportModel):
    """One compared series of scores: those of one model in one audit by one method."""

    label: Annotated[str, Column("Series", "name")]
    audit: str
    model: str
    method: str
    complete: bool
    """Whether its audit has finished."""
    asked: Annotated[int, Column("Cells")]
    """Cells in which people were asked."""
    scored: Annotated[
        int,
        Column("Scored"),
        Column("Share", "share", "share", path="usable"),
        Column("Audit complete", "text", "complete", path="complete"),
    ]
    """Cells in which people were asked and the series has a usable score."""
    sampling: str | None = None
    """Sampling settings as sent, in words; null where they are not known, or no answers are sampled."""

    @property
    def usable(self) -> CountShare:
        """The scored cells out of those in which people were asked."""
        return CountShare(self.scored, self.asked)


class SeriesDifference(FlatRow):
    """Difference of one figure between two series, over the cells on which both have a score."""

    name: str
    """The country, topic or region that the figure is for, or `all`."""
    first: float | None
    second: float | None
    difference: RowTest
    """Second minus first. Its p-value is adjusted for all differences of its kind in the comparison, such as the
    regions of all pairs."""
    change: ChangeLabel


class VerdictDifferences(FlatRow):
    """Comparison of the verdicts that two series, or two judges, have in common."""

    first: str
    second: str
    about: Literal["answers", "cells"]
    """What the paired verdicts are on: `answers` for answers with identical texts and scores. `cells` if no answer is
    identical: then for different answers of the same model, cell and sample, so that the answers changed too."""
    n: int
    """Pairs of verdicts; a trace has one pair for each judge. Verdicts that an adaptive panel requested on disputed
    traces only are left out."""
    traces: int
    """Traces with a pair of verdicts."""
    both_valid: int
    both_invalid: int
    to_valid: int
    """Pairs that are INVALID on the first side and VALID on the second."""
    to_invalid: int
    """Pairs that are VALID on the first side and INVALID on the second."""
    other_answers: int
    """Further pairs of verdicts, on answers that differ or are not recorded; they are in none of the figures."""
    change: RowTest
    """Share of VALID on the second side minus that on the first."""
    kappa: Estimate
    """Agreement of the two sides beyond chance (Scott's pi)."""
    flips: list[VerdictFlip]
    not_listed: int


class ResolutionFlipRow(ReportModel):
    """One conflict that the two audits settled for different sides."""

    country: str
    topic: str
    first_winner: str
    first_by: Literal["majority", "person"]
    """Whether a majority of judges or a person settled it in the first audit."""
    second_winner: str
    second_by: Literal["majority", "person"]


class ResolutionDifferences(ReportModel):
    """How two audits settled the conflicts that both have: those between the same models on the same cell."""

    first: str
    second: str
    shared: int
    """Conflicts that both audits have."""
    n: int
    """Shared conflicts that both audits settled for one of the two sides."""
    flipped: int
    """Conflicts of these n that the two audits settled for different sides."""
    share: ShareEstimate
    """The share flipped / n."""
    only_first: int
    """Shared conflicts settled for a side in the first audit only."""
    only_second: int
    """Shared conflicts settled for a side in the second audit only."""
    neither: int
    """Shared conflicts settled for a side in neither audit."""
    flips: list[ResolutionFlipRow]
    not_listed: int


class CorrectedShareDifferences(FlatRow):
    """Shares of VALID of two series' models, corrected by people's labels on random samples of their traces."""

    first: Estimate
    second: Estimate
    """Corrected shares, for these traces."""
    judges: float
    """Difference by the judges alone, from -1 to 1."""
    difference: RowTest
    """Corrected difference, for these traces."""


class JudgeDriftRow(FlatRow):
    """How far one judge agrees with people in two audits, each with a labelled random sample of its traces."""

    judge: JudgeName
    first_audit: Annotated[str, Column("First audit", "name")]
    second_audit: Annotated[str, Column("Second audit", "name")]
    figure: Annotated[Literal["accuracy", "excess"], Column("Figure", key="title")]
    """`accuracy`: share of the traces on which the judge agrees with a random rater; `excess`: its share of VALID minus
    people's, above 0 for a lenient judge."""
    first: Annotated[Estimate, Column("First")]
    second: Annotated[Estimate, Column("Second")]
    """The figure in each audit, for its traces."""
    change: Annotated[RowTest, Column("Change", style="signed", emphasis=True), p_column()]
    """Second minus first; over other random samples of the traces of both audits."""


CORRECTED_COLUMNS = tuple(
    replace(column, table="corrected-shares")
    for column in (
        Column("First share", key="first_share", part="first"),
        Column("Second share", key="second_share", part="second"),
        Column("Judges", key="judges", part="judges", style="signed"),
        Column("Corrected difference", key="difference", part="difference", style="signed", emphasis=True),
        Column("p (adjusted)", key="adjusted_p_value", part="difference.adjusted_p_value", style="p_value"),
    )
)


class SeriesPairDifferences(ReportModel):
    """Differences between two series of scores, cell by cell."""

    first: Annotated[str, Column("First", "name")]
    second: Annotated[str, Column("Second", "name")]
    shared: Annotated[int, Column("Shared", table="coverage-pairs")]
    """Cells with a score of people and of both series."""
    only_first: Annotated[int, Column("Only first", table="coverage-pairs")]
    """Cells with a score of people and of the first series only."""
    only_second: Annotated[int, Column("Only second", table="coverage-pairs")]
    """Cells with a score of people and of the second series only."""
    neither: Annotated[int, Column("Neither", table="coverage-pairs")]
    """Cells with a score of people and of neither series."""
    truth_differs: Annotated[int, Column("Different scores of people", table="coverage-pairs")]
    """Cells of both surveys in which people's scores differ; they are not compared."""
    sampling_settings_differ: bool = False
    """Whether a server refused sampling settings, so that the two series were asked with different ones."""
    countries: int
    topics: int
    pearson_r: SeriesDifference
    concordance: SeriesDifference
    """Lin's concordance, which is 1 only if scores are equal to people's."""
    mae: SeriesDifference
    first_lost_samples: LostSamples
    """Planned samples of the first series without a usable score, such as refusals, on the cells of both surveys."""
    second_lost_samples: LostSamples
    worst_case: WorstCaseDifferences | None
    """Bounds of the differences over all planned samples; null unless more than 5% of the samples of a series are lost,
    or the shares of the two series differ by more than 5 points."""
    regions: list[SeriesDifference]
    by_country: list[SeriesDifference]
    by_topic: list[SeriesDifference]
    verdicts: VerdictDifferences | None
    corrected_shares: Annotated[CorrectedShareDifferences | None, *CORRECTED_COLUMNS] = None
    """Null unless people labelled enough traces of each model of both audits."""


RegistrationState = Literal["registered", "registered late", "other margin", "not registered"]
"""Whether the hash chain has the claim: before the first answer, after answers, with another margin or baseline, or
not at all."""


class RegionMarginRow(ReportModel):
    """Change in the mean absolute error of one pair of series in one region, against the margin."""

    region: Annotated[str, Column("Region", "name")]
    change: Annotated[Tested, Column("Change in MAE", digits=3, style="signed", emphasis=True)]
    """Second minus first, over the cells of both. The p-value is of a change of the margin or more; the adjusted one
    is for all regions of the pair."""
    passes: Annotated[bool | None, Column("Passes")]
    """Whether the 95% interval ends below the margin, after Holm's correction for the regions; null without one, or if
    lost samples could hide a larger change."""
    worst_case: Annotated[
        BoundedEstimate | None, Column("95% CI over all planned samples", "interval", digits=3, style="signed")
    ] = None
    """Bounds of the change over all planned samples; null unless more than 5% of those of a series are lost here, or
    the shares of the two series differ by more than 5 points."""

    @property
    def is_hidden(self) -> bool:
        """Whether lost samples could hide a change of the margin or more, though the usable ones show none."""
        return self.passes is None and self.change.ci_high is not None


class NonInferiorityReport(ReportModel):
    """Non-inferiority of the second series of a pair."""

    first: str
    second: str
    margin: float
    """Increase in mean absolute error that does not matter, from 0 to 2."""
    registration: RegistrationState
    registered_at: str | None
    """When the claim was added to the hash chain; null if it was not."""
    registered_margin: float | None
    """The margin of the last registration for this baseline; null without one."""
    regions: list[RegionMarginRow]
    overall: RegionMarginRow | None = None
    """All countries together: a test of its own, not corrected for the regions. Null without shared scores."""
    reason: str | None = None
    """Why no region is tested; null if one is."""

    @property
    def passes(self) -> bool:
        """Whether all regions pass."""
        return bool(self.regions) and all(row.passes is True for row in self.regions)

    @property
    def rows(self) -> list[RegionMarginRow]:
        """All countries together, followed by the regions."""
        return [*([self.overall] if self.overall else []), *self.regions]


class UnpairedModel(ReportModel):
    """A model of one of the audits that no other audit has, so that it is not compared."""

    audit: str
    model: str
    is_reference: bool
    """Whether it is of the first audit, with which the others are compared."""

    @property
    def label(self) -> str:
        """The model as users name it: `AUDIT:MODEL`."""
        return f"{self.audit}:{self.model}"


class DifferenceReport(ReportModel):
    """Differences between series of scores."""

    auditor: str
    survey: str
    series: list[ComparedSeries]
    pairs: list[SeriesPairDifferences]
    unpaired: list[UnpairedModel] = Field(default_factory=list)
    """Models that are not compared, since no other of the audits has one of this name."""
    judges: list[VerdictDifferences]
    """Differences between two judges on the same traces; empty unless judges were named."""
    settlements: list[ResolutionDifferences]
    """One entry for each two audits with conflicts in common."""
    judge_drift: list[JudgeDriftRow]
    """Agreement with people of the judges that two audits share; empty unless people labelled traces of both."""
    non_inferiority: list[NonInferiorityReport] = Field(default_factory=list)
    """One entry for each pair with a margin: given to the command, or stated by the later audit's configuration."""
    attributes: AttributesReport | None = None
    """Figures by the attributes of the models of all series; null where none has attributes."""
    tests: int
    """Number of pairs in Holm's correction of the overall figures."""
