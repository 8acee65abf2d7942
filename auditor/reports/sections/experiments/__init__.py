"""Documents of the experiments: the findings at the top, and plots of estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.reports.charts.interval_plot import Axis
from auditor.reports.document import Block, Document, Figure, Inline, Paragraph, Section, Table, Text
from auditor.reports.number_format import pluralize
from auditor.reports.sections.phrasing import LabelledEstimate, build_interval_figure, join_names

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
    return Document(DOCUMENT_KIND, f"{audit}: {title}", "", sections, [Paragraph(nodes or no_finding, "lead")])


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


def build_result_sections(
    section_id: str, title: str, table: Table, plots: Sequence[Figure], remark: str = ""
) -> list[Section]:
    """Build the section of a table, with a remark and plots above it; an empty list for a table without rows."""
    blocks: list[Block] = [*([Paragraph(remark)] if remark else []), *plots, table]
    return [Section(section_id, title, blocks, contents_title=title)] if table.rows else []


def plot_estimates(
    figure_id: str,
    title: str,
    rows: Iterable[LabelledEstimate],
    axis: Axis | str,
    *,
    table_id: str,
    caption: Text = "",
) -> list[Figure]:
    """Plot the estimates that have a value; an empty list for none, or for more than `MAX_PLOTTED_ROWS`.

    Args:
        axis: the axis, or the title of one that is symmetric around 0 and fits the values.
        caption: by default the title, with a remark on the intervals.
    """
    measured = [(label, estimate) for label, estimate in rows if estimate.value is not None]
    if not 0 < len(measured) <= MAX_PLOTTED_ROWS:
        return []
    caption = caption or f"{title}, with 95% CI."
    return [build_interval_figure(figure_id, title, measured, axis, table_id=table_id, caption=caption)]
