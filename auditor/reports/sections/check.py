"""The document of a check: the verdict, and the outcome of each gate."""

from __future__ import annotations

from auditor.reports.data.gates.schema import CheckResult, GateStatus
from auditor.reports.document import Cell, Code, Column, Document, Name, Paragraph, Section, Table

STATUS_LABELS = {
    GateStatus.PASSED: "✓ passed",
    GateStatus.FAILED: "✗ failed",
    GateStatus.UNDECIDED: "? undecided",
    GateStatus.SKIPPED: "– skipped",
}
VERDICT_REASONS = {
    GateStatus.PASSED: "every gate that applies passed",
    GateStatus.FAILED: "a gate failed",
    GateStatus.UNDECIDED: "at least one gate could not be decided",
}


NO_THRESHOLDS_NOTE = (
    "No thresholds are set, so only completion and coverage were tested. Set some in [check] or by options such as "
    "--max-mae."
)


def describe_verdict(check_result: CheckResult) -> str:
    """The verdict of a check with its reason, in one line."""
    return f"{check_result.audit}: {check_result.verdict} ({VERDICT_REASONS[check_result.verdict]})."


def build_check_document(check_result: CheckResult) -> Document:
    """Build the document of a check: a table with a row for each model, and one with a row for each gate."""
    model_rows: list[list[Cell]] = [
        [Name(row.model), STATUS_LABELS[row.verdict], row.message] for row in check_result.models
    ]
    models = Table(
        "model-results",
        "Models",
        "One row for each model, which its own gates decide. Gates of the whole audit are in the table of gates.",
        [Column("Model", "name"), Column("Status"), Column("Result")],
        model_rows,
    )
    columns = [Column("Gate"), Column("Subject", "name"), Column("Status"), Column("Result")]
    rows: list[list[Cell]] = [
        [Code(gate.name), Name(gate.subject), STATUS_LABELS[gate.verdict], gate.message] for gate in check_result.gates
    ]
    caption = (
        "One row for each gate. Undecided: the audit is not complete, too few answers are usable, or a required figure "
        "or interval is not available. With too few usable answers, a gate fails only if it fails whatever the lost "
        "answers are. "
        "Skipped: the gate does not apply to these scores."
    )
    return Document(
        "Check",
        f"auditor check: {check_result.audit} {STATUS_LABELS[check_result.verdict]}",
        "",
        [
            *([Section("models", "Models", [models])] if model_rows else []),
            Section("gates", "Gates", [Table("gate-results", "Gates", caption, columns, rows)]),
        ],
        opening=[
            Paragraph(describe_verdict(check_result), role="lead"),
            *([] if check_result.has_thresholds else [Paragraph(NO_THRESHOLDS_NOTE)]),
        ],
    )
