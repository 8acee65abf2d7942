"""Nodes of a document: what a report says, without its look.

Sections build documents, and renderers turn them into HTML, Markdown, plain text, CSV and LaTeX. The set of nodes is
closed and has no raw markup: every text is plain text, which each renderer sanitizes and escapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from auditor.metrics.estimate import Estimate
from auditor.reports.number_format import NumberStyle

# --- inline -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A name from outside, such as a model's or a country's; isolated, so that its script cannot reorder the line."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    """Emphasized text."""

    content: Text


@dataclass(frozen=True, slots=True)
class Code:
    """A command, a config key or other text that is typed as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a section of the same document, by its id."""

    text: str
    section_id: str


@dataclass(frozen=True, slots=True)
class InlineEstimate:
    """An estimate within a text: its value, interval and n, or the reason why it is missing."""

    estimate: Estimate
    digits: int = 2
    style: NumberStyle = "decimal"


Inline = str | Name | Strong | Code | Link | InlineEstimate
Text = Inline | Sequence[Inline]
"""Plain text, or a sequence of inline nodes that are joined without spaces."""

# --- cells of tables ----------------------------------------------------------------------------------------------


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


Cell = Text | float | Estimate | CountShare | LowerBound | Sequence[BarSegment] | Reason | None
"""The type of a cell is that of its column; None is a missing value, shown as a dash."""

ColumnKind = Literal["name", "text", "number", "estimate", "share", "bar"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        kind: type of the cells: `name` (str or `Name`), `text` (`Text`), `number` (int, float or `LowerBound`), `estimate`
            (`Estimate`), `share` (`CountShare`), `bar` (sequence of `BarSegment`); each may also be None or a `Reason`.
        key: name of the column in CSV; by default the title in lower case with underscores.
        digits: decimals of numbers and estimates; integers have none.
        style: how numbers and estimates are formatted.
        show_n: whether estimates show their n.
        emphasis: whether the column has the table's main figures.
    """

    title: str | Name
    kind: ColumnKind = "text"
    key: str = ""
    digits: int = 2
    style: NumberStyle = "decimal"
    show_n: bool = True
    emphasis: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; a total row closes the table."""

    cells: Sequence[Cell]
    is_total: bool = False


# --- blocks -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph: the main finding (`lead`), running text (`body`) or a remark in smaller type (`note`)."""

    content: Text
    role: Literal["lead", "body", "note"] = "body"


Status = Literal["positive", "negative", "unclear", "open", "settled", "neutral"]
"""What an item's colour says: a finding in favour, one against, one that the data do not decide; or a state."""


@dataclass(frozen=True, slots=True)
class ListItem:
    """An item of a list, with the status that its finding has."""

    content: Text
    status: Status = "neutral"


@dataclass(frozen=True, slots=True)
class List:
    """A list of items. A list of findings is set off from the text; a plain one has bullets."""

    items: Sequence[ListItem | Text]
    is_findings: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Key figures as (label, value)."""

    items: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Callout:
    """A framed warning, with its title and the reasons as a list or as paragraphs."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first column names its rows.

    Attributes:
        id: name of the table in the document, its file name as CSV, and its label in LaTeX.
        label: short name for screen readers.
        legend: (series, label) of the segments of its bars.
        is_dense: whether columns are set closer.
    """

    id: str
    label: str
    caption: Text
    columns: Sequence[Column]
    rows: Sequence[Row | Sequence[Cell]]
    legend: Sequence[tuple[str, str]] = ()
    is_dense: bool = False


@dataclass(frozen=True, slots=True)
class HeatMapCell:
    """One cell of a heat map.

    Attributes:
        value: the figure that is shown by colour; None where the state says why there is none.
        text: short form of the value in the cell.
        tooltip: the figures behind the value.
        state: `measured`, or a state of the map's legend.
    """

    value: float | None
    text: str
    tooltip: str
    state: Literal["measured", "not_asked", "no_answer"] = "measured"


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A table of colours from a diverging scale, with one cell for each row and column.

    Attributes:
        bounds: absolute values at which the shade changes, in ascending order.
        low_label, high_label: what the colours of negative and of positive values say.
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


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot.

    Attributes:
        id: name of the figure in the document, and its file name when exported.
        spec: Vega-Lite specification; colours are CSS variables of the page's theme.
        title: what is plotted.
        description: the figures as a text, for those who do not see the plot.
        caption: printed below the plot.
        table_id: the table that has the plot's numbers.
    """

    id: str
    spec: Mapping[str, object]
    title: str
    description: str
    caption: Text = ""
    table_id: str = ""


@dataclass(frozen=True, slots=True)
class FigureGrid:
    """Small figures side by side; each one's title is printed above it."""

    figures: Sequence[Figure]


@dataclass(frozen=True, slots=True)
class Tag:
    """A short label of a disclosure's summary."""

    text: str
    status: Status = "neutral"


@dataclass(frozen=True, slots=True)
class Disclosure:
    """Blocks below a summary that the reader opens.

    Attributes:
        detail: second part of the summary, in weaker type.
        in_print: whether the blocks are printed, only the summary is, or nothing at all.
    """

    summary: Text
    blocks: Sequence[Block]
    detail: Text = ""
    tags: Sequence[Tag] = ()
    is_open: bool = False
    in_print: Literal["open", "closed", "hidden"] = "open"


@dataclass(frozen=True, slots=True)
class Quote:
    """What a model wrote. Consecutive quotes are set side by side.

    Attributes:
        heading: whose words these are, or the question.
        note: a remark below the quote.
    """

    heading: Text
    text: str
    note: Text = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A section, or within another section a subsection.

    Attributes:
        id: name in the document, which links refer to; unique.
        contents_title: its title in the table of contents; empty for none, as in subsections.
        is_landscape: whether it is printed on landscape pages.
    """

    id: str
    title: Text
    blocks: Sequence[Block]
    contents_title: str = ""
    is_landscape: bool = False


Block = Section | Paragraph | List | Facts | Callout | Table | HeatMap | Figure | FigureGrid | Disclosure | Quote


@dataclass(frozen=True, slots=True)
class Document:
    """A complete document.

    Attributes:
        kind: the kind of document, such as "Audit of moral alignment".
        opening: blocks above the table of contents.
        footer: closing remarks, such as the version and sources.
    """

    kind: str
    title: str
    subtitle: Text
    sections: Sequence[Section]
    opening: Sequence[Block] = ()
    footer: Text = ""
