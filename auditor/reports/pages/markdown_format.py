"""Pieces of Markdown: tables, figures with their intervals, and what others wrote, escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import count, interval, number
from auditor.text_safety import visible

_ACTIVE = re.compile(r"[\\`*_\[\]<|~]|&(?=[#\w])|:(?=//)|@(?=\w)|(?<=www)\.", re.IGNORECASE)


_AT_START = re.compile(r"^(\s*)([-+](?=\s|$)|[-=]{2,}|[#>])|^(\s*\d+)([.)])(?=\s|$)", re.MULTILINE)


def escape(text: str) -> str:
    """A text on one line in which nothing is Markdown or HTML."""
    return _escape(" ".join(visible(text).split()))


def quote(text: str) -> str:
    """A text of several lines as a block quote in which nothing is Markdown or HTML."""
    lines = _escape(visible(text).strip()).splitlines()
    return "\n".join(f"> {line.strip()}".rstrip() for line in lines)


def _escape(text: str) -> str:
    """Backslashes before what would act anywhere, and before what would act at the start of a line."""
    escaped = _ACTIVE.sub(lambda m: "\\" + m.group(), text)
    return _AT_START.sub(lambda m: f"{m[1] or ''}{m[3] or ''}\\{m[2] or m[4]}", escaped)


def tabled(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell if i == 1 else escape(cell) for cell in line) + " |" for i, line in enumerate(lines)
    )


def estimated(estimate: Estimate, digits: int = 2) -> str:
    if estimate.value is None:
        return f"not measurable: {estimate.reason}"
    between = (
        interval(estimate.ci_low, estimate.ci_high, digits) if estimate.ci_low is not None else str(estimate.reason)
    )
    return f"{number(estimate.value, digits)} ({between}; n {count(estimate.n)})"


def yes(value: bool) -> str:
    return "yes" if value else "no"
