"""Remarks of the experiment `robustness` on its design: choices, cost, confounding, and other panels."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.reports.data.sampling.design import ConfoundingRow, DesignReport
from auditor.reports.document import Block, Disclosure, Document, List, Paragraph, Section
from auditor.reports.number_format import format_count, format_number, pluralize
from auditor.reports.sections.experiments.common import build_experiment_document
from auditor.reports.sections.experiments.robustness import build_robustness_document

MAX_NAMED = 6
"""Confounded pairs that are listed; the JSON has all."""


def build_design_document(report: DesignReport) -> Document:
    """Build the document of the experiment; before a run was asked, the plan and its cost."""
    remarks = list(_describe_design(report))
    if report.figures is not None:
        return build_robustness_document(report.figures, remarks)
    finding = (
        f"The design is not asked yet. {report.forecast} Add --ask to ask the models. "
        "Until then, no answer says whether another design would have given the same result."
    )
    return build_experiment_document(
        report.audit, "robustness", [finding], [Section("design", "The design", remarks)], ""
    )


def _describe_design(report: DesignReport) -> Iterator[Block]:
    """Yield the remarks."""
    remaining = "" if report.recorded == report.planned else f" To be sent with --ask: {report.forecast}"
    yield Paragraph(
        f"{pluralize(report.runs, 'run')}, of which each of {format_count(report.cells)} cells is asked in "
        f"{report.runs_per_cell}; every model takes every run, with {pluralize(report.samples, 'sample')} a cell. "
        f"Run 0 has the audit’s settings. {format_count(report.planned)} calls, "
        f"{format_count(report.recorded)} recorded.{remaining}"
    )
    if report.omitted:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in report.omitted.items())
        yield Paragraph(f"Left out: {reasons}.", "note")
    if report.panels:
        yield Paragraph(_describe_panels(report))
    levels = List([f"{factor}: {', '.join(levels)}." for factor, levels in report.factors.items()])
    yield Disclosure("The choices, and what is confounded with what", [levels, *_describe_confounding(report)])


def _describe_panels(report: DesignReport) -> str:
    """State how many conflicts other panels settle, by the recorded verdicts."""
    audited, *others = report.panels
    sentence = (
        f"Judges change no score. The panel settles {audited.settled} of {pluralize(report.conflicts, 'conflict')}"
    )
    if not others:
        return f"{sentence}."
    variants = ", ".join(f"{row.settled} {row.panel} ({row.changed} changed)" for row in others)
    return f"{sentence}; recomputed from the recorded verdicts: {variants}."


def _describe_confounding(report: DesignReport) -> Iterator[Block]:
    """Yield which effects the design does not separate."""
    pairs = [name for name, levels in report.factors.items() if len(levels) == 2]
    if len(pairs) > 1:
        yield Paragraph(
            f"Choices of two levels ({', '.join(pairs)}) are separate from each other and from interactions of two of "
            "them (resolution IV)."
        )
    if not report.confounding:
        yield Paragraph("No effect of a choice shares 5% or more with another, or with an interaction of two.")
        return
    yield Paragraph(
        "Partly confounded effects, with the largest squared correlation of their contrasts; at 1, the design cannot "
        "tell them apart:"
    )
    yield List([_describe_pair(row) for row in report.confounding[:MAX_NAMED]])
    if len(report.confounding) > MAX_NAMED:
        yield Paragraph(f"{pluralize(len(report.confounding) - MAX_NAMED, 'further pair')}: see --json.")


def _describe_pair(row: ConfoundingRow) -> str:
    return f"{row.effect} with {' × '.join(row.other)}: {format_number(row.share)}."
