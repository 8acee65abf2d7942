"""A comparison as data: what `auditor compare --json` prints. Differences are the second's less the first's."""

from __future__ import annotations

from typing import Literal

from auditor.reports.measures import Estimate, Part

Change = Literal["better", "worse", "not told apart", "not measurable"]
"""What became of the second beside the first, at 5% after Holm's correction."""


class SeriesPart(Part):
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


class DifferencePart(Part):
    """How two series differ in one figure over the cells that both have."""

    name: str
    """What it is about: a country, a topic, a region, or all."""
    first: float | None
    second: float | None
    difference: Estimate
    p_value: float | None
    p_holm: float | None
    """Corrected for all differences of its kind in this comparison."""
    change: Change


class FlipPart(Part):
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


class VerdictsPart(Part):
    """The verdicts that two series, or two judges, share."""

    first: str
    second: str
    n: int
    """Traces with a valid verdict in both."""
    both_valid: int
    both_invalid: int
    to_valid: int
    """INVALID in the first, VALID in the second."""
    to_invalid: int
    change: Estimate
    """Share of VALID in the second less that in the first; takes traces for independent."""
    p_value: float | None
    """Exact, of flips in both directions being as likely (McNemar)."""
    kappa: Estimate
    """Agreement of the two beyond chance."""
    flips: list[FlipPart]
    not_listed: int


class PairPart(Part):
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
    pearson_r: DifferencePart
    mae: DifferencePart
    bounds: tuple[float, float] | None
    """Where the coverages differ: least and largest difference of MAE over all cells, whatever is missing would be."""
    regions: list[DifferencePart]
    by_country: list[DifferencePart]
    by_topic: list[DifferencePart]
    verdicts: VerdictsPart | None


class Comparison(Part):
    """Series of scores side by side."""

    auditor: str
    survey: str
    series: list[SeriesPart]
    pairs: list[PairPart]
    judges: list[VerdictsPart]
    """Two judges on the same traces, where they were named."""
    tests: int
    """Pairs that Holm's correction of the overall figures counts."""
    replicates: int
    """Of the bootstrap."""
