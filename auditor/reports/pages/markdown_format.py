"""Pieces of Markdown: tables, figures with their intervals, and what others wrote, escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import format_count, format_interval, format_number
from auditor.text_safety import escape_invisible

_MARKUP_PATTERN = re.compile(r"[\\`*_\[\]<|~]|&(?=[#\w])|:(?=//)|@(?=\w)|(?<=www)\.", re.IGNORECASE)


_LINE_START_PATTERN = re.compile(r"^(\s*)([-+](?=\s|$)|[-=]{2,}|[#>])|^(\s*\d+)([.)])(?=\s|$)", re.MULTILINE)


def escape_markdown(text: str) -> str:
    """A text on one line in which nothing is Markdown or HTML."""
    return _escape_markup(" ".join(escape_invisible(text).split()))


def quote_markdown(text: str) -> str:
    """A text of several lines as a block quote in which nothing is Markdown or HTML."""
    lines = _escape_markup(escape_invisible(text).strip()).splitlines()
    return "\n".join(f"> {line.strip()}".rstrip() for line in lines)


def _escape_markup(text: str) -> str:
    """Backslashes before what would act anywhere, and before what would act at the start of a line."""
    escaped = _MARKUP_PATTERN.sub(lambda m: "\\" + m.group(), text)
    return _LINE_START_PATTERN.sub(lambda m: f"{m[1] or ''}{m[3] or ''}\\{m[2] or m[4]}", escaped)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell if i == 1 else escape_markdown(cell) for cell in line) + " |"
        for i, line in enumerate(lines)
    )


def format_estimate_with_n(estimate: Estimate, digits: int = 2) -> str:
    if estimate.value is None:
        return f"not measurable: {estimate.reason}"
    between = (
        format_interval(estimate.ci_low, estimate.ci_high, digits)
        if estimate.ci_low is not None
        else str(estimate.reason)
    )
    return f"{format_number(estimate.value, digits)} ({between}; n {format_count(estimate.n)})"


def format_yes_no(flag: bool) -> str:
    return "yes" if flag else "no"
