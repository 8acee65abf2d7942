"""Scores of two series on the cells that both can be compared on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Cell
from auditor.reports.data.differences.series_pairs import ScoreSeries
from auditor.reports.data.report_source import FloatArray


@dataclass(frozen=True)
class SharedCells:
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


def select_shared_cells(first: ScoreSeries, second: ScoreSeries) -> SharedCells:
    """Scores of two series on the cells in which both surveys have the same score of people (within 1e-9)."""
    first_truth, second_truth = first.survey_scores, second.survey_scores
    common_cells = [cell for cell in first_truth if cell in second_truth]
    cells = [cell for cell in common_cells if abs(first_truth[cell] - second_truth[cell]) < 1e-9]
    survey_scores = np.array([first_truth[cell] for cell in cells], dtype=np.float64)
    return SharedCells(
        first.scores_on(cells), second.scores_on(cells), survey_scores, cells, len(common_cells) - len(cells)
    )
