"""Documents of the experiments on judges: injected faults, position and self-preference bias, drift, and a hold-out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor.reports.charts.interval_plot import CORRELATION_AXIS, SHARE_AXIS, Axis
from auditor.reports.data.panel.certificate import describe_fault_detection
from auditor.reports.data.panel.judge_experiments import HoldoutRow
from auditor.reports.data.panel.schema import PanelReport, RestatementShiftRow
from auditor.reports.document import Block, Column, Document, Figure, Name, Paragraph, Section, Table
from auditor.reports.sections.estimate_plots import LabelledEstimate
from auditor.reports.sections.experiments.common import (
    build_experiment_document,
    compare_interval_with,
    count_finding,
    plot_estimates,
)
from auditor.reports.sections.panel_tables import (
    JUDGE_COLUMN,
    build_fault_table,
    build_position_table,
    build_self_review_table,
    estimate_columns,
)

FAULT_AXIS = replace(CORRELATION_AXIS, title="Difference in the share of INVALID (higher is better)")
PREFERENCE_AXIS = replace(SHARE_AXIS, title="Share of answers (0.5 is no preference)", reference=0.5)
VALID_DIFFERENCE_TITLE = "Difference in the share of VALID (0 is none)"


def build_fault_injection_document(audit: str, panel: PanelReport) -> Document:
    """Build the document on which judges detect injected faults."""
    table = build_fault_table(panel.faults)
    remark = (
        "Each judge reviews the same traces with and without an injected fault. A judge whose difference may be 0 is "
        "not shown to detect the fault. A panel of such judges repeats a shared bias instead of detecting it."
    )
    plots = [
        figure
        for i, judge in enumerate(dict.fromkeys(row.judge for row in panel.faults))
        for figure in plot_estimates(
            f"faults-of-judge-{i + 1}",
            f"{judge}: share of INVALID with the fault minus without",
            [(row.fault, row.difference) for row in panel.faults if row.judge == judge],
            FAULT_AXIS,
            table_id=table.id,
        )
    ]
    sections = _build_sections("faults", "Detection of injected faults", remark, plots, table)
    findings = [describe_fault_detection(panel)] if panel.faults else []
    return build_experiment_document(audit, "injected faults", findings, sections, "No fault was injected.")


def build_judge_bias_document(audit: str, panel: PanelReport) -> Document:
    """Build the document on judges' position bias and self-preference."""
    # `row.first`: share of answers for the trace shown first; `row.preference`: leniency towards own traces.
    position_biased = [row.judge for row in panel.positions if compare_interval_with(row.first, 0.5)]
    self_lenient = [row.judge for row in panel.own_traces if compare_interval_with(row.preference) > 0]
    findings = [
        count_finding(position_biased, len(panel.positions), "judge", "prefer one position"),
        count_finding(self_lenient, len(panel.own_traces), "judge", "be more lenient with own traces"),
    ]
    sections = [
        *_build_estimate_sections(
            "positions",
            "Position bias",
            "Both sides of a conflict are shown in both orders; these answers count in no vote.",
            "Share of answers for the trace shown first",
            [(row.judge, row.first) for row in panel.positions],
            PREFERENCE_AXIS,
            build_position_table(panel.positions),
        ),
        *_build_estimate_sections(
            "self-preference",
            "Self-preference",
            "How much more lenient each judge is with its own traces than the others are with these, compared with its "
            "leniency towards the traces of others.",
            "Self-preference",
            [(row.judge, row.preference) for row in panel.own_traces],
            VALID_DIFFERENCE_TITLE,
            build_self_review_table(panel.own_traces),
        ),
    ]
    return build_experiment_document(
        audit, "position bias and self-preference", findings, sections, "There was nothing to show to the judges."
    )


def build_judge_drift_document(first_audit: str, second_audit: str, rows: Sequence[RestatementShiftRow]) -> Document:
    """Build the document on drift of judges between two audits."""
    shifted_judges = [
        f"{row.judge} ({'more lenient' if compare_interval_with(row.shift) > 0 else 'stricter'})"
        for row in rows
        if compare_interval_with(row.shift)
    ]
    n_measured = sum(row.shift.value is not None for row in rows)
    finding = count_finding(shifted_judges, n_measured, "judge", "have become more lenient or stricter")
    table = Table(
        "judge-drift",
        "Drift of judges",
        f"Share of VALID verdicts on the same traces in {first_audit} (before) and in {second_audit} (after), share of "
        "verdicts that changed, and difference, after minus before (above 0: more lenient). n counts traces.",
        [
            JUDGE_COLUMN,
            *estimate_columns("VALID before", "VALID after", "Verdicts changed"),
            *estimate_columns("Difference", is_signed=True),
        ],
        [[Name(row.judge), row.valid, row.restated, row.changed, row.shift] for row in rows],
    )
    sections = _build_estimate_sections(
        "drift",
        "Verdicts on the same traces",
        "",
        "Share of VALID, after minus before",
        [(row.judge, row.shift) for row in rows],
        VALID_DIFFERENCE_TITLE,
        table,
    )
    no_finding = "No trace was judged by the same judge in both audits."
    return build_experiment_document(
        f"{first_audit} and {second_audit}", "drift of judges", [finding], sections, no_finding
    )


def build_holdout_document(audit: str, rows: Sequence[HoldoutRow]) -> Document:
    """Build the document on how well peer agreement predicts agreement with people on held-out cells and models."""
    remark = (
        "Unseen cells: cells are split 80 to 20 many times, and peer agreement on the larger part is correlated over "
        "models with r on the smaller part. Unseen models: each model is left out in turn, and its r is predicted by a "
        "line through the other models."
    )
    table = Table(
        "holdout",
        "Hold-out",
        "Peer agreement as a prediction of agreement with people. r on unseen cells: higher is better. Mean absolute "
        "error on unseen models: lower is better; the mean of the other models is the baseline.",
        [
            Column("Method", "name"),
            Column("Models", "number"),
            Column("Splits", "number"),
            *estimate_columns("r on unseen cells", "Error of the mean", "Error of peer agreement", show_n=False),
        ],
        [[row.method, row.models, row.splits, row.unseen_cells, row.error_of_mean, row.error] for row in rows],
    )
    sections = _build_estimate_sections(
        "holdout-results",
        "Prediction of unseen cells and models",
        remark,
        "r on unseen cells",
        [(row.method, row.unseen_cells) for row in rows],
        CORRELATION_AXIS,
        table,
    )
    return build_experiment_document(
        audit,
        "peer agreement and people",
        [row.sentence for row in rows],
        sections,
        "There are no verdicts to compare with people.",
    )


def _build_estimate_sections(
    section_id: str,
    title: str,
    remark: str,
    plot_title: str,
    rows: Sequence[LabelledEstimate],
    axis: Axis | str,
    table: Table,
) -> list[Section]:
    """Build a section with a plot of one column of its table; an empty list for a table without rows."""
    plots = plot_estimates(f"{section_id}-plot", plot_title, rows, axis, table_id=table.id)
    return _build_sections(section_id, title, remark, plots, table)


def _build_sections(section_id: str, title: str, remark: str, plots: Sequence[Figure], table: Table) -> list[Section]:
    """Build a section with a remark, plots and a table; an empty list for a table without rows."""
    blocks: list[Block] = [*([Paragraph(remark)] if remark else []), *plots, table]
    return [Section(section_id, title, blocks, contents_title=title)] if table.rows else []
