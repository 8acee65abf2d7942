"""Agreement with people: overall, by region, and by topic and country."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.attenuation import Corrected, corrected_pearson, crossed_corrected
from auditor.metrics.bootstrap import BIAS, MAE, PEARSON, RMSE, Interval
from auditor.metrics.correlation import pearson, spearman
from auditor.metrics.error import bias, mae, rmse
from auditor.metrics.jackknife import crossed_jackknife, gap_jackknife
from auditor.metrics.max_gap import widest_gap
from auditor.metrics.missing_bounds import gap_bounds, mae_bounds
from auditor.metrics.within_topic import no_correlation
from auditor.reports.coverage.missing_scores import explained, unscored, why_no_r
from auditor.reports.estimate_conversion import STRETCHED, estimate, is_stretched, resampled, unmeasured
from auditor.reports.measurement_schema import (
    AlignmentRow,
    CrossedPart,
    Estimate,
    GapRow,
    PlaceRow,
    RegionRow,
    RegionsPart,
)
from auditor.reports.pages.number_format import signed
from auditor.reports.report_source import Floats, Source
from auditor.surveys.regions import grouping_of

MAX_COVERAGE_GAP = 0.05
"""Difference in the share of scored cells above which two regions are not compared."""


def alignment(source: Source, ceiling: float | None = None) -> list[AlignmentRow]:
    """One row for each model and method; `ceiling` is the r that a perfect model is expected to reach."""
    return [_alignment(source, i, ceiling) for i in range(len(source.columns))]


def _alignment(source: Source, column: int, ceiling: float | None) -> AlignmentRow:
    method, model = source.columns[column]
    scores, truth = source.matrix[column], source.truth
    r, rank = pearson(scores, truth), spearman(scores, truth)
    r_crossed = crossed_jackknife(PEARSON, scores, truth, source.country_index, source.topic_index)
    why = unscored(source, column)
    error, root, lean = _errors(method, scores, truth, why)
    corrected = corrected_pearson(scores, truth, source.variance[column], source.column_of("n_ok", column))
    return AlignmentRow(
        model=model,
        survey=source.survey.name,
        method=method,
        n=r.n,
        pearson_r=r.r,
        p_value=r.p_value,
        ci_low=r.ci_low,
        ci_high=r.ci_high,
        spearman_rho=rank.r,
        spearman_ci_low=rank.ci_low,
        spearman_ci_high=rank.ci_high,
        mae=error.value,
        mae_ci_low=error.ci_low,
        mae_ci_high=error.ci_high,
        rmse=root.value,
        rmse_ci_low=root.ci_low,
        rmse_ci_high=root.ci_high,
        bias=lean,
        corrected_r=_corrected(corrected, why),
        reliability=corrected.reliability,
        crossed=_crossed(source, column, r_crossed, why_no_r(r, why)),
        crossed_p_value=no_correlation(r_crossed),
        ceiling=ceiling,
        n_dropped=r.n_dropped,
        n_without_survey=int(np.isnan(truth).sum()),
        reason=why_no_r(r, why),
    )


def _corrected(found: Corrected, why: str | None) -> Estimate:
    reason = why_no_r(found, why)
    return Estimate(value=found.r, n=found.n, ci_low=found.ci_low, ci_high=found.ci_high, reason=reason)


def _errors(method: str, scores: Floats, truth: Floats, why: str | None) -> list[Estimate]:
    """MAE, RMSE and bias, each cell for itself; none where scores have no distance, or there are none."""
    found = [estimate(statistic(scores, truth)) for statistic in (mae, rmse, bias)]
    if is_stretched(method):
        found = [unmeasured(STRETCHED, e.n) for e in found]
    return [explained(e, why) for e in found]


def _crossed(source: Source, column: int, r: Interval, no_r: str | None) -> CrossedPart:
    table = (source.matrix[column], source.truth, source.country_index, source.topic_index)
    noise, why = (source.variance[column], source.column_of("n_ok", column)), unscored(source, column)
    corrected = crossed_corrected(*table[:2], *noise, *table[2:])
    if is_stretched(source.columns[column][0]):
        error = root = lean = unmeasured(STRETCHED, r.n_cells)
    else:
        error, root, lean = (resampled(crossed_jackknife(statistic, *table)) for statistic in (MAE, RMSE, BIAS))
    return CrossedPart(
        countries=r.n_countries,
        topics=r.n_topics,
        pearson_r=explained(resampled(r), no_r),
        corrected_r=explained(resampled(corrected), no_r),
        mae=explained(error, why),
        rmse=explained(root, why),
        bias=explained(lean, why),
    )


def regions(source: Source) -> RegionsPart:
    """Agreement in each group of countries, and the gap between the two, or the two furthest apart of several."""
    grouping = grouping_of(source.survey)
    by_country = {c: r for c, r in grouping.by_country.items() if c in source.countries}
    names = [region.name for region in grouping.regions if region.name in by_country.values()]
    place = np.array([by_country.get(c.country, "") for c in source.cells], dtype=np.str_)
    columns = range(len(source.columns))
    rows = [
        _region(source, i, name, place == name, sum(r == name for r in by_country.values()))
        for i in columns
        for name in names
    ]
    gaps = [_gap(source, i, names, place) for i in columns if len(names) == 2]
    return RegionsPart(
        grouping=grouping.name,
        title=grouping.title,
        rows=rows,
        gaps=gaps or [gap for i in columns if len(names) > 2 for gap in _widest(source, i, place)],
        ungrouped=[c for c in source.countries if c not in by_country],
    )


def _region(source: Source, column: int, name: str, inside: NDArray[np.bool_], countries: int) -> RegionRow:
    method, model = source.columns[column]
    table = [v[inside] for v in (source.matrix[column], source.truth, source.country_index, source.topic_index)]
    r, why = pearson(*table[:2]), unscored(source, column)
    crossed = explained(resampled(crossed_jackknife(PEARSON, *table)), why_no_r(r, why))
    error = unmeasured(STRETCHED, r.n) if is_stretched(method) else resampled(crossed_jackknife(MAE, *table))
    return RegionRow(
        model=model,
        method=method,
        region=name,
        countries=countries,
        n=r.n,
        n_dropped=r.n_dropped,
        pearson_r=r.r,
        ci_low=crossed.ci_low,
        ci_high=crossed.ci_high,
        mae=explained(error, why),
        reason=crossed.reason,
    )


def _gap(source: Source, column: int, names: Sequence[str], place: NDArray[np.str_]) -> GapRow:
    method, model = source.columns[column]
    asked = ~np.isnan(source.truth) & (place != "")
    table = (source.matrix[column], source.truth, source.country_index, source.topic_index, place == names[1])
    no_distance = is_stretched(method)
    gap = unmeasured(STRETCHED) if no_distance else resampled(gap_jackknife(MAE, *(part[asked] for part in table)))
    gap = explained(gap, unscored(source, column))
    return GapRow(
        model=model,
        method=method,
        first=names[0],
        second=names[1],
        compared=2,
        left_out=[],
        **({"mae_gap": gap} if no_distance else _bounded(source, column, names, place, gap)),
    )


def _widest(source: Source, column: int, place: NDArray[np.str_]) -> Iterator[GapRow]:
    """One row, or none where fewer than two groups have a figure."""
    method, model = source.columns[column]
    if is_stretched(method):
        return
    table = (source.matrix[column], source.truth, source.country_index, source.topic_index, place)
    found = widest_gap(MAE, *(part[place != ""] for part in table), seed=source.seed)
    pair = (found.low_group, found.high_group)
    if found.interval.estimate is not None:
        yield GapRow(
            model=model,
            method=method,
            first=pair[0],
            second=pair[1],
            compared=found.compared,
            left_out=list(found.left_out),
            **_bounded(source, column, pair, place, resampled(found.interval)),
        )


def _bounded(
    source: Source, column: int, names: Sequence[str], place: NDArray[np.str_], gap: Estimate
) -> dict[str, Any]:
    """The gap, with bounds where two regions differ in coverage: what is missing may be what differs.

    It is withheld where the bounds cross zero, so that not even its sign is known.
    """
    scores, truth = source.matrix[column], source.truth
    asked = ~np.isnan(truth) & np.isin(place, names)
    scored = asked & ~np.isnan(scores)
    shares = [scored[place == name].sum() / max(1, asked[place == name].sum()) for name in names]
    if abs(shares[0] - shares[1]) <= MAX_COVERAGE_GAP:
        return {"mae_gap": gap}
    ends = [mae_bounds(scores[place == name], truth[place == name]) for name in names]
    low, high = gap_bounds(*ends)
    found = {"bound_low": low, "bound_high": high}
    if low is not None and high is not None and (low > 0 or high < 0):
        return {"mae_gap": gap, **found}
    told = " and ".join(f"{100 * share:.0f}%" for share in shares)
    why = f"withheld: coverage differs ({told} of the cells have a score)"
    if low is not None and high is not None:
        why += f", so that the gap may be anything from {signed(low)} to {signed(high)}"
    return {"mae_gap": unmeasured(why, int(scored.sum())), **found}


def by_topic(source: Source) -> list[PlaceRow]:
    """Every model on every topic."""
    return _places(source, source.topics, source.topic_index)


def by_country(source: Source) -> list[PlaceRow]:
    """Every model in every country."""
    return _places(source, source.countries, source.country_index)


def _places(source: Source, names: Sequence[str], index: NDArray[np.intp]) -> list[PlaceRow]:
    why = [unscored(source, i) for i in range(len(source.columns))]
    return [
        _place(name, source.columns[i], source.matrix[i, index == k], source.truth[index == k], why[i])
        for k, name in enumerate(names)
        for i in range(len(source.columns))
    ]


def _place(name: str, column: tuple[str, str], scores: Floats, truth: Floats, why: str | None) -> PlaceRow:
    method, model = column
    error, _, lean = _errors(method, scores, truth, why)
    return PlaceRow(
        name=name,
        model=model,
        method=method,
        n=error.n,
        n_dropped=len(scores) - error.n,
        mae=error,
        bias=lean,
    )
