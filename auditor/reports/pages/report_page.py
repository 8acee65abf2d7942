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
from auditor.reports.pages.jinja_environment import environment
from auditor.reports.pages.markdown_format import escape

TEMPLATE = "page.html.j2"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: a heading row, then rows of as many texts; the first column names the row."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture beside which a table gives the same figures."""

    svg: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """One section; what is empty is left out."""

    title: str
    text: Sequence[str] = ()
    points: Sequence[str] = ()
    plots: Sequence[Plot] = ()
    grids: Sequence[Grid] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page: what it is, the answer in one sentence, what speaks against trusting it, and the rest."""

    kicker: str
    title: str
    subtitle: str
    answer: str
    points: Sequence[str] = ()
    warnings: Sequence[str] = ()
    chapters: Sequence[Chapter] = ()


def render_page(page: Page, form: str) -> str:
    """The page as `html` or `markdown`.

    Raises:
        UsageError: no such form.
    """
    forms: dict[str, Callable[[Page], str]] = {"html": page_html, "markdown": page_markdown}
    if form not in forms:
        raise UsageError(f"'{form}' is no form of this page.", "Known are html and markdown (.html, .md).")
    return forms[form](page)


def page_html(page: Page) -> str:
    """One file, light and dark, printable, without scripts."""
    return _template().render(page=page, version=metadata.version("auditor"))


def page_markdown(page: Page) -> str:
    """The same figures as tables; plots are left out."""
    return "\n\n".join(part for part in _markdown(page) if part) + "\n"


def _markdown(page: Page) -> Iterable[str]:
    yield f"# {escape(page.title)}"
    yield escape(page.subtitle)
    yield f"**{escape(page.answer)}**"
    yield _points(page.points)
    if page.warnings:
        yield "**What speaks against trusting it**"
        yield _points(page.warnings)
    for chapter in page.chapters:
        yield f"## {escape(chapter.title)}"
        yield from map(escape, chapter.text)
        yield _points(chapter.points)
        for grid in chapter.grids:
            yield escape(grid.caption)
            yield markdown_table(grid.columns, grid.rows)


def _points(points: Sequence[str]) -> str:
    return "\n".join(f"- {escape(point)}" for point in points)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in which nothing is Markdown or HTML."""
    lines = ["| " + " | ".join(map(escape, columns)) + " |", "|" + " --- |" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(map(escape, row)) + " |" for row in rows)])


@cache
def _template() -> jinja2.Template:
    return environment().get_template(TEMPLATE)
