"""Agreement with people by topic and country: the strongest differences, places, and shortfalls against thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Method
from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.intervals.estimate import SHARED_LEVEL, Estimate, Tested, bonferroni_level, complete_cases
from auditor.metrics.intervals.jackknife_interval import (
    IDENTITY,
    ROUNDING_ERROR,
    estimate_from_replicates,
    leave_one_out_sums,
)
from auditor.metrics.intervals.missing_bounds import ScoreRanges
from auditor.metrics.intervals.two_way import STATISTIC_BOUNDS, STATISTIC_TRANSFORMS, UnitLabels
from auditor.metrics.intervals.unit_means import mean_over_units, widen_by_common_variance
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic, compare_place_errors
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.coverage.lost_samples import (
    LostSamples,
    SampleCounts,
    bound_mae,
    missing_r_reason,
    missing_score_reason,
    with_missing_reason,
)
from auditor.reports.data.measurement_schema import (
    GroupErrorRow,
)
from auditor.reports.data.panel.build import bound_variances, estimate_valid_shares
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import (
    RESCALED_SCORES_REASON,
    FloatArray,
    ReportSource,
    cell_units,
    has_rescaled_scores,
)

NO_RATIO = Tested(None, 0, reason="there is no mean absolute error")


def compute_topic_errors(source: ReportSource) -> list[GroupErrorRow]:
    """Compute MAE and bias of each model on each topic, over countries."""
    rows = _build_place_rows(source, source.topics, source.topic_index, "country")
    return adjust_rows(rows, "mae_ratio", "errors on topics compared with a model’s other topics")


def compute_country_errors(source: ReportSource) -> list[GroupErrorRow]:
    """Compute MAE and bias of each model in each country, over topics."""
    rows = _build_place_rows(source, source.countries, source.country_index, "topic")
    return adjust_rows(rows, "mae_ratio", "errors in countries compared with a model’s other countries")


def _build_place_rows(
    source: ReportSource, place_names: Sequence[str], place_index: NDArray[np.intp], unit: str
) -> list[GroupErrorRow]:
    """Build one row per place and series.

    Places are countries or topics; `place_index` holds the position in `place_names` of each cell, shape (cells,).
    `unit` names the other side, over which tests are; intervals over countries cluster them by zone.
    """
    if not source.columns:  # a task
        return []
    samples = source.sample_counts
    has_cell = ~np.isnan(source.score_matrix) & ~np.isnan(source.survey_scores)  # shape (series, cells)
    n_compared = [len(np.unique(place_index[mask])) for mask in has_cell]
    unit_index = source.topic_index if unit == "topic" else source.country_index
    ratios = [
        {}
        if has_rescaled_scores(method)
        else compare_place_errors(source.score_matrix[column], source.survey_scores, place_index, unit_index, unit)
        for column, (method, _) in enumerate(source.columns)
    ]
    ranges = [samples[column].score_ranges(scores) for column, scores in enumerate(source.score_matrix)]
    return [
        _build_place_row(
            source,
            column,
            samples[column],
            ranges[column],
            name,
            place_index == place,
            n_compared[column],
            ratios[column].get(place, NO_RATIO),
        )
        for place, name in enumerate(place_names)
        for column in range(len(source.columns))
    ]


def _build_place_row(
    source: ReportSource,
    column: int,
    samples: SampleCounts,
    ranges: ScoreRanges,
    name: str,
    in_place: NDArray[np.bool_],
    n_compared: int,
    mae_ratio: Tested,
) -> GroupErrorRow:
    """Compute MAE, bias and r of one series over the cells of one country or topic.

    Args:
        samples, ranges: numbers of samples of the series, and the ranges of its scores over all planned ones.
        in_place: whether each cell is in the place, shape (cells,).
        n_compared: number of places for which the simultaneous interval holds.
        mae_ratio: of the error to those of other places.
    """
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column, in_place], source.survey_scores[in_place]
    (x, y), is_complete = complete_cases(scores, truth)
    missing_reason = missing_score_reason(source, column)
    clusters = UnitLabels(source.topic_index[in_place][is_complete], "topic")
    if len(np.unique(source.topic_index[in_place])) == 1:  # one topic, over countries
        by_cell = source.cluster_countries(
            np.where(in_place, source.score_matrix[column], np.nan), source.survey_scores
        )
        clusters = by_cell[in_place][is_complete]

    r = pearson(x, y)

    def estimate_error(statistic: Statistic, *n_comparisons: int) -> list[Estimate]:
        if has_rescaled_scores(method):
            errors = [Estimate(None, len(x), reason=RESCALED_SCORES_REASON) for _ in n_comparisons]
        else:
            errors = estimate_at_levels(statistic, x, y, clusters, n_comparisons)
        return [with_missing_reason(error, missing_reason) for error in errors]

    mae, mae_simultaneous = estimate_error(MAE, 1, max(1, n_compared))
    mae_bounds = None
    if not has_rescaled_scores(method):
        mae_bounds = bound_mae(ranges, source.survey_scores, in_place)
    return GroupErrorRow(
        name=name,
        model=model,
        method=method,
        n=len(x),
        n_dropped=len(scores) - len(x),
        mae=mae,
        mae_simultaneous=mae_simultaneous,
        mae_ratio=mae_ratio,
        bias=estimate_error(BIAS, 1)[0],
        pearson_r=with_missing_reason(
            replace(estimate_over_cells(PEARSON, x, y, clusters), value=r.value), missing_r_reason(r, missing_reason)
        ),
        lost_samples=samples.count_lost(in_place),
        mae_bound_low=None if mae_bounds is None else mae_bounds[0],
    )


def estimate_over_cells(
    statistic: Statistic, scores: FloatArray, truth: FloatArray, clusters: UnitLabels | str, n_comparisons: int = 1
) -> Estimate:
    """A statistic over the cells of one place.

    Args:
        clusters: the unit of each cell, such as its topic or cultural zone; or the name of such a unit, if each cell
            has one of its own.
        n_comparisons: number of estimates for which the intervals hold together (Bonferroni).
    """
    return estimate_at_levels(statistic, scores, truth, clusters, [n_comparisons])[0]


def estimate_at_levels(
    statistic: Statistic,
    scores: FloatArray,
    truth: FloatArray,
    clusters: UnitLabels | str,
    n_comparisons: Sequence[int],
) -> list[Estimate]:
    """As `estimate_over_cells`, once for each of several numbers of comparisons."""
    if not len(scores):
        return [Estimate(None, 0, reason="no pairs") for _ in n_comparisons]
    units = UnitLabels(np.arange(len(scores)), clusters) if isinstance(clusters, str) else clusters
    moments = statistic.moments(scores, truth)
    total = moments.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic.value(total[None])[0])
        without_each = statistic.value(leave_one_out_sums(moments, units))
    if np.isnan(value):
        return [Estimate(None, len(scores), reason="too few cells, or no variation among them") for _ in n_comparisons]
    transform = STATISTIC_TRANSFORMS.get(statistic, IDENTITY)
    bounds, replicates = STATISTIC_BOUNDS.get(statistic, (-np.inf, np.inf)), {units.unit: without_each}
    return [
        estimate_from_replicates(value, len(scores), replicates, transform, bounds, confidence_level=level)
        for level in map(bonferroni_level, n_comparisons)
    ]


Threshold = Literal["topic error", "variance", "valid share"]
MAX_TOPIC_MAE = 0.4
MAX_VARIANCE = 0.12
MIN_PEER_AGREEMENT = 0.7
"""Thresholds of failure, as in EvalMORAAL (arXiv 2510.05942)."""


class Shortfall(ReportModel):
    """A figure of one model that is beyond a threshold with its whole interval."""

    model: str
    method: str
    """`direct` for the share of VALID verdicts."""
    threshold: Threshold
    """`topic error`: mean absolute error on a topic above 0.4; `variance`: mean variance of the samples of a cell above
    0.12; `valid share`: share of VALID verdicts below 0.7."""
    topic: str | None
    """Null unless the threshold is that of a topic."""
    figure: Estimate
    """With an interval that holds for all compared figures together (Bonferroni)."""


class ShortfallsReport(ReportModel):
    """Figures beyond a threshold, among all that are compared with one."""

    compared: int
    """Number of figures: topics and variances of all series of scores, and shares of VALID of all models."""
    rows: list[Shortfall]


def find_shortfalls(source: ReportSource) -> ShortfallsReport:
    """Find the figures that are beyond their threshold, given how many are compared."""
    columns = [i for i, (method, _) in enumerate(source.columns) if not has_rescaled_scores(method)]
    varying = [i for i in columns if not np.isnan(source.variance_matrix[i]).all()]
    judged = sorted({count.model for count in source.judge_counts})
    n_compared = len(columns) * len(source.topics) + len(varying) + len(judged)
    if not n_compared:
        return ShortfallsReport(compared=0, rows=[])
    level = bonferroni_level(n_compared)
    rows = [
        *(row for column in columns for row in _compare_topics(source, column, n_compared)),
        *_compare_variances(source, varying, level),
        *_compare_valid_shares(source, level),
    ]
    return ShortfallsReport(compared=n_compared, rows=rows)


def _compare_topics(source: ReportSource, column: int, n_compared: int) -> Iterator[Shortfall]:
    """Yield the topics with a mean absolute error that is shown to be above `MAX_TOPIC_MAE`."""
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column], source.survey_scores
    has_both, clusters = ~(np.isnan(scores) | np.isnan(truth)), source.cluster_countries(scores, truth)
    places = [has_both & (source.topic_index == position) for position in range(len(source.topics))]
    errors = widen_by_common_variance(
        [estimate_over_cells(MAE, scores[place], truth[place], clusters[place], n_compared) for place in places],
        [np.abs(scores[place] - truth[place]) for place in places],
        bonferroni_level(n_compared),
        STATISTIC_BOUNDS[MAE],
    )
    for topic, error in zip(source.topics, errors, strict=True):
        if error.ci_low is not None and error.ci_low > MAX_TOPIC_MAE:
            yield Shortfall(model=model, method=method, threshold="topic error", topic=topic, figure=error)


def _compare_variances(source: ReportSource, columns: Sequence[int], level: float) -> Iterator[Shortfall]:
    """Yield the series whose samples of a cell are shown to vary by more than `MAX_VARIANCE` on average."""
    for column in columns:
        method, model = source.columns[column]
        variance = mean_over_units(
            source.variance_matrix[column], cell_units(source.cells), bound_variances(source.variance_matrix[column]),
            confidence_level=level,
        )  # fmt: skip
        if variance.ci_low is not None and variance.ci_low > MAX_VARIANCE:
            yield Shortfall(model=model, method=method, threshold="variance", topic=None, figure=variance)


def _compare_valid_shares(source: ReportSource, level: float) -> Iterator[Shortfall]:
    """Yield the models whose share of VALID verdicts is shown to be below `MIN_PEER_AGREEMENT`."""
    for model, share in estimate_valid_shares(source, level).items():
        if share.ci_high is not None and share.ci_high < MIN_PEER_AGREEMENT:
            yield Shortfall(model=model, method=Method.DIRECT.value, threshold="valid share", topic=None, figure=share)


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
    samples = source.sample_counts
    rows: list[CulturalFinding] = []
    reasons: list[str] = []
    for column in columns:
        series_places = [place for place in places if place.column == column]
        biased_places: list[CulturalFinding] = []
        for kind in ("country", "topic"):
            members = [place for place in series_places if place.kind == kind]
            biases = _estimate_biases(members, n_compared)
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
    """The mean signed difference of a place, with an interval of its own cells at the level of all others."""
    unit = "topic" if place.kind == "country" else "country"
    return estimate_over_cells(BIAS, place.scores, place.truth, unit, n_compared)


def _estimate_biases(places: Sequence[_Place], n_compared: int) -> list[Estimate]:
    """The mean signed differences of places of one kind, with intervals that hold together with all others."""
    biases = [_estimate_bias(place, n_compared) for place in places]
    differences = [place.scores - place.truth for place in places]
    return widen_by_common_variance(biases, differences, bonferroni_level(n_compared), STATISTIC_BOUNDS[BIAS])


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
    differences = np.where(np.abs(differences) < ROUNDING_ERROR, 0.0, differences)
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
        if row.mae_ratio.is_significant_at(SHARED_LEVEL)
    ]
    return sorted(findings, key=lambda finding: -finding.margin)[:1]


def _measure_margin(row: GroupErrorRow) -> float:
    """The smallest difference of an error from the mean of the others that the interval of their ratio allows."""
    low, high = row.mae_ratio.ci_low or 1.0, row.mae_ratio.ci_high or 1.0
    return max(0.0, 1 - 1 / low, 1 / high - 1) * (row.mae.value or 0.0)
