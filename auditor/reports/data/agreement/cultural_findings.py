"""The strongest differences between models and people by country and topic, corrected for the selection.

The intervals of mean signed differences that a finding may be selected from hold together (Bonferroni), over all
countries, topics and series of scores. That a model is further from people in one country than in its others is tested
in each country, with p-values adjusted for all of them (Holm).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.cell_statistics import BIAS
from auditor.metrics.estimate import Estimate, Tested
from auditor.reports.data.agreement.groups import estimate_over_cells
from auditor.reports.data.coverage.lost_samples import LostSamples, SampleCounts, count_samples
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.rescaled_scores import has_rescaled_scores


class CulturalFinding(ReportModel):
    """A difference between one model and people that is distinguishable from none, given all that were compared."""

    model: str
    method: str
    kind: Literal["country", "topic", "distance"]
    """`country`, `topic`: the mean signed difference there is not 0. `distance`: the model is further from people in
    this country than in its other countries, or closer."""
    name: str
    """The country or topic."""
    bias: Estimate | None = None
    """Mean of the model's score minus people's, from -2 to 2; null for `distance`."""
    mae: Estimate | None = None
    """For `distance`, mean absolute error in `name`, from 0 to 2, with the interval of this country alone."""
    mae_ratio: Tested | None = None
    """For `distance`, `mae` divided by the geometric mean of those of the model's other countries; else null."""
    n_same_sign: int | None = None
    """Cells in which the model differs from people in the direction of `bias`; null for `distance`."""
    n_places: int | None = None
    """Number of countries (`country`) or topics (`topic`) compared for this series; null for `distance`."""
    n_places_same_sign: int | None = None
    """How many of these have an interval on the same side of 0 as that of `bias`; null for `distance`."""
    margin: float
    """Smallest difference that the interval allows: of the bias from 0, of `mae` from the other countries' mean."""
    lost_samples: LostSamples
    """Planned samples in `name` without a usable score."""

    @property
    def holds_everywhere(self) -> bool:
        """Whether the difference has the same sign in every country, or on every topic, that was compared."""
        return self.n_places is not None and self.n_places_same_sign == self.n_places


class CulturalFindingsReport(ReportModel):
    """Differences by country and topic that are shown, largest margin first; one per model and kind."""

    compared: int
    """Number of mean signed differences whose intervals hold together; findings are selected from these."""
    compared_distances: int
    """Number of countries of all series in which the distance from people is compared with that of the others."""
    rows: list[CulturalFinding]
    reason: str | None = None
    """Why no interval could be computed; null if there is any."""


class _Place(NamedTuple):
    """One country or topic of one series: its cells with both scores."""

    column: int
    kind: Literal["country", "topic"]
    name: str
    scores: FloatArray
    truth: FloatArray
    in_place: NDArray[np.bool_]


def build_cultural_findings(source: ReportSource, countries: Sequence[GroupErrorRow]) -> CulturalFindingsReport | None:
    """Find each series' clearest difference in a country, on a topic, and between countries; None without scores.

    Args:
        countries: errors of all series in each country.
    """
    columns = [i for i, (method, _) in enumerate(source.columns) if not has_rescaled_scores(method)]
    places = [place for column in columns for place in _iterate_places(source, column)]
    if not places:
        return None
    n_compared = len(places)
    samples = count_samples(source)
    rows: list[CulturalFinding] = []
    reasons: list[str] = []
    for column in columns:
        series_places = [place for place in places if place.column == column]
        biased_places: list[CulturalFinding] = []
        for kind in ("country", "topic"):
            members = [place for place in series_places if place.kind == kind]
            biases = [_estimate_bias(place, n_compared) for place in members]
            reasons += [bias.reason or "" for bias in biases if bias.ci_low is None]
            biased_places += _select_bias(source, members, biases, samples[column])
        # A model that differs in every country differs on nearly every topic: one of the two findings is enough.
        is_general = bool(biased_places) and biased_places[0].kind == "country" and biased_places[0].holds_everywhere
        rows += biased_places[:1] if is_general else biased_places
        rows += _select_distance(row for row in countries if (row.method, row.model) == source.columns[column])
    has_interval = len(reasons) < len(places)
    return CulturalFindingsReport(
        compared=n_compared,
        compared_distances=sum(row.mae_ratio.p_value is not None for row in countries),
        rows=sorted(rows, key=lambda row: -row.margin),
        reason=None if has_interval else reasons[0],
    )


def _iterate_places(source: ReportSource, column: int) -> Iterator[_Place]:
    """Yield the countries and topics in which a series and people have scores."""
    scores, truth = source.score_matrix[column], source.survey_scores
    has_both = ~np.isnan(scores) & ~np.isnan(truth)
    kinds: tuple[tuple[Literal["country", "topic"], Sequence[str], NDArray[np.intp]], ...] = (
        ("country", source.countries, source.country_index),
        ("topic", source.topics, source.topic_index),
    )
    for kind, names, index in kinds:
        for position, name in enumerate(names):
            in_place = index == position
            shared = in_place & has_both
            if shared.any():
                yield _Place(column, kind, name, scores[shared], truth[shared], in_place)


def _estimate_bias(place: _Place, n_compared: int) -> Estimate:
    """The mean signed difference of a place, with an interval that holds together with all others."""
    unit = "topic" if place.kind == "country" else "country"
    return estimate_over_cells(BIAS, place.scores, place.truth, unit, n_compared)


def _select_bias(
    source: ReportSource, places: Sequence[_Place], biases: Sequence[Estimate], samples: SampleCounts
) -> list[CulturalFinding]:
    """The place of one kind whose signed difference is clearest; empty if no interval excludes 0."""
    margins = [max(bias.ci_low or 0.0, -(bias.ci_high or 0.0)) if bias.ci_low is not None else 0.0 for bias in biases]
    if max(margins, default=0.0) <= 0:
        return []
    best = int(np.argmax(margins))
    place, bias = places[best], biases[best]
    method, model = source.columns[place.column]
    differences = place.scores - place.truth
    sign = np.sign(bias.value or 0.0)
    n_same_sign = int((np.sign(differences) == sign).sum())
    n_places_same_sign = sum(
        other_margin > 0 and np.sign(other.value or 0.0) == sign
        for other, other_margin in zip(biases, margins, strict=True)
    )
    return [
        CulturalFinding(
            model=model,
            method=method,
            kind=place.kind,
            name=place.name,
            bias=bias,
            n_same_sign=n_same_sign,
            n_places=len(places),
            n_places_same_sign=int(n_places_same_sign),
            margin=margins[best],
            lost_samples=samples.count_lost(place.in_place),
        )
    ]


def _select_distance(rows: Iterable[GroupErrorRow]) -> list[CulturalFinding]:
    """The country in which one series' distance from people differs most from that in its others; empty if in none."""
    findings = [
        CulturalFinding(
            model=row.model,
            method=row.method,
            kind="distance",
            name=row.name,
            mae=row.mae,
            mae_ratio=row.mae_ratio,
            margin=_measure_margin(row),
            lost_samples=row.lost_samples,
        )
        for row in rows
        if row.mae_ratio.is_significant
    ]
    return sorted(findings, key=lambda finding: -finding.margin)[:1]


def _measure_margin(row: GroupErrorRow) -> float:
    """The smallest difference of an error from the mean of the others that the interval of their ratio allows."""
    low, high = row.mae_ratio.ci_low or 1.0, row.mae_ratio.ci_high or 1.0
    return max(0.0, 1 - 1 / low, 1 / high - 1) * (row.mae.value or 0.0)
