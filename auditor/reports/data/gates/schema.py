"""Schema of a check: its gates, their status and their outcome."""

from __future__ import annotations

from enum import StrEnum
from html import escape

from auditor.reports.data.report_model import ReportModel
from auditor.text_safety import escape_invisible


class GateStatus(StrEnum):
    """Status of one gate, or of a whole check."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """The figure or the required interval is missing, or coverage is too low."""
    SKIPPED = "skipped"
    """The series has rescaled scores and so no MAE, and other series have one."""


COMPLETION_GATE = "complete"
COVERAGE_GATES = (COMPLETION_GATE, "min_coverage")
"""Gates that need no threshold."""
NOT_PASSED = (GateStatus.FAILED, GateStatus.UNDECIDED)


class Gate(ReportModel):
    """One threshold, tested on one model or on the whole audit."""

    name: str
    """The threshold's name, such as `min_pearson`."""
    subject: str
    """The model, with the method if there are several; `audit` for the whole audit."""
    model: str | None = None
    """The model that the gate decides about; null for gates of the whole audit, such as its cost."""
    threshold: float
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    verdict: GateStatus
    message: str
    """The figure and the threshold, in one line."""
    corrected: bool = False
    """Whether the figure is corrected by people's labels on a random sample."""


class ModelCheck(ReportModel):
    """Outcome of the gates of one model."""

    model: str
    verdict: GateStatus
    message: str
    """The gates that failed or are undecided, in one line."""


class CheckResult(ReportModel):
    """Outcome of testing an audit against thresholds."""

    audit: str
    complete: bool
    confident: bool
    verdict: GateStatus
    """Failed if a model, or a gate of the whole audit, failed; else undecided if one is; always undecided if the audit
    is not complete."""
    models: list[ModelCheck]
    gates: list[Gate]

    @property
    def has_thresholds(self) -> bool:
        """Whether anything but completion and coverage was tested."""
        return any(gate.name not in COVERAGE_GATES for gate in self.gates)

    @property
    def passed(self) -> bool:
        """Whether the audit is complete and every gate passed or was skipped."""
        return self.verdict is GateStatus.PASSED

    def __bool__(self) -> bool:
        """Whether the check passed, so that `assert check_result` works."""
        return self.passed

    @property
    def exit_code(self) -> int:
        """Exit code of `auditor check`: 0 if all models passed, 3 if one failed, else 4."""
        return {GateStatus.PASSED: 0, GateStatus.FAILED: 3, GateStatus.UNDECIDED: 4}[self.verdict]

    def _repr_html_(self) -> str:
        """Notebook display: an HTML table with a row per gate, captioned with the audit and the verdict."""
        cells = [[gate.verdict, gate.name, gate.subject, gate.message] for gate in self.gates]
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(escape_invisible(cell))}</td>' for cell in row)}</tr>" for row in cells
        )
        return f"<table><caption>{escape(self.audit)}: {self.verdict}</caption><tbody>{rows}</tbody></table>"

    def __str__(self) -> str:
        """The audit and the verdict, followed by an indented line per gate that failed or is undecided."""
        messages = [f"{gate.name} {gate.subject}: {gate.message}" for gate in self.gates if gate.verdict in NOT_PASSED]
        return f"{self.audit} {self.verdict}" + "".join(f"\n  {line}" for line in messages)
