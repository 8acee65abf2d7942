"""Columns of tables, and names and counts in their cells.

Apart from other nodes, since the fields of reports declare their columns, and many commands need no other nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from auditor.reports.number_format import NumberStyle


@dataclass(frozen=True, slots=True)
class Name:
    """A name from outside, such as a model's or a country's; isolated, so that its script cannot reorder the line."""

    text: str


@dataclass(frozen=True, slots=True)
class CountShare:
    """A number of cases out of a total, shown as a percentage; in CSV as a fraction."""

    n: int
    total: int


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
