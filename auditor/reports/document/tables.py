"""Tables with typed columns, and heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from auditor.metrics.estimate import Estimate
from auditor.reports.document.inline import Name, Text
from auditor.reports.number_format import NumberStyle


@dataclass(frozen=True, slots=True)
class CountShare:
    """A number of cases out of a total, shown as a percentage; in CSV as a fraction."""

    n: int
    total: int


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A number that is a lower bound, such as a cost with unknown prices."""

    value: float


@dataclass(frozen=True, slots=True)
class Printed:
    """A figure as a source prints it, in a column of figures."""

    text: str


@dataclass(frozen=True, slots=True)
class Footnoted:
    """A figure with marks, such as "¹ ²", which a text next to the table explains."""

    figure: Estimate
    marks: str


@dataclass(frozen=True, slots=True)
class BarSegment:
    """One part of a bar: its share of the bar is `n` out of the sum of all segments.

    Attributes:
        series: a series of the table's legend.
    """

    series: str
    n: int


@dataclass(frozen=True, slots=True)
class Reason:
    """Why figures are missing; spans the cells of `columns` columns."""

    text: Text
    columns: int = 1


Cell = Text | float | Estimate | Footnoted | Printed | CountShare | LowerBound | Sequence[BarSegment] | Reason | None
"""The type of a cell is that of its column; None is a missing value, shown as a dash."""

ColumnKind = Literal["name", "text", "number", "estimate", "interval", "share", "bar"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; in the annotation of a row's field, the column that shows the field.

    Attributes:
        kind: type of the cells: `name` (str or `Name`), `text` (`Text`), `number` (int, float or `LowerBound`),
            `estimate` (`Estimate`, `Footnoted` or `Printed`), `interval` (an `Estimate` of which only the interval is
            shown), `share` (`CountShare`), `bar` (sequence of `BarSegment`: a picture of numbers that other columns
            have); each may also be None or a `Reason`. A field's column that is not said to be anything else has the
            kind of the field's type.
        key: name of the column in CSV; by default the title in lower case with underscores.
        interval_key: prefix of the columns `_low` and `_high` of an estimate in CSV; by default the key.
        digits: decimals of numbers and estimates; integers have none.
        style: how numbers and estimates are formatted.
        show_n: whether estimates show their n.
        emphasis: whether the column has the table's main figures.
        path: path of the row's attribute that is shown, such as "score.mae"; by default the field that the column
            annotates, else the key.
        part: path of an attribute of the field that the column annotates.
        note: what the figures mean, without a full stop; the table's caption ends with it.
        table: id of the only table that has the column; empty for all tables of the row class.
        is_optional: whether the column is left out where no row has a value in it.
    """

    title: str | Name
    kind: ColumnKind = "text"
    key: str = ""
    digits: int = 2
    style: NumberStyle = "decimal"
    show_n: bool = True
    emphasis: bool = False
    interval_key: str = ""
    path: str = ""
    part: str = ""
    note: str = ""
    table: str = ""
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; a total row closes the table, and a muted one is set in weaker type."""

    cells: Sequence[Cell]
    is_total: bool = False
    is_muted: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first column names its rows.

    Attributes:
        id: name of the table in the document, its file name as CSV, and its label in LaTeX.
        label: short name for screen readers.
        legend: (series, label) of the segments of its bars.
        is_dense: whether columns are set closer.
        has_reasons_below: whether every reason for a missing figure or interval is a note below the table; by default
            only long ones that occur often.
        max_rows: number of rows that pages show, of a table whose worst rows come first; None for all. Files have all.
        is_whole: whether pages show every column, and n in every cell, even where they are the same in all rows.
    """

    id: str
    label: str
    caption: Text
    columns: Sequence[Column]
    rows: Sequence[Row | Sequence[Cell]]
    legend: Sequence[tuple[str, str]] = ()
    is_dense: bool = False
    has_reasons_below: bool = False
    max_rows: int | None = None
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class HeatMapCell:
    """One cell of a heat map.

    Attributes:
        value: the figure that is shown by colour; None where the state says why there is none.
        text: short form of the value in the cell.
        tooltip: the figures behind the value.
        state: `measured`, or a state of the map's legend.
        page: URL of the page that the cell links to, relative to this one; empty for none.
    """

    value: float | None
    text: str
    tooltip: str
    state: Literal["measured", "not_asked", "no_answer"] = "measured"
    page: str = ""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A table of colours, with one cell for each row and column.

    Attributes:
        bounds: absolute values at which the shade changes, in ascending order.
        low_label, high_label: what the colours of negative and of positive values say; of small and large values if
            none is negative.
        state_labels: what the cells without a value say, by state.
    """

    label: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[HeatMapCell]]]
    bounds: Sequence[float]
    low_label: str
    high_label: str
    state_labels: Mapping[str, str] = field(default_factory=dict)
    show_legend: bool = True
    has_negative_values: bool = True
