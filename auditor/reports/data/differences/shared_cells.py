"""Scores of two series on the cells that both can be compared on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Cell
from auditor.metrics.jackknife import UnitLabels
from auditor.reports.data.differences.series_pairs import ScoreSeries
from auditor.reports.data.report_source import FloatArray
from auditor.reports.data.sampling_units import cluster_countries
from auditor.surveys.regions import get_zones


@dataclass(frozen=True)
class SharedCells:
    """Scores of two series on their common cells, those for which both surveys have the same score of people.

    Attributes:
        first, second: scores of the series, shape (cells,); nan where there is none.
        survey_scores: people's scores, shape (cells,).
        n_survey_differs: cells left out because people's scores differ between the surveys.
        zone_by_country: cultural zones, as the first audit stored them.
    """

    first: FloatArray
    second: FloatArray
    survey_scores: FloatArray
    cells: Sequence[Cell]
    n_survey_differs: int
    zone_by_country: Mapping[str, str] = field(default_factory=dict)

    @property
    def scored_by_both(self) -> NDArray[np.bool_]:
        """Cells on which both series have a score, shape (cells,)."""
        return ~np.isnan(self.first) & ~np.isnan(self.second)

    def clustered_scores(self) -> tuple[FloatArray, FloatArray, FloatArray, UnitLabels, NDArray[np.str_]]:
        """The arguments of a paired test: both series' scores, people's scores, zones or countries, and topics, each
        (cells,)."""
        countries = [cell.country for cell in self.cells]
        topics = np.array([cell.topic for cell in self.cells], dtype=np.str_)
        clusters = cluster_countries(countries, self.zone_by_country, self.scored_by_both)
        return self.first, self.second, self.survey_scores, clusters, topics


def select_shared_cells(first: ScoreSeries, second: ScoreSeries) -> SharedCells:
    """Scores of two series on the cells in which both surveys have the same score of people (within 1e-9)."""
    first_truth, second_truth = first.survey_scores, second.survey_scores
    common_cells = [cell for cell in first_truth if cell in second_truth]
    cells = [cell for cell in common_cells if abs(first_truth[cell] - second_truth[cell]) < 1e-9]
    survey_scores = np.array([first_truth[cell] for cell in cells], dtype=np.float64)
    return SharedCells(
        first.scores_on(cells),
        second.scores_on(cells),
        survey_scores,
        cells,
        len(common_cells) - len(cells),
        get_zones(first.survey),
    )
