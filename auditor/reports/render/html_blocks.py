"""Blocks of a document as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from auditor.reports.document import (
    Block,
    Callout,
    Disclosure,
    Facts,
    Figure,
    FigureGrid,
    HeatMap,
    List,
    ListItem,
    Paragraph,
    Quote,
    Section,
    Table,
    Text,
)
from auditor.reports.render.escaping import escape_html
from auditor.reports.render.html_heat_maps import render_heat_map
from auditor.reports.render.html_tables import render_html_table
from auditor.reports.render.html_text import element, html_inline

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
                return _render_list(block)
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
                return _render_quote(block)

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


def _render_list(block: List) -> str:
    """Render a list; the items of a list of findings have a class for their status."""
    items: list[tuple[Text, str]] = [
        (item.content, item.status) if isinstance(item, ListItem) else (item, "neutral") for item in block.items
    ]
    markup = "\n".join(
        element("li", html_inline(content), class_=status if block.is_findings else "") for content, status in items
    )
    return element("ul", markup, class_="findings" if block.is_findings else "")


def _render_facts(block: Facts) -> str:
    """Render key figures with their labels below them."""
    items = [
        f"<div>{element('dt', html_inline(label))}{element('dd', html_inline(value))}</div>"
        for label, value in block.items
    ]
    return element("dl", "\n".join(items), class_="facts")


def _render_quote(block: Quote) -> str:
    """Render what a model wrote, with the heading above it."""
    heading = element("p", html_inline(block.heading), class_="title") if block.heading else ""
    note = element("p", html_inline(block.note), class_="note") if block.note else ""
    return f'<div>{heading}<blockquote dir="auto">{escape_html(block.text)}</blockquote>{note}</div>'
