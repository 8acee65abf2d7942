"""Differences from people, cell by cell: heat maps, and tables of topics and countries, worst first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from auditor.reports.estimate_conversion import has_rescaled_scores
from auditor.reports.measurement_schema import GroupErrorRow
from auditor.reports.pages.number_format import format_number, format_signed
from auditor.reports.report_schema import CellReport

MAX_EXPANDED_HEAT_MAPS = 4
"""Heat maps that are unfolded when there are no more models than this."""


SHADE_BOUNDS = (0.1, 0.3, 0.5, 0.7)
"""Bounds between the shades of the heat map, in units of score."""


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One series of scores: a model by a method."""

    method: str
    model: str
    label: str


@dataclass(frozen=True, slots=True)
class HeatMapCell:
    """One cell of a heat map: its shade, its text, and what a tooltip says."""

    css_class: str
    text: str
    tooltip: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One model's differences from people; rows are the longer of the two axes."""

    column: ScoreColumn
    row_kind: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[HeatMapCell]]]
    expanded: bool


@dataclass(frozen=True, slots=True)
class GroupErrorTable:
    """Errors by topic or country: one row a place, worst first, one column a series that has a distance from people."""

    rows: Sequence[tuple[str, Sequence[GroupErrorRow]]]


def build_error_table(rows: Sequence[GroupErrorRow]) -> GroupErrorTable:
    """Worst first: by the mean over models of what is known."""
    places: dict[str, list[GroupErrorRow]] = defaultdict(list)
    for row in rows:
        if not has_rescaled_scores(row.method):
            places[row.name].append(row)

    def badness(item: tuple[str, Sequence[GroupErrorRow]]) -> float:
        known = [r.mae.value for r in item[1] if r.mae.value is not None]
        return -sum(known) / len(known) if known else 1.0

    return GroupErrorTable(sorted(places.items(), key=badness))


def build_heat_map_cell(cell: CellReport | None, column: ScoreColumn) -> HeatMapCell:
    if cell is None or cell.survey is None:
        return HeatMapCell("na", "", "people were not asked")
    score = cell.scores[column.method].get(column.model)
    if score is None:
        return HeatMapCell("no", "×", "no usable answer")
    difference = score - cell.survey
    return HeatMapCell(
        shade_class(difference), _format_short_difference(difference), format_score_pair(cell.survey, score)
    )


def shade_class(difference: float) -> str:
    """Class of a difference's colour: `h-4` (far stricter than people) to `h4` (far more permissive)."""
    step = sum(abs(difference) >= bound for bound in SHADE_BOUNDS)
    return f"h{-step if difference < 0 else step}"


def _format_short_difference(difference: float) -> str:
    """Two digits without the zero before the point, so that columns can be narrow."""
    return format_signed(difference).replace("0.", ".") if abs(difference) >= 0.005 else "0"


def format_score_pair(survey_score: float, model_score: float) -> str:
    return f"people {format_number(survey_score)}, model {format_number(model_score)}"
