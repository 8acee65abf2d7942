"""Render a document as one HTML page that needs no network, and contains no script unless it has a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

from auditor.reports.document import Document, Figure
from auditor.reports.document.traversal import iterate_blocks
from auditor.reports.render.escaping import escape_html, isolate_rtl
from auditor.reports.render.html_blocks import HtmlBlocks
from auditor.reports.render.html_search import (
    SearchDataWriter,
    build_script_policy,
    load_search_stylesheet,
    render_search_form,
)
from auditor.reports.render.html_tables import BAR_WIDTH_RULES, COLUMN_COUNT_RULES
from auditor.reports.render.html_text import element, html_inline

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
