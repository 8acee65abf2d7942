"""The document of a check: its result, and the outcome of each gate."""

from __future__ import annotations

from auditor.reports.data.gates.estimates import CheckResult, GateStatus
from auditor.reports.document import Cell, Code, Column, Document, Name, Paragraph, Section, Table
from auditor.reports.number_format import pluralize
from auditor.reports.sections.phrasing import join_first

STATUS_LABELS = {
    GateStatus.PASSED: "✓ passed",
    GateStatus.FAILED: "✗ failed",
    GateStatus.UNDECIDED: "? undecided",
    GateStatus.SKIPPED: "– skipped",
}

NO_THRESHOLDS_NOTE = (
    "No thresholds are set, so only completion and coverage were tested. Set some in [check] or by options such as "
    "--max-mae."
)


def describe_result(check_result: CheckResult) -> str:
    """The result of a check with its reason, in one line."""
    return f"{check_result.audit}: {check_result.verdict} ({_explain_result(check_result)})."


def _explain_result(check_result: CheckResult) -> str:
    """Why a check has its result: the gates that decide it."""
    if check_result.verdict == GateStatus.PASSED:
        return "every gate that applies passed"
    names = {
        status: list(dict.fromkeys(gate.name for gate in check_result.gates if gate.verdict == status))
        for status in (GateStatus.FAILED, GateStatus.UNDECIDED)
    }
    if check_result.verdict == GateStatus.FAILED:
        failed = names[GateStatus.FAILED]
        return f"because of {join_first(failed, 'gate')}" if failed else "a gate failed"
    reason = "not enough data to decide"
    if names[GateStatus.UNDECIDED]:
        reason += f" {join_first(names[GateStatus.UNDECIDED], 'gate')}"
    n_failed = len(names[GateStatus.FAILED])
    return f"{reason}; {pluralize(n_failed, 'gate')} failed so far" if n_failed else reason


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
            Paragraph(describe_result(check_result), role="lead"),
            *([] if check_result.has_thresholds else [Paragraph(NO_THRESHOLDS_NOTE)]),
        ],
    )
