"""A small page of prose, tables and plots, and its forms: HTML that needs no network, Markdown, or a terminal's text.

What is put in is plain text; each form escapes it for itself.
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
    """A table: a heading row, then rows of as many texts; the first column names the row."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class PagePlot:
    """A picture beside which a table gives the same figures."""

    svg: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class PageSection:
    """One section; what is empty is left out."""

    title: str
    paragraphs: Sequence[str] = ()
    bullets: Sequence[str] = ()
    plots: Sequence[PagePlot] = ()
    tables: Sequence[PageTable] = ()


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A whole page: what it is, the answer in one sentence, what speaks against trusting it, and the rest."""

    kicker: str
    title: str
    subtitle: str
    headline: str
    bullets: Sequence[str] = ()
    warnings: Sequence[str] = ()
    sections: Sequence[PageSection] = ()


def render_page(page: ReportPage, page_format: str) -> str:
    """The page as `html` or `markdown`.

    Raises:
        UsageError: no such form.
    """
    forms: dict[str, Callable[[ReportPage], str]] = {"html": render_page_html, "markdown": render_page_markdown}
    if page_format not in forms:
        raise UsageError(f"'{page_format}' is no form of this page.", "Known are html and markdown (.html, .md).")
    return forms[page_format](page)


def render_page_html(page: ReportPage) -> str:
    """One file, light and dark, printable, without scripts."""
    return _load_template().render(page=page, version=metadata.version("auditor"))


def render_page_markdown(page: ReportPage) -> str:
    """The same figures as tables; plots are left out."""
    return "\n\n".join(part for part in _page_markdown_blocks(page) if part) + "\n"


def _page_markdown_blocks(page: ReportPage) -> Iterable[str]:
    yield f"# {escape_markdown(page.title)}"
    yield escape_markdown(page.subtitle)
    yield f"**{escape_markdown(page.headline)}**"
    yield _bullet_list(page.bullets)
    if page.warnings:
        yield "**What speaks against trusting it**"
        yield _bullet_list(page.warnings)
    for chapter in page.sections:
        yield f"## {escape_markdown(chapter.title)}"
        yield from map(escape_markdown, chapter.paragraphs)
        yield _bullet_list(chapter.bullets)
        for grid in chapter.tables:
            yield escape_markdown(grid.caption)
            yield markdown_table(grid.columns, grid.rows)


def _bullet_list(bullets: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(point)}" for point in bullets)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in which nothing is Markdown or HTML."""
    lines = ["| " + " | ".join(map(escape_markdown, columns)) + " |", "|" + " --- |" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows)])


@cache
def _load_template() -> jinja2.Template:
    return create_environment().get_template(PAGE_TEMPLATE)
