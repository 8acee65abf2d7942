"""Format Markdown: tables, estimates with their intervals, and escaped text from models and users."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.number_format import format_count, format_interval, format_number
from auditor.text_safety import escape_invisible

_MARKUP_PATTERN = re.compile(r"[\\`*_\[\]<|~]|&(?=[#\w])|:(?=//)|@(?=\w)|(?<=www)\.", re.IGNORECASE)


_LINE_START_PATTERN = re.compile(r"^(\s*)([-+](?=\s|$)|[-=]{2,}|[#>])|^(\s*\d+)([.)])(?=\s|$)", re.MULTILINE)


def escape_markdown(text: str) -> str:
    """Escape a text for Markdown, on one line: none of it is read as Markdown or HTML."""
    return _escape_markup(" ".join(escape_invisible(text).split()))


def quote_markdown(text: str) -> str:
    """Format a text of several lines as a block quote, none of which is read as Markdown or HTML."""
    lines = _escape_markup(escape_invisible(text).strip()).splitlines()
    return "\n".join(f"> {line.strip()}".rstrip() for line in lines)


def _escape_markup(text: str) -> str:
    """Put a backslash before characters that are markup anywhere, or at the start of a line."""
    escaped = _MARKUP_PATTERN.sub(lambda match: "\\" + match.group(), text)
    return _LINE_START_PATTERN.sub(lambda match: f"{match[1] or ''}{match[3] or ''}\\{match[2] or match[4]}", escaped)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table with escaped cells."""
    table_rows = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell if i == 1 else escape_markdown(cell) for cell in row) + " |"
        for i, row in enumerate(table_rows)
    )


def format_estimate_with_n(estimate: Estimate, digits: int = 2) -> str:
    """Format an estimate with its interval and n, or the reason why it is missing."""
    if estimate.value is None:
        return f"not measurable: {estimate.reason}"
    interval_text = (
        format_interval(estimate.ci_low, estimate.ci_high, digits)
        if estimate.ci_low is not None
        else str(estimate.reason)
    )
    return f"{format_number(estimate.value, digits)} ({interval_text}; n {format_count(estimate.n)})"


def format_yes_no(flag: bool) -> str:
    """Format a flag as "yes" or "no"."""
    return "yes" if flag else "no"
