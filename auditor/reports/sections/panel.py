"""The section on the panel: what judges say of each model, how reliable they are, and their biases."""

from __future__ import annotations

from auditor.reports.charts.interval_plot import SHARE_AXIS
from auditor.reports.data.panel.schema import PanelReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Code, Column, Inline, List, Paragraph, Section
from auditor.reports.number_format import describe_estimate, pluralize
from auditor.reports.sections.estimate_plots import build_interval_figure
from auditor.reports.sections.panel_tables import build_panel_tables
from auditor.reports.sections.tables import make_columns, tabulate


def build_panel_section(report: Report) -> Section | None:
    """Build the section; None without judges."""
    panel = report.panel
    if not panel.judges:
        return None
    masked = "its author, country or topic" if report.task is None else "its author or the correct answer"
    shown = "" if report.task is None else " They saw the question."
    lead = (
        f"Judges reviewed each trace without knowing {masked}.{shown} "
        "Peer agreement is the share of VALID verdicts. A value below 70% is a sign of failure."
    )
    certificate = List([_mark_code(sentence) for sentence in panel.certificate])
    blocks: list[Block] = [
        Paragraph(lead),
        *_build_peer_agreement(report),
        Section("panel-certificate", "What the panel’s verdicts can be used for", [certificate]),
        Section("panel-judges", "The judges", [Paragraph(describe_kappa(panel)), *build_panel_tables(panel)]),
    ]
    return Section("panel", "Is the panel of judges reliable?", blocks, "Panel")


def _mark_code(sentence: str) -> list[Inline]:
    """Convert the parts of a sentence that are between backticks to code."""
    return [Code(part) if i % 2 else part for i, part in enumerate(sentence.split("`"))]


def describe_kappa(panel: PanelReport) -> str:
    """Describe Fleiss' kappa of the judges' verdicts, with its 95% CI."""
    kappa = panel.fleiss_kappa
    if kappa.value is None:
        return f"The judges’ agreement beyond chance is not available: {kappa.reason}."
    return (
        f"Agreement of the judges beyond chance: {describe_estimate('Fleiss’ kappa', kappa, 'trace')} with "
        f"{pluralize(panel.verdicts, 'verdict')} from at least two judges each. "
        "1 is complete agreement, 0 is agreement by chance."
    )


def list_aspects(report: Report) -> dict[str, str]:
    """Titles of the aspects that judges rate besides the verdict, by field of `PeerAgreementRow`.

    The aspect of cultural accuracy exists only for a survey.
    """
    titles = {"cultural_accuracy": "Cultural accuracy"} if report.task is None else {}
    fit_title = "Fit of the score" if report.task is None else "Fit of the answer"
    return titles | {"logical_consistency": "Logical consistency", "score_fit": fit_title}


def _build_peer_agreement(report: Report) -> list[Block]:
    """Plot and list the share of VALID verdicts on each model's traces; empty without a model that was judged."""
    rows = report.peer_agreement
    if not rows:
        return []
    title, table_id = "Peer agreement", "peer-agreement"
    shares = [(row.model, row.agreement) for row in rows]
    plot_caption = "Peer agreement of each model, with 95% CI. Higher is better."
    caption = (
        "Verdicts on each model’s traces, and the share of answers that find each aspect met, from 0 to 1 (higher is "
        "better). 95% CIs are over countries and topics; n counts verdicts."
    )
    columns = [
        Column("Model", "name"),
        *make_columns("number", {"given": "Verdicts", "valid": "VALID"}),
        Column(title, "estimate", "agreement", emphasis=True),
        *make_columns("estimate", list_aspects(report)),
    ]
    return [
        build_interval_figure(
            "peer-agreement-plot", title, shares, SHARE_AXIS, table_id=table_id, caption=plot_caption
        ),
        tabulate(table_id, title, caption, rows, columns),
    ]
