"""Remarks of the experiment `robustness` on its design: choices, cost, confounding, and other panels."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.metrics.design_matrix import BASE_RUNS
from auditor.reports.data.sampling.design import WITHOUT_JUDGE, ConfoundingRow, DesignReport
from auditor.reports.document import Block, Document, List, Paragraph, Section
from auditor.reports.number_format import format_count, format_number, pluralize
from auditor.reports.sections.experiments.common import build_experiment_document
from auditor.reports.sections.experiments.robustness import build_robustness_document

MAX_NAMED = 3
"""Confounded pairs that the page names; the JSON has all."""


def build_design_document(report: DesignReport) -> Document:
    """Build the document of the experiment; before a run was asked, the plan and its cost."""
    if report.figures is not None:
        return build_robustness_document(report.figures, list(_describe_design(report)))
    finding = (
        f"The design is not asked yet. {report.forecast} Add --ask to ask the models. "
        "Until then, no answer says whether another design would have given the same result."
    )
    levels = List([f"{factor}: {', '.join(levels)}." for factor, levels in report.factors.items()])
    blocks = [*_describe_design(report), Paragraph("The choices, the audit’s level first:"), levels]
    return build_experiment_document(
        report.audit, "robustness", [finding], [Section("design", "The design", blocks)], ""
    )


def _describe_design(report: DesignReport) -> Iterator[Block]:
    """Yield the remarks; short ones where the page has results, and so the numbers of runs and cells."""
    is_plan = report.figures is None
    asked = "all" if report.runs_per_cell == report.runs else f"{report.runs_per_cell}"
    total = f"{pluralize(report.runs, 'run')}, {pluralize(report.cells, 'cell')}. " if is_plan else ""
    yield Paragraph(
        f"{total}Each cell is asked in {asked} of the runs, with {pluralize(report.samples, 'sample')} of every model. "
        f"Run 0 has the audit’s settings.{_explain_few_runs(report)} {format_count(report.planned)} calls, "
        f"{format_count(report.recorded)} recorded."
    )
    if not is_plan and report.recorded < report.planned:
        yield Paragraph(f"To be sent with --ask: {report.forecast}")
    if report.omitted and is_plan:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in report.omitted.items())
        yield Paragraph(f"Left out: {reasons}.", "note")
    elif report.omitted:
        yield Paragraph(f"Left out (why: --json): {', '.join(report.omitted)}.", "note")
    if report.panels:
        yield Paragraph(_describe_panels(report))
    yield Paragraph(_describe_confounding(report))


def _explain_few_runs(report: DesignReport) -> str:
    """Say why a design has fewer than 16 runs; empty if it has not."""
    if report.runs >= BASE_RUNS:
        return ""
    return f" They are all combinations: {BASE_RUNS} runs would repeat some."


def _describe_panels(report: DesignReport) -> str:
    """State how many conflicts other panels settle, by the recorded verdicts."""
    audited, *others = report.panels
    sentence = f"The panel settles {audited.settled} of {pluralize(report.conflicts, 'conflict')}"
    without_one = [row for row in others if row.panel.startswith(WITHOUT_JUDGE)]
    variants = [f"{row.settled} {row.panel} ({row.changed} changed)" for row in others if row not in without_one]
    if without_one:
        settled = sorted(row.settled for row in without_one)
        span = f"{settled[0]}" if settled[0] == settled[-1] else f"{settled[0]} to {settled[-1]}"
        most = max(row.changed for row in without_one)
        variants.append(f"{span} without any one judge (at most {most} changed)")
    return f"{sentence}; by the recorded verdicts, {', '.join(variants)}." if variants else f"{sentence}."


def _describe_confounding(report: DesignReport) -> str:
    """State which effects the design does not separate."""
    n_pairs = sum(len(levels) == 2 for levels in report.factors.values())
    separate = "Choices of two levels have resolution IV. " if n_pairs > 1 else ""
    if not report.confounding:
        return f"{separate}No choice shares 5% or more with another, or with an interaction of two."
    named = "; ".join(map(_describe_pair, report.confounding[:MAX_NAMED]))
    n_others = len(report.confounding) - MAX_NAMED
    named += f"; {format_count(n_others)} more: --json" if n_others > 0 else ""
    return f"{separate}Partly confounded (largest squared correlation; at 1 inseparable): {named}."


def _describe_pair(row: ConfoundingRow) -> str:
    return f"{row.effect} with {' × '.join(row.other)} {format_number(row.share)}"
