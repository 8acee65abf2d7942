"""Compare series of scores cell by cell: differences of r and MAE, with intervals and tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Cell
from auditor.metrics.cell_statistics import MAE, PEARSON, Statistic
from auditor.metrics.estimate import BoundedEstimate, Estimate
from auditor.metrics.jackknife import paired_jackknife
from auditor.metrics.missing_bounds import bounded_difference
from auditor.metrics.multiple_testing import holm
from auditor.metrics.paired_errors import PairedError, paired_error
from auditor.reports.data.comparison.resolutions import compare_resolutions
from auditor.reports.data.comparison.schema import (
    ChangeLabel,
    ComparedSeries,
    ComparisonReport,
    SeriesDifference,
    SeriesPairComparison,
)
from auditor.reports.data.comparison.series_pairs import ComparisonTarget, ScoreSeries, SeriesPair, match_series_pairs
from auditor.reports.data.comparison.verdict_comparison import (
    DEFAULT_MAX_LISTED,
    compare_same_judges,
    compare_two_judges,
)
from auditor.reports.data.coverage.lost_samples import (
    NO_RANGE_REASON,
    SampleCounts,
    WorstCaseDifferences,
    has_large_loss,
    loss_differs,
)
from auditor.reports.data.estimate_conversion import (
    RESCALED_SCORES_REASON,
    has_rescaled_scores,
    interval_to_estimate,
    missing_estimate,
)
from auditor.reports.data.report_source import FloatArray
from auditor.reports.data.requests.sampling_settings import settings_differ
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
"""Difference of MAE where a series has rescaled scores, which have no MAE."""


@dataclass(frozen=True)
class _SharedCells:
    """Scores of two series on their common cells, those for which both surveys have the same score of people.

    Attributes:
        first, second: scores of the series, shape (cells,); nan where there is none.
        survey_scores: people's scores, shape (cells,).
        n_survey_differs: cells left out because people's scores differ between the surveys.
    """

    first: FloatArray
    second: FloatArray
    survey_scores: FloatArray
    cells: Sequence[Cell]
    n_survey_differs: int

    @property
    def scored_by_both(self) -> NDArray[np.bool_]:
        """Cells on which both series have a score, shape (cells,)."""
        return ~np.isnan(self.first) & ~np.isnan(self.second)

    def clustered_scores(self) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.str_], NDArray[np.str_]]:
        """The arguments of a paired test: both series' scores, people's scores, countries and topics, each (cells,)."""
        # A cell is (country, topic): index 0 is its country, 1 its topic.
        countries, topics = (np.array([cell[i] for cell in self.cells], dtype=np.str_) for i in (0, 1))
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
        targets: audits, or models of audits; `match_series_pairs` describes which are paired.
        methods: compare only scores by these methods; empty for all.
        all_pairs: compare all pairs of targets, not only each with the first.
        judges: two judges whose verdicts are compared on the same traces; then one audit is enough.
        max_listed: how many verdict flips, and how many conflicts settled for different sides, are listed for a pair.
        renamed_models: models with another name in the audits after the first, old name to new.

    Raises:
        StorageError: there is no such audit.
        UsageError: nothing can be paired.
    """
    judge_comparisons = compare_two_judges(db, targets, judges, max_listed) if judges else []
    # With two judges and one audit only the judges are compared, no scores.
    pairs = (
        []
        if judges and len(targets) == 1
        else match_series_pairs(db, targets, methods, all_pairs=all_pairs, renamed_models=renamed_models)
    )
    pair_comparisons = _adjust_breakdowns([_compare_pair(db, pair, max_listed) for pair in pairs])
    overall_differences = [_adjust_overall(pair_comparisons, name) for name in ("pearson_r", "mae")]
    series = {one_series.label: one_series for pair in pairs for one_series in pair}.values()
    return ComparisonReport(
        auditor=metadata.version("auditor"),
        survey=", ".join(dict.fromkeys(one_series.survey.title for one_series in series)),
        series=[_summarize_series(one_series) for one_series in series],
        pairs=[
            comparison.model_copy(update={"pearson_r": r_difference, "mae": mae_difference})
            for comparison, r_difference, mae_difference in zip(pair_comparisons, *overall_differences, strict=True)
        ],
        judges=judge_comparisons,
        settlements=compare_resolutions(db, pairs, renamed_models, max_listed),
        tests=len(pairs),
    )


def _summarize_series(series: ScoreSeries) -> ComparedSeries:
    """Name a series and count its cells: `asked` with a score of people, `scored` with one of the model."""
    return ComparedSeries(
        label=series.label,
        audit=series.audit,
        model=series.model,
        method=series.method,
        complete=series.complete,
        asked=len(series.survey_scores),
        scored=len(series.scores),
        sampling=series.sampling and series.sampling.label,
    )


def _compare_pair(db: Database, pair: SeriesPair, max_listed: int) -> SeriesPairComparison:
    """Compare two series: coverage, overall differences, breakdowns and verdicts; p-values are not yet corrected."""
    first, second = pair
    shared = _select_shared_cells(first, second)
    is_scored_by_both = shared.scored_by_both
    scored_cells = [cell for cell, is_scored in zip(shared.cells, is_scored_by_both, strict=True) if is_scored]
    has_no_mae = has_rescaled_scores(first.method) or has_rescaled_scores(second.method)
    samples = (first.samples_on(shared.cells), second.samples_on(shared.cells))
    r_difference = _overall_difference("all", PEARSON, shared, larger_is_better=True)
    mae_difference = (
        ERROR_NOT_MEASURABLE if has_no_mae else _overall_difference("all", MAE, shared, larger_is_better=False)
    )
    return SeriesPairComparison(
        first=first.label,
        second=second.label,
        shared=int(is_scored_by_both.sum()),
        only_first=int((~np.isnan(shared.first) & np.isnan(shared.second)).sum()),
        only_second=int((np.isnan(shared.first) & ~np.isnan(shared.second)).sum()),
        neither=int((np.isnan(shared.first) & np.isnan(shared.second)).sum()),
        truth_differs=shared.n_survey_differs,  # cells left out: people's scores differ between the surveys
        sampling_settings_differ=settings_differ([row for row in (first.sampling, second.sampling) if row]),
        countries=len({cell.country for cell in scored_cells}),
        topics=len({cell.topic for cell in scored_cells}),
        pearson_r=r_difference,
        mae=mae_difference,
        first_lost_samples=samples[0].count_lost(),
        second_lost_samples=samples[1].count_lost(),
        worst_case=_bound_differences(shared, samples, r_difference.difference, mae_difference.difference),
        regions=[] if has_no_mae else _region_differences(first, shared),
        by_country=[] if has_no_mae else _group_differences(shared, lambda cell: cell.country, "topic"),
        by_topic=[] if has_no_mae else _group_differences(shared, lambda cell: cell.topic, "country"),
        verdicts=compare_same_judges(db, first, second, max_listed),
    )


def _select_shared_cells(first: ScoreSeries, second: ScoreSeries) -> _SharedCells:
    """Scores of two series on the cells in which both surveys have the same score of people (within 1e-9)."""
    first_truth, second_truth = first.survey_scores, second.survey_scores
    common_cells = [cell for cell in first_truth if cell in second_truth]
    cells = [cell for cell in common_cells if abs(first_truth[cell] - second_truth[cell]) < 1e-9]
    survey_scores = np.array([first_truth[cell] for cell in cells], dtype=np.float64)
    return _SharedCells(
        first.scores_on(cells), second.scores_on(cells), survey_scores, cells, len(common_cells) - len(cells)
    )


def _bound_differences(
    shared: _SharedCells, samples: tuple[SampleCounts, SampleCounts], r_difference: Estimate, mae_difference: Estimate
) -> WorstCaseDifferences | None:
    """Bound the differences over all planned samples; None where few samples are lost, and similar shares of them.

    Args:
        samples: numbers of samples of the first and the second series on the shared cells.
        r_difference, mae_difference: second minus first, on the cells that both have; no MAE for rescaled scores.
    """
    lost = [counts.count_lost() for counts in samples]
    if not loss_differs(*lost) and not any(map(has_large_loss, lost)):
        return None
    if mae_difference.reason == RESCALED_SCORES_REASON:
        return WorstCaseDifferences(
            pearson_r=BoundedEstimate(r_difference.value, r_difference.n, reason=NO_RANGE_REASON),
            mae=BoundedEstimate(None, mae_difference.n, reason=RESCALED_SCORES_REASON),
        )
    first, second, *places = shared.clustered_scores()
    # The bounds are of the first argument minus the second, so the second series comes first.
    ranges = (samples[1].score_ranges(second), samples[0].score_ranges(first))
    r, mae = (
        bounded_difference(statistic, difference.value, *ranges, *places)
        for statistic, difference in ((PEARSON, r_difference), (MAE, mae_difference))
    )
    return WorstCaseDifferences(pearson_r=r, mae=mae)


# --- differences ------------------------------------------------------------------------------------------------


def _overall_difference(
    name: str, statistic: Statistic, shared: _SharedCells, *, larger_is_better: bool
) -> SeriesDifference:
    """Difference of a statistic, second minus first, over shared cells, with a jackknife interval and test."""
    first, second, survey_scores, countries, topics = shared.clustered_scores()
    # The jackknife gives its first argument less its second, so the second series comes first.
    interval = paired_jackknife(statistic, second, first, survey_scores, countries, topics)
    first_value, second_value = (
        _statistic_value(statistic, scores[shared.scored_by_both], survey_scores[shared.scored_by_both])
        for scores in (first, second)
    )
    return _build_difference(
        name,
        first_value,
        second_value,
        interval_to_estimate(interval),
        interval.p_value,
        larger_is_better=larger_is_better,
    )


def _statistic_value(statistic: Statistic, scores: FloatArray, survey_scores: FloatArray) -> float | None:
    """A statistic of a model's scores against people's; None if it is undefined."""
    # A statistic is computed from sums over cells of the moments, shape (1, moments) here.
    value = float(statistic.value(statistic.moments(scores, survey_scores).sum(axis=0, keepdims=True))[0])
    return None if np.isnan(value) else value


def _region_differences(first: ScoreSeries, shared: _SharedCells) -> list[SeriesDifference]:
    """Differences of MAE, one per region of the survey's grouping that has a shared cell."""
    grouping = get_grouping(first.survey)
    differences = []
    for region in grouping.regions:
        cell_indices = [i for i, cell in enumerate(shared.cells) if cell.country in region.countries]
        if cell_indices:
            region_cells = _SharedCells(
                shared.first[cell_indices],
                shared.second[cell_indices],
                shared.survey_scores[cell_indices],
                [shared.cells[i] for i in cell_indices],
                0,  # n_survey_differs, which no difference uses
            )
            differences.append(_overall_difference(region.name, MAE, region_cells, larger_is_better=False))
    return differences


def _group_differences(shared: _SharedCells, group_of: Callable[[Cell], str], unit: str) -> list[SeriesDifference]:
    """Differences of MAE by country or topic, sorted by the difference, largest increase first.

    Args:
        unit: over which the intervals are: `topic` for countries, `country` for topics.
    """
    names = np.array([group_of(cell) for cell in shared.cells], dtype=np.str_)
    differences = []
    for name in dict.fromkeys(names.tolist()):
        is_in_group = (names == name) & shared.scored_by_both
        first_scores, second_scores, survey_scores = (
            shared.first[is_in_group],
            shared.second[is_in_group],
            shared.survey_scores[is_in_group],
        )
        mean_errors = [  # MAE of the first series, of the second; None where both never have a score
            float(np.abs(scores - survey_scores).mean()) if len(scores) else None
            for scores in (first_scores, second_scores)
        ]
        paired = paired_error(first_scores, second_scores, survey_scores)
        differences.append(
            _build_difference(
                name,
                mean_errors[0],
                mean_errors[1],
                _paired_error_to_estimate(paired, unit),
                paired.p_value,
                larger_is_better=False,
            )
        )
    return sorted(differences, key=lambda difference: -(difference.difference.value or 0.0))


def _paired_error_to_estimate(paired: PairedError, unit: str) -> Estimate:
    """Copy a difference of MAE (second minus first) with its interval into an `Estimate`; the p-value is left out."""
    resampled = () if paired.ci_low is None else (unit,)
    return Estimate(paired.value, paired.n, paired.ci_low, paired.ci_high, paired.reason, resampled)


def _build_difference(
    name: str,
    first: float | None,
    second: float | None,
    difference: Estimate,
    p_value: float | None,
    *,
    larger_is_better: bool,
) -> SeriesDifference:
    """Build a difference of a statistic between two series, with the change that its p-value implies.

    Args:
        name: `all`, or the region, country or topic.
        first, second: the statistic of each series; None if it is undefined.
        difference: second minus first.
        p_value: not corrected; `p_holm` has the same value until `_apply_holm` replaces it.
        larger_is_better: whether a larger value means nearer to people, as for r but not for MAE.
    """
    change = _classify_change(difference, p_value, larger_is_better)
    return SeriesDifference(
        name=name, first=first, second=second, difference=difference, p_value=p_value, p_holm=p_value, change=change
    )


def _apply_holm(differences: Sequence[SeriesDifference], *, larger_is_better: bool) -> list[SeriesDifference]:
    """Copy the differences with p-values corrected by Holm's method for their number, and the change they imply."""
    adjusted = holm([np.nan if difference.p_value is None else difference.p_value for difference in differences])
    return [
        difference
        if np.isnan(p)
        else difference.model_copy(
            update={"p_holm": float(p), "change": _classify_change(difference.difference, float(p), larger_is_better)}
        )
        for difference, p in zip(differences, adjusted, strict=True)
    ]


def _adjust_breakdowns(pairs: Sequence[SeriesPairComparison]) -> list[SeriesPairComparison]:
    """Copy the pairs with corrected p-values of their breakdowns.

    All regions of all pairs are one family of Holm's correction, all countries another, all topics a third.
    """
    updates: list[dict[str, list[SeriesDifference]]] = [{} for _ in pairs]
    for kind in ("regions", "by_country", "by_topic"):
        differences_by_pair: list[list[SeriesDifference]] = [getattr(pair, kind) for pair in pairs]
        # Corrected as one flat list, then dealt back to the pairs in the same order.
        adjusted = iter(
            _apply_holm(
                [difference for pair_differences in differences_by_pair for difference in pair_differences],
                larger_is_better=False,
            )
        )
        for pair_differences, update in zip(differences_by_pair, updates, strict=True):
            update[kind] = list(islice(adjusted, len(pair_differences)))
    return [pair.model_copy(update=update) for pair, update in zip(pairs, updates, strict=True)]


def _adjust_overall(pairs: Sequence[SeriesPairComparison], field_name: str) -> list[SeriesDifference]:
    """One overall difference per pair, with p-values corrected by Holm's method for the number of pairs.

    Args:
        field_name: `pearson_r` or `mae`, the field of `SeriesPairComparison` that holds the difference.
    """
    return _apply_holm([getattr(pair, field_name) for pair in pairs], larger_is_better=field_name == "pearson_r")


def _classify_change(difference: Estimate, p_value: float | None, larger_is_better: bool) -> ChangeLabel:
    """Whether the second series is better or worse than the first, at `SIGNIFICANCE_LEVEL`.

    Args:
        difference: second minus first.
        p_value: corrected or not; None, like a large one, gives "not told apart".
        larger_is_better: whether a positive difference is an improvement.
    """
    if difference.value is None:
        return "not measurable"
    if p_value is None or p_value >= SIGNIFICANCE_LEVEL:
        return "not told apart"
    return "better" if (difference.value > 0) == larger_is_better else "worse"
