"""What the pages of experiments share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.interval_marks import build_interval_mark
from auditor.reports.pages.number_format import format_count, format_estimate, format_number
from auditor.reports.pages.report_page import PagePlot, PageSection, ReportPage
from auditor.reports.pages.svg_charts import Axis, difference_axis, interval_plot

KICKER = "Experiment"
MAX_PLOTTED = 60


def format_estimate_or_reason(estimate: Estimate) -> str:
    """An estimate with its interval, or why there is none."""
    if estimate.value is None:
        return estimate.reason or format_number(None)
    return (
        format_estimate(estimate)
        if estimate.ci_low is not None
        else f"{format_number(estimate.value)} ({estimate.reason})"
    )


def estimate_cells(*estimates: Estimate) -> list[str]:
    """Some, and how many observations the last is of."""
    return [*map(format_estimate_or_reason, estimates), format_count(estimates[-1].n)]


def compare_interval_with(estimate: Estimate, reference: float = 0.0) -> int:
    """1 where the whole interval is above a value, -1 where it is below, 0 where nothing is shown."""
    if estimate.value is None or estimate.ci_low is None or estimate.ci_high is None:
        return 0
    return int(estimate.ci_low > reference) - int(estimate.ci_high < reference)


def count_sentence(names: Sequence[str], n_total: int, noun: str, predicate: str, none_predicate: str) -> str:
    """A sentence on those of whom something is shown; an empty one where nobody was looked at."""
    if not n_total:
        return ""
    return (
        f"{len(names)} of {n_total} {noun} {predicate}: {', '.join(names)}."
        if names
        else f"Of {n_total} {noun}, {none_predicate}."
    )


def plot_estimates(rows: Iterable[tuple[str, Estimate]], axis: Axis | None, label: str, title: str) -> list[PagePlot]:
    """A dot and its interval for each row; none where there is nothing to draw, or too much.

    Args:
        axis: what values lie on; None is one around 0.
    """
    known = [(name, e) for name, e in rows if e.value is not None]
    if not known or len(known) > MAX_PLOTTED:
        return []
    axis = axis or difference_axis((v for _, e in known for v in (e.value, e.ci_low, e.ci_high)), label)
    return [
        PagePlot(
            interval_plot([build_interval_mark(*row) for row in known], axis, title, label),
            f"{title}, with 95% intervals.",
        )
    ]


def build_experiment_page(
    audit: str, title: str, headline_sentences: Iterable[str], sections: Sequence[PageSection], empty_headline: str
) -> ReportPage:
    """An experiment on an audit: its answer first.

    Args:
        none: the answer where there is none.
    """
    return ReportPage(
        KICKER, f"{audit}: {title}", "", " ".join(filter(None, headline_sentences)) or empty_headline, sections=sections
    )
