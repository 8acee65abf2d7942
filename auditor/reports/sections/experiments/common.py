"""What the documents of experiments share: the findings at the top, and plots of estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.charts.interval_plot import Axis, difference_axis
from auditor.reports.document import Document, Figure, Inline, Paragraph, Section
from auditor.reports.number_format import pluralize
from auditor.reports.sections.estimate_plots import LabelledEstimate, build_interval_figure
from auditor.reports.sections.phrasing import join_names

DOCUMENT_KIND = "Experiment"
MAX_PLOTTED_ROWS = 60
"""Rows of a plot; with more, only the table has the figures."""


def build_experiment_document(
    audit: str, title: str, findings: Iterable[Sequence[Inline]], sections: Sequence[Section], no_finding: str
) -> Document:
    """Build the document of an experiment on an audit, titled "AUDIT: TITLE", with its findings at the top.

    Args:
        findings: sentences, each a text or its nodes; empty ones are left out.
        no_finding: the sentence if there are no findings.
    """
    nodes: list[Inline] = []
    for finding in filter(None, findings):
        nodes += [" "] if nodes else []
        nodes += [finding] if isinstance(finding, str) else finding
    return Document(
        DOCUMENT_KIND, f"{audit}: {title}", "", sections, opening=[Paragraph(nodes or no_finding, role="lead")]
    )


def count_finding(names: Sequence[str], n_total: int, noun: str, property_phrase: str) -> list[Inline]:
    """State how many of n_total are shown to have a property, and name them; empty if n_total is 0.

    Args:
        names: those with the property.
        noun: what is counted, in the singular.
        property_phrase: the property as an infinitive without "to", such as "be more consistent with a rule".
    """
    if not n_total:
        return []
    counted = pluralize(n_total, noun)
    if not names:
        return [f"No {noun} is shown to {property_phrase} ({counted} measured)."]
    verb = "is" if len(names) == 1 else "are"
    return [f"{len(names)} of {counted} {verb} shown to {property_phrase}: ", *join_names(names), "."]


def compare_interval_with(estimate: Estimate, reference: float = 0.0) -> int:
    """1 if an estimate's interval lies above the reference, -1 if below it, 0 if it includes it or is missing."""
    if estimate.value is None or estimate.ci_low is None or estimate.ci_high is None:
        return 0
    return int(estimate.ci_low > reference) - int(estimate.ci_high < reference)


def plot_estimates(
    figure_id: str, title: str, rows: Iterable[LabelledEstimate], axis: Axis | str, *, table_id: str
) -> list[Figure]:
    """Plot estimates with their intervals; an empty list for no values, or more than `MAX_PLOTTED_ROWS`.

    Args:
        rows: label and estimate of each row; those without a value are left out.
        axis: the axis, or the title of one that is symmetric around 0 and fits the values.
    """
    measured = [(label, estimate) for label, estimate in rows if estimate.value is not None]
    if not 0 < len(measured) <= MAX_PLOTTED_ROWS:
        return []
    if isinstance(axis, str):
        bounds = (bound for _, row in measured for bound in (row.value, row.ci_low, row.ci_high))
        axis = difference_axis(bounds, axis)
    caption = f"{title}, with 95% CI."
    return [build_interval_figure(figure_id, title, measured, axis, table_id=table_id, caption=caption)]
