"""What the pages of experiments share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.interval_marks import mark
from auditor.reports.pages.number_format import count, number, with_interval
from auditor.reports.pages.report_page import Chapter, Page, Plot
from auditor.reports.pages.svg_charts import Axis, difference_axis, interval_plot

KICKER = "Experiment"
MOST_PLOTTED = 60


def figure(e: Estimate) -> str:
    """An estimate with its interval, or why there is none."""
    if e.value is None:
        return e.reason or number(None)
    return with_interval(e) if e.ci_low is not None else f"{number(e.value)} ({e.reason})"


def figures(*estimates: Estimate) -> list[str]:
    """Some, and how many observations the last is of."""
    return [*map(figure, estimates), count(estimates[-1].n)]


def beyond(e: Estimate, value: float = 0.0) -> int:
    """1 where the whole interval is above a value, -1 where it is below, 0 where nothing is shown."""
    if e.value is None or e.ci_low is None or e.ci_high is None:
        return 0
    return int(e.ci_low > value) - int(e.ci_high < value)


def whose(names: Sequence[str], of: int, noun: str, told: str, none: str) -> str:
    """A sentence on those of whom something is shown; an empty one where nobody was looked at."""
    if not of:
        return ""
    return f"{len(names)} of {of} {noun} {told}: {', '.join(names)}." if names else f"Of {of} {noun}, {none}."


def plot(rows: Iterable[tuple[str, Estimate]], axis: Axis | None, label: str, title: str) -> list[Plot]:
    """A dot and its interval for each row; none where there is nothing to draw, or too much.

    Args:
        axis: what values lie on; None is one around 0.
    """
    known = [(name, e) for name, e in rows if e.value is not None]
    if not known or len(known) > MOST_PLOTTED:
        return []
    axis = axis or difference_axis((v for _, e in known for v in (e.value, e.ci_low, e.ci_high)), label)
    return [Plot(interval_plot([mark(*row) for row in known], axis, title, label), f"{title}, with 95% intervals.")]


def page(audit: str, title: str, answers: Iterable[str], chapters: Sequence[Chapter], none: str) -> Page:
    """An experiment on an audit: its answer first.

    Args:
        none: the answer where there is none.
    """
    return Page(KICKER, f"{audit}: {title}", "", " ".join(filter(None, answers)) or none, chapters=chapters)
