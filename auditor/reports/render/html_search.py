"""The search of a page in HTML: its form, its records as JSON, and the only script that pages may have."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TextIO

from auditor.reports.document import Search, SearchFilter, SearchRecord
from auditor.reports.render.escaping import escape_html
from auditor.reports.render.html_text import element
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
