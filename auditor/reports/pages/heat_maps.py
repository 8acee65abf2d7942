"""Heat maps of models' differences from people by cell, and tables of errors by topic and country, worst first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from auditor.reports.data.estimate_conversion import has_rescaled_scores
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import CellReport
from auditor.reports.number_format import format_number, format_signed

MAX_EXPANDED_HEAT_MAPS = 4
"""With more heat maps than this, only the first is expanded."""


SHADE_BOUNDS = (0.1, 0.3, 0.5, 0.7)
"""Absolute differences of scores at which the shade of a cell changes."""


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One series of scores: those of one model by one method, with its label on the page."""

    method: str
    model: str
    label: str


@dataclass(frozen=True, slots=True)
class HeatMapCell:
    """One cell of a heat map: the CSS class of its shade, its text and its tooltip."""

    css_class: str
    text: str
    tooltip: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One model's differences from people by country and topic; the longer of the two is shown as rows."""

    column: ScoreColumn
    row_kind: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[HeatMapCell]]]
    expanded: bool


@dataclass(frozen=True, slots=True)
class GroupErrorTable:
    """Errors by topic or country: one row for each, worst first; one column for each series that has an MAE."""

    rows: Sequence[tuple[str, Sequence[GroupErrorRow]]]


def build_error_table(rows: Sequence[GroupErrorRow]) -> GroupErrorTable:
    """Group rows by topic or country and sort the groups by their mean MAE over models, largest first.

    Series whose scores are rescaled are left out.
    """
    rows_by_group: dict[str, list[GroupErrorRow]] = defaultdict(list)
    for row in rows:
        if not has_rescaled_scores(row.method):
            rows_by_group[row.name].append(row)

    def sort_key(group: tuple[str, Sequence[GroupErrorRow]]) -> float:
        """Negative mean MAE of a group; 1 if all are missing, so that it comes last."""
        errors = [row.mae.value for row in group[1] if row.mae.value is not None]
        return -sum(errors) / len(errors) if errors else 1.0

    return GroupErrorTable(sorted(rows_by_group.items(), key=sort_key))


def build_heat_map_cell(cell: CellReport | None, column: ScoreColumn) -> HeatMapCell:
    """Build the heat map's cell for one country and topic; `cell` is None if the report has no such cell."""
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
    """CSS class for a difference: `h-4` (much stricter than people) to `h4` (much more permissive)."""
    step = sum(abs(difference) >= bound for bound in SHADE_BOUNDS)
    return f"h{-step if difference < 0 else step}"


def _format_short_difference(difference: float) -> str:
    """Format a difference with two digits and no leading zero, to keep columns narrow."""
    return format_signed(difference).replace("0.", ".") if abs(difference) >= 0.005 else "0"


def format_score_pair(survey_score: float, model_score: float) -> str:
    """Format people's and the model's score for a tooltip."""
    return f"people {format_number(survey_score)}, model {format_number(model_score)}"
