"""A comparison as data: what `auditor compare --json` prints. Differences are the second's less the first's."""

from __future__ import annotations

from typing import Literal

from auditor.reports.measurement_schema import Estimate, ReportModel

ChangeLabel = Literal["better", "worse", "not told apart", "not measurable"]
"""What became of the second beside the first, at 5% after Holm's correction."""


class ComparedSeries(ReportModel):
    """One series of scores that is compared: a model of an audit, asked in one way."""

    label: str
    audit: str
    model: str
    method: str
    complete: bool
    """Whether its audit ran to its end."""
    asked: int
    """Cells in which people were asked."""
    scored: int
    """Of these, the cells with a usable score."""


class SeriesDifference(ReportModel):
    """How two series differ in one figure over the cells that both have."""

    name: str
    """What it is about: a country, a topic, a region, or all."""
    first: float | None
    second: float | None
    difference: Estimate
    p_value: float | None
    p_holm: float | None
    """Corrected for all differences of its kind in this comparison: over all pairs, and all regions, say, of each."""
    change: ChangeLabel


class VerdictFlipRow(ReportModel):
    """One verdict that is another in the second."""

    judge: str
    other_judge: str
    model: str
    """As the first side names it."""
    country: str
    topic: str
    sample: int
    first: str
    second: str
    same_answer: bool | None
    """Whether the judged answer is the same, word for word, so that the judge changed; null where none is known."""


class VerdictComparison(ReportModel):
    """The verdicts that two series, or two judges, share."""

    first: str
    second: str
    about: Literal["answers", "cells"]
    """What both sides ruled on: the same answers, word for word, or, where no answer is the same, other answers on the
    same model, cell and sample; then the answers changed, and not only the judges."""
    n: int
    """Pairs of verdicts; on one trace as many as there are judges. Those that an adaptive panel asked for on disputed
    traces only are left out."""
    traces: int
    """Traces that they are on."""
    both_valid: int
    both_invalid: int
    to_valid: int
    """INVALID in the first, VALID in the second."""
    to_invalid: int
    other_answers: int
    """Further pairs of verdicts, on answers that are not the same or not recorded, and in no figure."""
    change: Estimate
    """Share of VALID in the second less that in the first; the interval is over cells."""
    p_value: float | None
    """Two-sided, of a sign-flip test over cells."""
    kappa: Estimate
    """Agreement of the two beyond chance (Scott's pi); the interval is over cells."""
    flips: list[VerdictFlipRow]
    not_listed: int


class ResolutionFlipRow(ReportModel):
    """One conflict that was settled for one side in the first audit, and for the other in the second."""

    country: str
    topic: str
    first_winner: str
    first_by: Literal["majority", "person"]
    """Whether judges or people settled it."""
    second_winner: str
    second_by: Literal["majority", "person"]


class ResolutionComparison(ReportModel):
    """What became of the same conflicts, between the same models on the same cell, in two audits."""

    first: str
    second: str
    shared: int
    """Conflicts that both audits found."""
    n: int
    """Of these, those that both settled for one of the two sides."""
    flipped: int
    """Of n, those settled for one side in the first and for the other in the second."""
    share: Estimate
    """Flipped / n, Wilson's interval; takes conflicts for independent."""
    only_first: int
    """Of the shared, settled for a side in the first only."""
    only_second: int
    neither: int
    flips: list[ResolutionFlipRow]
    not_listed: int


class SeriesPairComparison(ReportModel):
    """Two series, cell by cell."""

    first: str
    second: str
    shared: int
    """Cells with people's score and both series' scores."""
    only_first: int
    only_second: int
    neither: int
    truth_differs: int
    """Cells both were asked about, but with another people's score; they are not compared."""
    countries: int
    topics: int
    pearson_r: SeriesDifference
    mae: SeriesDifference
    bounds: tuple[float, float] | None
    """Where the coverages differ: least and largest difference of MAE over all cells, whatever is missing would be."""
    regions: list[SeriesDifference]
    by_country: list[SeriesDifference]
    by_topic: list[SeriesDifference]
    verdicts: VerdictComparison | None


class ComparisonReport(ReportModel):
    """Series of scores side by side."""

    auditor: str
    survey: str
    series: list[ComparedSeries]
    pairs: list[SeriesPairComparison]
    judges: list[VerdictComparison]
    """Two judges on the same traces, where they were named."""
    settlements: list[ResolutionComparison]
    """One for each two audits with conflicts in common."""
    tests: int
    """Pairs that Holm's correction of the overall figures counts."""
