"""A page of paragraphs, tables and plots, rendered as self-contained HTML or as Markdown.

All text of a page is plain text; each renderer escapes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata

import jinja2
from markupsafe import Markup

from auditor.errors import UsageError
from auditor.reports.pages.jinja_environment import create_environment
from auditor.reports.pages.markdown_format import escape_markdown

PAGE_TEMPLATE = "page.html.j2"


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of texts: column headings, and rows of the same length; the first column is the row's heading."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class PagePlot:
    """A plot with its caption; a table of the section has the same figures."""

    svg: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class PageSection:
    """One section of a page; empty parts are left out."""

    title: str
    paragraphs: Sequence[str] = ()
    bullets: Sequence[str] = ()
    plots: Sequence[PagePlot] = ()
    tables: Sequence[PageTable] = ()


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A page.

    Attributes:
        kicker: the kind of page, shown above the title.
        headline: the main finding in one sentence.
        warnings: reasons for caution.
    """

    kicker: str
    title: str
    subtitle: str
    headline: str
    bullets: Sequence[str] = ()
    warnings: Sequence[str] = ()
    sections: Sequence[PageSection] = ()


def render_page(page: ReportPage, page_format: str) -> str:
    """Render the page as `html` or `markdown`.

    Raises:
        UsageError: the format is unknown.
    """
    renderers: dict[str, Callable[[ReportPage], str]] = {"html": render_page_html, "markdown": render_page_markdown}
    if page_format not in renderers:
        raise UsageError(f"'{page_format}' is no form of this page.", "Known are html and markdown (.html, .md).")
    return renderers[page_format](page)


def render_page_html(page: ReportPage) -> str:
    """Render the page as one HTML file with light and dark colours, printable, without scripts."""
    return _load_template().render(page=page, version=metadata.version("auditor"))


def render_page_markdown(page: ReportPage) -> str:
    """Render the page as Markdown; plots are left out, since tables have the same figures."""
    return "\n\n".join(block for block in _page_markdown_blocks(page) if block) + "\n"


def _page_markdown_blocks(page: ReportPage) -> Iterable[str]:
    """Yield the paragraphs, lists and tables of a page as Markdown; some may be empty."""
    yield f"# {escape_markdown(page.title)}"
    yield escape_markdown(page.subtitle)
    yield f"**{escape_markdown(page.headline)}**"
    yield _bullet_list(page.bullets)
    if page.warnings:
        yield "**What speaks against trusting it**"
        yield _bullet_list(page.warnings)
    for section in page.sections:
        yield f"## {escape_markdown(section.title)}"
        yield from map(escape_markdown, section.paragraphs)
        yield _bullet_list(section.bullets)
        for table in section.tables:
            yield escape_markdown(table.caption)
            yield markdown_table(table.columns, table.rows)


def _bullet_list(bullets: Sequence[str]) -> str:
    """Format texts as an escaped Markdown list; empty for none."""
    return "\n".join(f"- {escape_markdown(bullet)}" for bullet in bullets)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table with escaped cells."""
    head_lines = ["| " + " | ".join(map(escape_markdown, columns)) + " |", "|" + " --- |" * len(columns)]
    return "\n".join([*head_lines, *("| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows)])


@cache
def _load_template() -> jinja2.Template:
    """The page's Jinja template; loaded once per process."""
    return create_environment().get_template(PAGE_TEMPLATE)
