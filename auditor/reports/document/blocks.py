"""Blocks, tables and inline nodes: what a document consists of, and a walk over them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.document.columns import Column, CountShare, Name


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
    """A link to a section of the same document, by its id, or to another page.

    Attributes:
        page: URL of the other page, relative to this one; empty for the same document. Only HTML has other pages.
    """

    text: str
    section_id: str = ""
    page: str = ""

    @property
    def target(self) -> str:
        """The URL, relative to this page."""
        return f"{self.page}#{self.section_id}" if self.section_id else self.page


Inline = str | Name | Strong | Code | Link
Text = Inline | Sequence[Inline]
"""Plain text, or a sequence of inline nodes that are joined without spaces."""


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


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph: the main finding of the document (`lead`) or of a section (`finding`), running text, or a remark."""

    content: Text
    role: Literal["lead", "finding", "body", "note"] = "body"


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
class Figure:
    """A plot.

    Attributes:
        id: name of the figure in the document, and its file name when exported.
        spec: Vega-Lite specification; colours are CSS variables of the page's theme.
        title: what is plotted.
        description: the figures as a text, for those who do not see the plot.
        caption: printed below the plot.
        table_id: the table that has the plot's numbers.
        narrow_spec: the plot for narrow screens, if it needs another one.
    """

    id: str
    spec: Mapping[str, object]
    title: str
    description: str
    caption: Text = ""
    table_id: str = ""
    narrow_spec: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class FigureGrid:
    """Figures side by side; each one's title is printed above it.

    Attributes:
        size: least width of a figure, `small` for up to four in a row, `medium` for two.
    """

    figures: Sequence[Figure]
    size: Literal["small", "medium"] = "small"


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
class SearchFilter:
    """A choice of one option; a reader who chooses none sees all records."""

    label: str
    options: Sequence[str]


@dataclass(frozen=True, slots=True)
class Search:
    """A search of many records by the reader: a form with filters and a field for a text. Only HTML has it.

    Attributes:
        text_label: what the field's text is compared with.
    """

    title: str
    text_label: str
    filters: Sequence[SearchFilter]


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """A record that a search may show.

    Attributes:
        title: its parts.
        detail: second part of the title, in weaker type.
        text: what the field's text is compared with.
        choices: position of the record's option in each filter.
        page: URL of the page that shows all of the record.
    """

    title: Sequence[str]
    detail: str
    tags: Sequence[Tag]
    text: str
    choices: Sequence[int]
    page: str


@dataclass(frozen=True, slots=True)
class Document:
    """A complete document.

    Attributes:
        kind: the kind of document, such as "Audit against a survey".
        opening: blocks above the table of contents.
        footer: closing remarks, such as the version and sources.
        is_brief: whether it is to fit on one printed page.
        search: a search that stands before the sections in HTML, with the only script that a page may have.
    """

    kind: str
    title: str
    subtitle: Text
    sections: Sequence[Section]
    opening: Sequence[Block] = ()
    footer: Text = ""
    is_brief: bool = False
    search: Search | None = None


def iterate_blocks(document: Document) -> Iterator[Block]:
    """Every block of a document in reading order, each before the blocks within it."""
    return _iterate_nested([*document.opening, *document.sections])


def _iterate_nested(blocks: Sequence[Block]) -> Iterator[Block]:
    """Every block of a sequence, each before the blocks within it."""
    for block in blocks:
        yield block
        match block:
            case Section() | Callout() | Disclosure():
                yield from _iterate_nested(block.blocks)
            case FigureGrid():
                yield from block.figures


MIN_REPEATED_WORDS = 8
"""Shorter texts may occur again."""


def drop_repeated(sections: Sequence[Section]) -> list[Section]:
    """The sections without the paragraphs and items of lists that an earlier section has in the same words.

    A subsection or list that has nothing else is dropped with them; a section is not.
    """
    seen: set[str] = set()
    remaining = []
    for section in sections:
        texts: list[str] = []
        remaining.append(replace(section, blocks=_drop_texts(section.blocks, seen, texts)))
        seen.update(texts)
    return remaining


def _drop_texts(blocks: Sequence[Block], seen: Collection[str], texts: list[str]) -> list[Block]:
    """Blocks without the texts that were seen; texts of the others are added to `texts`."""
    remaining: list[Block] = []
    for block in blocks:
        match block:
            case Paragraph() if _is_repeated(block.content, seen, texts):
                continue
            case List():
                items = [
                    item
                    for item in block.items
                    if not _is_repeated(item.content if isinstance(item, ListItem) else item, seen, texts)
                ]
                if not items:
                    continue
                block = replace(block, items=items)
            case Section():
                inner = _drop_texts(block.blocks, seen, texts)
                if not inner or (
                    len(inner) < len(block.blocks)
                    and all(isinstance(block, Paragraph) and block.role == "note" for block in inner)
                ):
                    continue
                block = replace(block, blocks=inner)
        remaining.append(block)
    return remaining


def _is_repeated(content: Text, seen: Collection[str], texts: list[str]) -> bool:
    """Whether a text of some length was seen; one that was not is added to `texts`."""
    text = flatten_inline(content)
    if len(text.split()) >= MIN_REPEATED_WORDS and text in seen:
        return True
    texts.append(text)
    return False


def flatten_inline(text: Text) -> str:
    """The characters of a text, without its markup."""
    match text:
        case str():
            return text
        case Strong():
            return flatten_inline(text.content)
        case Name() | Code() | Link():
            return text.text
    return "".join(map(flatten_inline, text))


def map_code(node: Any, function: Callable[[str], str]) -> Any:
    """A document, or a part of one, in which a function changed the text of each `Code`; the same if none changed."""
    if isinstance(node, Code):
        text = function(node.text)
        return node if text == node.text else Code(text)
    if isinstance(node, (list, tuple)):
        parts = [map_code(part, function) for part in node]
        is_same = all(new is old for new, old in zip(parts, node, strict=True))
        return node if is_same or hasattr(node, "_fields") else type(node)(parts)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    values = {field.name: getattr(node, field.name) for field in fields(node) if field.init}
    changes = {name: new for name, old in values.items() if (new := map_code(old, function)) is not old}
    return replace(node, **changes) if changes else node
