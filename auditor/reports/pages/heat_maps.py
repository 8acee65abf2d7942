"""Differences from people, cell by cell: heat maps, and tables of topics and countries, worst first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from auditor.reports.estimate_conversion import is_stretched
from auditor.reports.measurement_schema import PlaceRow
from auditor.reports.pages.number_format import number, signed
from auditor.reports.report_schema import CellPart

OPEN_PLATES = 4
"""Heat maps that are unfolded when there are no more models than this."""


STEPS = (0.1, 0.3, 0.5, 0.7)
"""Bounds between the shades of the heat map, in units of score."""


@dataclass(frozen=True, slots=True)
class Column:
    """One series of scores: a model by a method."""

    method: str
    model: str
    label: str


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell of a heat map: its shade, its text, and what a tooltip says."""

    shade: str
    text: str
    tip: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One model's differences from people; rows are the longer of the two axes."""

    column: Column
    rows_are: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[HeatCell]]]
    unfolded: bool


@dataclass(frozen=True, slots=True)
class PlaceTable:
    """Errors by topic or country: one row a place, worst first, one column a series that has a distance from people."""

    rows: Sequence[tuple[str, Sequence[PlaceRow]]]


def place_table(rows: Sequence[PlaceRow]) -> PlaceTable:
    """Worst first: by the mean over models of what is known."""
    places: dict[str, list[PlaceRow]] = defaultdict(list)
    for row in rows:
        if not is_stretched(row.method):
            places[row.name].append(row)

    def badness(item: tuple[str, Sequence[PlaceRow]]) -> float:
        known = [r.mae.value for r in item[1] if r.mae.value is not None]
        return -sum(known) / len(known) if known else 1.0

    return PlaceTable(sorted(places.items(), key=badness))


def heat(cell: CellPart | None, column: Column) -> HeatCell:
    if cell is None or cell.survey is None:
        return HeatCell("na", "", "people were not asked")
    score = cell.scores[column.method].get(column.model)
    if score is None:
        return HeatCell("no", "×", "no usable answer")
    difference = score - cell.survey
    return HeatCell(shade(difference), _short(difference), both(cell.survey, score))


def shade(difference: float) -> str:
    """Class of a difference's colour: `h-4` (far stricter than people) to `h4` (far more permissive)."""
    step = sum(abs(difference) >= bound for bound in STEPS)
    return f"h{-step if difference < 0 else step}"


def _short(difference: float) -> str:
    """Two digits without the zero before the point, so that columns can be narrow."""
    return signed(difference).replace("0.", ".") if abs(difference) >= 0.005 else "0"


def both(survey: float, score: float) -> str:
    return f"people {number(survey)}, model {number(score)}"
