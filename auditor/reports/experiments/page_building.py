"""Functions that the pages of experiments share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.number_format import format_count, format_estimate, format_number
from auditor.reports.pages.interval_marks import build_interval_mark
from auditor.reports.pages.report_page import PagePlot, PageSection, ReportPage
from auditor.reports.pages.svg_charts import Axis, difference_axis, interval_plot

KICKER = "Experiment"
MAX_PLOTTED = 60


def format_estimate_or_reason(estimate: Estimate) -> str:
    """Format an estimate with its interval, or the reason it is missing."""
    if estimate.value is None:
        return estimate.reason or format_number(None)
    return (
        format_estimate(estimate)
        if estimate.ci_low is not None
        else f"{format_number(estimate.value)} ({estimate.reason})"
    )


def estimate_cells(*estimates: Estimate) -> list[str]:
    """Format estimates as cells of a table, followed by the n of the last one."""
    return [*map(format_estimate_or_reason, estimates), format_count(estimates[-1].n)]


def compare_interval_with(estimate: Estimate, reference: float = 0.0) -> int:
    """1 if an estimate's interval lies above the reference, -1 if below it, 0 if it includes it or is missing."""
    if estimate.value is None or estimate.ci_low is None or estimate.ci_high is None:
        return 0
    return int(estimate.ci_low > reference) - int(estimate.ci_high < reference)


def count_sentence(names: Sequence[str], n_total: int, noun: str, predicate: str, none_predicate: str) -> str:
    """State how many of n_total have a property, and name them; empty if n_total is 0.

    Args:
        names: those with the property.
        noun: what is counted, in the plural.
        predicate: the property.
        none_predicate: the predicate if there are none.
    """
    if not n_total:
        return ""
    return (
        f"{len(names)} of {n_total} {noun} {predicate}: {', '.join(names)}."
        if names
        else f"Of {n_total} {noun}, {none_predicate}."
    )


def plot_estimates(rows: Iterable[tuple[str, Estimate]], axis: Axis | None, label: str, title: str) -> list[PagePlot]:
    """Plot a dot with its interval for each row; an empty list for no values, or more than `MAX_PLOTTED`.

    Args:
        rows: label and estimate of each row; those without a value are left out.
        axis: axis of the values; None for one symmetric around 0.
        label: name of the axis, used if `axis` is None, and the description for screen readers.
    """
    measured = [(name, estimate) for name, estimate in rows if estimate.value is not None]
    if not measured or len(measured) > MAX_PLOTTED:
        return []
    axis = axis or difference_axis(
        (bound for _, estimate in measured for bound in (estimate.value, estimate.ci_low, estimate.ci_high)), label
    )
    return [
        PagePlot(
            interval_plot([build_interval_mark(*row) for row in measured], axis, title, label),
            f"{title}, with 95% intervals.",
        )
    ]


def build_experiment_page(
    audit: str, title: str, headline_sentences: Iterable[str], sections: Sequence[PageSection], empty_headline: str
) -> ReportPage:
    """Build the page of an experiment on an audit, with the main finding as the headline.

    The title of the page is "AUDIT: TITLE".

    Args:
        headline_sentences: joined to the headline; empty ones are left out.
        empty_headline: the headline if there are no such sentences.
    """
    return ReportPage(
        KICKER, f"{audit}: {title}", "", " ".join(filter(None, headline_sentences)) or empty_headline, sections=sections
    )
