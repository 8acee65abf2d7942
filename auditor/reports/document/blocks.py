"""Blocks: what a document consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from auditor.reports.document.inline import Text
from auditor.reports.document.tables import HeatMap, Table


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
