"""Differences of r and MAE between two series, overall and by region, country or topic, with intervals and tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from auditor.domain import Cell
from auditor.metrics.cell_statistics import MAE, Statistic
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife import paired_jackknife
from auditor.metrics.paired_errors import paired_error
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.differences.schema import ChangeLabel, SeriesDifference
from auditor.reports.data.differences.series_pairs import ScoreSeries
from auditor.reports.data.differences.shared_cells import SharedCells
from auditor.reports.data.report_source import FloatArray
from auditor.surveys.regions import get_grouping


def estimate_difference(
    name: str, statistic: Statistic, shared: SharedCells, *, larger_is_better: bool
) -> SeriesDifference:
    """Difference of a statistic, second minus first, over shared cells, with a jackknife interval and test."""
    first, second, survey_scores, countries, topics = shared.clustered_scores()
    # The jackknife gives its first argument less its second, so the second series comes first.
    interval = paired_jackknife(statistic, second, first, survey_scores, countries, topics)
    first_value, second_value = (
        _statistic_value(statistic, scores[shared.scored_by_both], survey_scores[shared.scored_by_both])
        for scores in (first, second)
    )
    return SeriesDifference(
        name=name,
        first=first_value,
        second=second_value,
        difference=interval,
        change=_classify_change(interval, larger_is_better),
    )


def _statistic_value(statistic: Statistic, scores: FloatArray, survey_scores: FloatArray) -> float | None:
    """A statistic of a model's scores against people's; None if it is undefined."""
    # A statistic is computed from sums over cells of the moments, shape (1, moments) here.
    value = float(statistic.value(statistic.moments(scores, survey_scores).sum(axis=0, keepdims=True))[0])
    return None if np.isnan(value) else value


def estimate_region_differences(first: ScoreSeries, shared: SharedCells) -> list[SeriesDifference]:
    """Differences of MAE, one per region of the survey's grouping that has a shared cell."""
    grouping = get_grouping(first.survey)
    differences = []
    for region in grouping.regions:
        cell_indices = [i for i, cell in enumerate(shared.cells) if cell.country in region.countries]
        if cell_indices:
            region_cells = SharedCells(
                shared.first[cell_indices],
                shared.second[cell_indices],
                shared.survey_scores[cell_indices],
                [shared.cells[i] for i in cell_indices],
                0,  # n_survey_differs, which no difference uses
                shared.zone_by_country,
            )
            differences.append(estimate_difference(region.name, MAE, region_cells, larger_is_better=False))
    return differences


def estimate_group_differences(
    shared: SharedCells, group_of: Callable[[Cell], str], unit: str
) -> list[SeriesDifference]:
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
        paired = paired_error(first_scores, second_scores, survey_scores, unit)
        differences.append(
            SeriesDifference(
                name=name,
                first=mean_errors[0],
                second=mean_errors[1],
                difference=paired,
                change=_classify_change(paired, larger_is_better=False),
            )
        )
    return sorted(differences, key=lambda difference: -(difference.difference.value or 0.0))


def adjust_differences(
    differences: Sequence[SeriesDifference], family: str, *, larger_is_better: bool
) -> list[SeriesDifference]:
    """Copy the differences with p-values adjusted for their number, and the change they imply."""
    return [
        row.model_copy(update={"change": _classify_change(row.difference, larger_is_better)})
        for row in adjust_rows(differences, "difference", family)
    ]


def _classify_change(difference: Tested, larger_is_better: bool) -> ChangeLabel:
    """Whether the second series is better or worse than the first, given the number of tests.

    Args:
        difference: second minus first.
        larger_is_better: whether a positive difference is an improvement, as for r but not for MAE.
    """
    if difference.value is None:
        return "not measurable"
    if not difference.is_significant:
        return "not told apart"
    return "better" if (difference.value > 0) == larger_is_better else "worse"
