"""Render a document as one HTML page that needs no network, and contains no script unless it has a search."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TextIO

from auditor.reports.document import (
    Block,
    Callout,
    Disclosure,
    Document,
    Facts,
    Figure,
    FigureGrid,
    HeatMap,
    List,
    ListItem,
    Paragraph,
    Quote,
    Search,
    SearchFilter,
    SearchRecord,
    Section,
    Table,
    Text,
)
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.escaping import escape_html, isolate_rtl
from auditor.reports.render.html_tables import (
    BAR_WIDTH_RULES,
    COLUMN_COUNT_RULES,
    element,
    html_inline,
    render_heat_map,
    render_html_table,
)
from auditor.text_safety import escape_invisible


@cache
def load_search_script() -> str:
    """The script, as it stands between its tags."""
    return f"\n{Path(__file__).with_name('search.js').read_text(encoding='utf-8')}"


@cache
def load_search_stylesheet() -> str:
    """Rules for the form and its results."""
    return Path(__file__).with_name("search.css").read_text(encoding="utf-8")


def build_script_policy() -> str:
    """Directives of a content security policy that allow this script alone, no connection, and no markup from text."""
    digest = base64.b64encode(hashlib.sha256(load_search_script().encode()).digest()).decode()
    return f"script-src 'sha256-{digest}'; connect-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"


def render_search_form(search: Search) -> str:
    """Render the form and the place of its results, which the script shows: without JavaScript they stay hidden."""
    fields = [
        element(
            "label",
            f'{escape_html(search.text_label)}<input type="search" spellcheck="false" autocomplete="off">',
            class_="text",
        ),
        *map(_render_filter, search.filters),
        '<button type="reset">Clear all</button>',
    ]
    return "\n".join(
        (
            '<section id="search" class="search" hidden>',
            element("h2", escape_html(search.title)),
            element("form", "\n".join(fields), id="search-form", role="search"),
            '<p id="search-status" class="title" role="status"></p>',
            '<ul id="search-results"></ul>',
            '<button type="button" id="search-more" hidden>Show more</button>',
            "</section>\n",
        )
    )


def _render_filter(search_filter: SearchFilter) -> str:
    """Render a filter as a list of options; the first one restricts nothing."""
    options = [f'<option value="{i}">{escape_html(option)}</option>' for i, option in enumerate(search_filter.options)]
    select = element("select", "\n".join(['<option value="">all</option>', *options]))
    return element("label", escape_html(search_filter.label) + select)


class SearchDataWriter:
    """Writes the records of a search into a page, group by group, so that memory does not grow with their texts.

    The script parses a group when it needs its texts, and only the choices of all records when the page is opened.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._sizes: list[int] = []
        self._choices: list[Sequence[int]] = []

    def write(self, records: Sequence[SearchRecord]) -> None:
        """Write a group of records, such as those of one page."""
        if not records:
            return
        rows = [
            (
                [escape_invisible(part) for part in record.title],
                escape_invisible(record.detail),
                [(escape_invisible(str(tag.text)), tag.status) for tag in record.tags],
                escape_invisible(record.text),
                record.page,
            )
            for record in records
        ]
        self._file.write(_render_json(rows, 'class="search-records"'))
        self._sizes.append(len(records))
        self._choices += [record.choices for record in records]

    def finish(self) -> None:
        """Write the choices of all records and the script; nothing if there are no records."""
        if self._sizes:
            index = {"sizes": self._sizes, "choices": [*zip(*self._choices, strict=True)]}
            self._file.write(_render_json(index, 'id="search-index"'))
            self._file.write(f"<script>{load_search_script()}</script>\n")


def _render_json(value: object, attribute: str) -> str:
    """Render a value as a block of data, which no browser runs; no text in it can end the block."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" {attribute}>{text}</script>\n'


MAX_HEADING_LEVEL = 6
_PRINT_CLASSES = {"open": "", "closed": "print-closed", "hidden": "print-hidden"}


@dataclass(frozen=True, slots=True)
class HtmlBlocks:
    """Renders the blocks of one page.

    Attributes:
        svgs: the drawn figures of the page, by the identity of their node.
    """

    svgs: Mapping[int, str]

    def render(self, blocks: Sequence[Block], level: int = 2) -> str:
        """Render blocks; `level` is that of the headings of sections among them."""
        return "\n".join(self._iterate_blocks(blocks, level))

    def _iterate_blocks(self, blocks: Sequence[Block], level: int) -> Iterator[str]:
        """Render blocks, those that are set side by side in groups."""
        for group_class, group in groupby(blocks, _group_class):
            rendered = [self._render_block(block, level) for block in group]
            if group_class:
                yield element("div", "\n".join(rendered), class_=group_class)
            else:
                yield from rendered

    def _render_block(self, block: Block, level: int) -> str:
        """Render one block."""
        match block:
            case Section():
                return self._render_section(block, level)
            case Paragraph():
                return element("p", html_inline(block.content), class_="" if block.role == "body" else block.role)
            case List():
                items: list[tuple[Text, str]] = [
                    (item.content, item.status) if isinstance(item, ListItem) else (item, "neutral")
                    for item in block.items
                ]
                markup = "\n".join(
                    element("li", html_inline(content), class_=status if block.is_findings else "")
                    for content, status in items
                )
                return element("ul", markup, class_="findings" if block.is_findings else "")
            case Facts():
                return _render_facts(block)
            case Callout():
                title = element("p", html_inline(block.title), class_="title") if block.title else ""
                return element("div", title + self.render(block.blocks, level), class_="callout", role="note")
            case Table():
                return render_html_table(block)
            case HeatMap():
                return render_heat_map(block)
            case Figure():
                caption = element("figcaption", html_inline(block.caption or block.title))
                return element("figure", self.svgs[id(block)] + caption, id=f"plot-{block.id}")
            case FigureGrid():
                figures = "\n".join(map(self._render_small_figure, block.figures))
                return element("div", figures, class_=f"multiples {block.size}")
            case Disclosure():
                return self._render_disclosure(block, level)
            case Quote():
                heading = element("p", html_inline(block.heading), class_="title") if block.heading else ""
                note = element("p", html_inline(block.note), class_="note") if block.note else ""
                return f'<div>{heading}<blockquote dir="auto">{escape_html(block.text)}</blockquote>{note}</div>'

    def _render_section(self, section: Section, level: int) -> str:
        """Render a section with its heading; one within another section is not set off by a line."""
        heading = element(f"h{min(level, MAX_HEADING_LEVEL)}", html_inline(section.title))
        content = f"\n{heading}\n{self.render(section.blocks, level + 1)}\n"
        return element("section", content, id=section.id, class_="wide" if section.is_landscape else "")

    def _render_small_figure(self, figure: Figure) -> str:
        """Render a figure of a grid, with its title and caption above it."""
        remark = f" {element('span', html_inline(figure.caption))}" if figure.caption else ""
        caption = element("figcaption", html_inline(figure.title) + remark)
        return element("figure", caption + self.svgs[id(figure)], id=f"plot-{figure.id}")

    def _render_disclosure(self, disclosure: Disclosure, level: int) -> str:
        """Render blocks below a summary."""
        parts = [
            element("span", html_inline(disclosure.summary)),
            element("span", html_inline(disclosure.detail), class_="detail") if disclosure.detail else "",
            *(element("span", html_inline(tag.text), class_=f"tag {tag.status}") for tag in disclosure.tags),
        ]
        css_class = " ".join(filter(None, ("row" if disclosure.tags else "plate", _PRINT_CLASSES[disclosure.in_print])))
        summary = element("summary", " ".join(filter(None, parts)))
        body = element("div", f"\n{self.render(disclosure.blocks, level)}\n", class_="body")
        return f'<details class="{css_class}"{" open" * disclosure.is_open}>{summary}{body}</details>'


def _group_class(block: Block) -> str:
    """CSS class of the group in which consecutive blocks of a kind are set side by side; empty for none."""
    if isinstance(block, Quote):
        return "sides"
    if isinstance(block, Disclosure) and block.blocks and all(isinstance(nested, HeatMap) for nested in block.blocks):
        return "plates"
    return ""


def _render_facts(block: Facts) -> str:
    """Render key figures with their labels below them."""
    items = [
        f"<div>{element('dt', html_inline(label))}{element('dd', html_inline(value))}</div>"
        for label, value in block.items
    ]
    return element("dl", "\n".join(items), class_="facts")


CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)


def render_html(document: Document) -> str:
    """Render the document as an HTML page; equal documents give equal pages."""
    figures = [block for block in iterate_blocks(document) if isinstance(block, Figure)]
    shared_shapes, svgs = _draw_figures(figures)
    blocks = HtmlBlocks(svgs)
    search = document.search
    policy = f"{CONTENT_SECURITY_POLICY}; {build_script_policy()}" if search else CONTENT_SECURITY_POLICY
    title = f"{escape_html(document.title)} – {escape_html(document.kind)}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="auditor {version("auditor")}">
<title>{title}</title>
<style>
{_load_stylesheet()}{load_search_stylesheet() if search else ""}
</style>
</head>
<body{' class="brief"' if document.is_brief else ""}>
{shared_shapes}<header class="top">
{_render_header(document, blocks)}
</header>
<main>
{render_search_form(search) if search else ""}{blocks.render(document.sections)}
</main>
{element("footer", element("p", html_inline(document.footer))) if document.footer else ""}
</body>
</html>
"""


@contextmanager
def write_search_page(document: Document, file: TextIO) -> Iterator[SearchDataWriter]:
    """Write the page of a document to a file, and yield what writes the records of its search at the page's end."""
    start, end_tag, ending = render_html(document).rpartition("</body>")
    file.write(start)
    writer = SearchDataWriter(file)
    yield writer
    writer.finish()
    file.write(end_tag + ending)


def _render_header(document: Document, blocks: HtmlBlocks) -> str:
    """Render the title, the opening blocks and the table of contents."""
    contents = [
        f'<li><a href="#{escape_html(section.id)}">{isolate_rtl(section.contents_title)}</a></li>'
        for section in document.sections
        if section.contents_title
    ]
    contents_markup = "\n".join(contents)
    parts = [
        element("p", isolate_rtl(document.kind), class_="kicker"),
        element("h1", isolate_rtl(document.title)),
        element("p", html_inline(document.subtitle), class_="subtitle") if document.subtitle else "",
        blocks.render(document.opening),
        f'<nav aria-label="Contents"><details><summary>Contents</summary><ul>\n{contents_markup}\n</ul></details></nav>'
        if len(contents) > 1
        else "",
    ]
    return "\n".join(filter(None, parts))


@cache
def _load_stylesheet() -> str:
    """The page's style sheet."""
    rules = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return f"{rules}{COLUMN_COUNT_RULES}\n{BAR_WIDTH_RULES}"


def _draw_figures(figures: Sequence[Figure]) -> tuple[str, dict[int, str]]:
    """Draw the figures: shapes that several of them use, and the SVGs of each by the identity of its node.

    A figure with a version for narrow screens has two SVGs, of which the style sheet shows one.
    """
    if not figures:
        return "", {}
    from auditor.reports.render.figures import render_page_svgs  # loads vl-convert

    narrow = [replace(figure, spec=figure.narrow_spec) for figure in figures if figure.narrow_spec is not None]
    shared_shapes, svgs = render_page_svgs([*figures, *narrow])
    narrow_svgs = iter(svgs[len(figures) :])
    svg_by_figure = {}
    for figure, svg in zip(figures, svgs, strict=False):
        if figure.narrow_spec is not None:
            svg = element("div", svg, class_="on-wide") + element("div", next(narrow_svgs), class_="on-narrow")
        svg_by_figure[id(figure)] = svg
    return shared_shapes, svg_by_figure
