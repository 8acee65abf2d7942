"""Series of scores side by side: what changed, where, and whether it is more than chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Cell
from auditor.metrics.bootstrap import MAE, PEARSON, Statistic, holm
from auditor.metrics.jackknife import paired_jackknife
from auditor.metrics.paired_errors import PairedError, error_bounds, paired_error
from auditor.reports.agreement.section import MAX_COVERAGE_GAP
from auditor.reports.comparison.resolutions import compare_resolutions
from auditor.reports.comparison.schema import (
    ChangeLabel,
    ComparedSeries,
    ComparisonReport,
    SeriesDifference,
    SeriesPairComparison,
)
from auditor.reports.comparison.series_pairs import ComparisonTarget, ScoreSeries, SeriesPair, match_series_pairs
from auditor.reports.comparison.verdict_comparison import DEFAULT_MAX_LISTED, compare_same_judges, compare_two_judges
from auditor.reports.estimate_conversion import (
    RESCALED_SCORES_REASON,
    has_rescaled_scores,
    interval_to_estimate,
    missing_estimate,
)
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import FloatArray
from auditor.storage.database import Database
from auditor.surveys.regions import get_grouping

SIGNIFICANCE_LEVEL = 0.05
ERROR_NOT_MEASURABLE = SeriesDifference(
    name="all",
    first=None,
    second=None,
    difference=missing_estimate(RESCALED_SCORES_REASON),
    p_value=None,
    p_holm=None,
    change="not measurable",
)
"""Of series that can agree with people, but be at no distance from them."""


@dataclass(frozen=True)
class _SharedCells:
    """Two series over the cells that both were asked about with the same people's score; nan where there is none."""

    first: FloatArray
    second: FloatArray
    survey_scores: FloatArray
    cells: Sequence[Cell]
    n_survey_differs: int

    @property
    def scored_by_both(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.first) & ~np.isnan(self.second)

    def clustered_scores(self) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.str_], NDArray[np.str_]]:
        countries, topics = (np.array([c[i] for c in self.cells], dtype=np.str_) for i in (0, 1))
        return self.first, self.second, self.survey_scores, countries, topics


def compare_targets(
    db: Database,
    targets: Sequence[ComparisonTarget],
    *,
    methods: Sequence[str] = (),
    all_pairs: bool = False,
    judges: Sequence[str] = (),
    max_listed: int = DEFAULT_MAX_LISTED,
    renamed_models: Mapping[str, str] = MappingProxyType({}),
) -> ComparisonReport:
    """Compare series of scores on the cells that both of a pair have.

    Args:
        targets: see `comparison_series.pairs_of`.
        methods: only scores of these; none is all.
        every: all pairs of targets, not only those with the first.
        judges: two judges whose verdicts are compared on the same traces; then one audit is enough.
        listed: verdict flips, and conflicts that were settled otherwise, that are listed for a pair.
        renamed: models that have another name in the audits after the first: old name to new.

    Raises:
        StorageError: there is no such audit.
        UsageError: nothing can be paired.
    """
    told = compare_two_judges(db, targets, judges, max_listed) if judges else []
    pairs = (
        []
        if judges and len(targets) == 1
        else match_series_pairs(db, targets, methods, all_pairs=all_pairs, renamed_models=renamed_models)
    )
    found = _adjust_breakdowns([_compare_pair(db, pair, max_listed) for pair in pairs])
    corrected = [_adjust_overall(found, name) for name in ("pearson_r", "mae")]
    series = {s.label: s for pair in pairs for s in pair}.values()
    return ComparisonReport(
        auditor=metadata.version("auditor"),
        survey=", ".join(dict.fromkeys(s.survey.title for s in series)),
        series=[_summarize_series(s) for s in series],
        pairs=[
            part.model_copy(update={"pearson_r": r, "mae": error})
            for part, r, error in zip(found, *corrected, strict=True)
        ],
        judges=told,
        settlements=compare_resolutions(db, pairs, renamed_models, max_listed),
        tests=len(pairs),
    )


def _summarize_series(series: ScoreSeries) -> ComparedSeries:
    return ComparedSeries(
        label=series.label,
        audit=series.audit,
        model=series.model,
        method=series.method,
        complete=series.complete,
        asked=len(series.survey_scores),
        scored=len(series.scores),
    )


def _compare_pair(db: Database, pair: SeriesPair, max_listed: int) -> SeriesPairComparison:
    first, second = pair
    shared = _select_shared_cells(first, second)
    both = shared.scored_by_both
    kept = [cell for cell, yes in zip(shared.cells, both, strict=True) if yes]
    no_distance = has_rescaled_scores(first.method) or has_rescaled_scores(second.method)
    return SeriesPairComparison(
        first=first.label,
        second=second.label,
        shared=int(both.sum()),
        only_first=int((~np.isnan(shared.first) & np.isnan(shared.second)).sum()),
        only_second=int((np.isnan(shared.first) & ~np.isnan(shared.second)).sum()),
        neither=int((np.isnan(shared.first) & np.isnan(shared.second)).sum()),
        truth_differs=shared.n_survey_differs,
        countries=len({c.country for c in kept}),
        topics=len({c.topic for c in kept}),
        pearson_r=_overall_difference("all", PEARSON, shared, larger_is_better=True),
        mae=ERROR_NOT_MEASURABLE if no_distance else _overall_difference("all", MAE, shared, larger_is_better=False),
        bounds=None if no_distance else _missing_score_bounds(shared),
        regions=[] if no_distance else _region_differences(first, shared),
        by_country=[] if no_distance else _group_differences(shared, lambda cell: cell.country),
        by_topic=[] if no_distance else _group_differences(shared, lambda cell: cell.topic),
        verdicts=compare_same_judges(db, first, second, max_listed),
    )


def _select_shared_cells(first: ScoreSeries, second: ScoreSeries) -> _SharedCells:
    ones, others = first.survey_scores, second.survey_scores
    common = [cell for cell in ones if cell in others]
    cells = [cell for cell in common if abs(ones[cell] - others[cell]) < 1e-9]
    truth = np.array([ones[cell] for cell in cells], dtype=np.float64)
    return _SharedCells(first.scores_on(cells), second.scores_on(cells), truth, cells, len(common) - len(cells))


def _missing_score_bounds(shared: _SharedCells) -> tuple[float, float] | None:
    shares = [float(np.mean(~np.isnan(v))) if len(v) else 0.0 for v in (shared.first, shared.second)]
    if abs(shares[0] - shares[1]) <= MAX_COVERAGE_GAP:
        return None
    return error_bounds(shared.first, shared.second, shared.survey_scores)


# --- differences ------------------------------------------------------------------------------------------------


def _overall_difference(
    name: str, statistic: Statistic, shared: _SharedCells, *, larger_is_better: bool
) -> SeriesDifference:
    first, second, truth, countries, topics = shared.clustered_scores()
    found = paired_jackknife(statistic, second, first, truth, countries, topics)
    one, other = (
        _statistic_value(statistic, v[shared.scored_by_both], truth[shared.scored_by_both]) for v in (first, second)
    )
    return _build_difference(
        name, one, other, interval_to_estimate(found), found.p_value, larger_is_better=larger_is_better
    )


def _statistic_value(statistic: Statistic, scores: FloatArray, survey_scores: FloatArray) -> float | None:
    value = float(statistic.value(statistic.moments(scores, survey_scores).sum(axis=0, keepdims=True))[0])
    return None if np.isnan(value) else value


def _region_differences(first: ScoreSeries, shared: _SharedCells) -> list[SeriesDifference]:
    grouping = get_grouping(first.survey)
    found = []
    for region in grouping.regions:
        inside = [i for i, cell in enumerate(shared.cells) if cell.country in region.countries]
        if inside:
            part = _SharedCells(
                shared.first[inside],
                shared.second[inside],
                shared.survey_scores[inside],
                [shared.cells[i] for i in inside],
                0,
            )
            found.append(_overall_difference(region.name, MAE, part, larger_is_better=False))
    return found


def _group_differences(shared: _SharedCells, group_of: Callable[[Cell], str]) -> list[SeriesDifference]:
    """Differences of MAE by country or topic, those that got worst first."""
    names = np.array([group_of(cell) for cell in shared.cells], dtype=np.str_)
    found = []
    for name in dict.fromkeys(names.tolist()):
        inside = (names == name) & shared.scored_by_both
        a, b, truth = shared.first[inside], shared.second[inside], shared.survey_scores[inside]
        ends = [float(np.abs(v - truth).mean()) if len(v) else None for v in (a, b)]
        tested = paired_error(a, b, truth)
        found.append(
            _build_difference(
                name, ends[0], ends[1], _paired_error_to_estimate(tested), tested.p_value, larger_is_better=False
            )
        )
    return sorted(found, key=lambda part: -(part.difference.value or 0.0))


def _paired_error_to_estimate(paired: PairedError) -> Estimate:
    return Estimate(value=paired.value, n=paired.n, ci_low=paired.ci_low, ci_high=paired.ci_high, reason=paired.reason)


def _build_difference(
    name: str,
    first: float | None,
    second: float | None,
    difference: Estimate,
    p_value: float | None,
    *,
    larger_is_better: bool,
) -> SeriesDifference:
    change = _classify_change(difference, p_value, larger_is_better)
    return SeriesDifference(
        name=name, first=first, second=second, difference=difference, p_value=p_value, p_holm=p_value, change=change
    )


def _apply_holm(differences: Sequence[SeriesDifference], *, larger_is_better: bool) -> list[SeriesDifference]:
    """With p-values corrected for the number of these."""
    adjusted = holm([np.nan if part.p_value is None else part.p_value for part in differences])
    return [
        part
        if np.isnan(p)
        else part.model_copy(
            update={"p_holm": float(p), "change": _classify_change(part.difference, float(p), larger_is_better)}
        )
        for part, p in zip(differences, adjusted, strict=True)
    ]


def _adjust_breakdowns(pairs: Sequence[SeriesPairComparison]) -> list[SeriesPairComparison]:
    """With the regions, the countries and the topics of all pairs corrected together, each kind as one family."""
    told: list[dict[str, list[SeriesDifference]]] = [{} for _ in pairs]
    for kind in ("regions", "by_country", "by_topic"):
        parts: list[list[SeriesDifference]] = [getattr(pair, kind) for pair in pairs]
        adjusted = iter(_apply_holm([part for of_pair in parts for part in of_pair], larger_is_better=False))
        for of_pair, update in zip(parts, told, strict=True):
            update[kind] = list(islice(adjusted, len(of_pair)))
    return [pair.model_copy(update=update) for pair, update in zip(pairs, told, strict=True)]


def _adjust_overall(pairs: Sequence[SeriesPairComparison], field_name: str) -> list[SeriesDifference]:
    return _apply_holm([getattr(part, field_name) for part in pairs], larger_is_better=field_name == "pearson_r")


def _classify_change(difference: Estimate, p_value: float | None, larger_is_better: bool) -> ChangeLabel:
    if difference.value is None:
        return "not measurable"
    if p_value is None or p_value >= SIGNIFICANCE_LEVEL:
        return "not told apart"
    return "better" if (difference.value > 0) == larger_is_better else "worse"
