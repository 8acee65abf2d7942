"""Gates: test the figures of an audit against the thresholds of its configuration or of a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pydantic

from auditor.config import AuditConfig, CheckSection
from auditor.config.validation_messages import explain_validation_error
from auditor.errors import UsageError, did_you_mean
from auditor.metrics.estimate import Estimate
from auditor.reports.data.coverage.schema import CoverageRow
from auditor.reports.data.gates.count_gates import build_count_gates
from auditor.reports.data.gates.estimate_gates import build_estimate_gate, build_estimate_gates, build_probe_gates
from auditor.reports.data.gates.schema import NOT_PASSED, CheckResult, Gate, GateStatus
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_percent


def check_report(report: Report, thresholds: CheckSection, *, use_corrections: bool = True) -> CheckResult:
    """Test a report against thresholds.

    If the audit has not finished, or coverage is below `min_coverage`, the check is undecided, whatever the figures
    are. Otherwise it fails if any gate failed, and is undecided if any gate could not be tested. With `confident`, the
    worse end of each interval must meet the threshold. This needs no correction for the number of gates, since a pass
    requires all of them (intersection-union test: Berger, Technometrics 24, 1982).

    Args:
        report: see `build_report`.
        thresholds: limits for the figures; None for those that are not tested.
        use_corrections: whether peer agreement is corrected by people's labels, if each model has enough of them.
    """
    gates = [
        _completion_gate(report),
        *_coverage_gates(report, thresholds.min_coverage),
        *build_estimate_gates(report, thresholds, use_corrections=use_corrections),
    ]
    gates += build_probe_gates(report, thresholds)
    gates += build_count_gates(report, thresholds)
    coverage_gates = [gate for gate in gates if gate.name in ("complete", "min_coverage")]
    if any(gate.verdict is not GateStatus.PASSED for gate in coverage_gates):
        verdict = GateStatus.UNDECIDED
    else:
        statuses = {gate.verdict for gate in gates}
        verdict = next((status for status in NOT_PASSED if status in statuses), GateStatus.PASSED)
    return CheckResult(
        audit=report.audit.name,
        complete=report.audit.complete,
        confident=thresholds.confident,
        verdict=verdict,
        gates=gates,
    )


def resolve_thresholds(config: AuditConfig | None, overrides: Mapping[str, object]) -> CheckSection:
    """Apply overrides to a config's thresholds, or to the defaults if there is no config, as for imported scores.

    Args:
        config: None for imported scores.
        overrides: new thresholds by name.

    Raises:
        UsageError: a threshold is unknown, or its value is not allowed.
    """
    base = config.check if config else CheckSection()
    if unknown := [name for name in overrides if name not in CheckSection.model_fields]:
        hint = did_you_mean(unknown[0], CheckSection.model_fields, f"Known: {', '.join(CheckSection.model_fields)}.")
        raise UsageError(f"there is no threshold '{unknown[0]}'.", hint)
    try:
        return CheckSection.model_validate(base.model_dump() | dict(overrides))
    except pydantic.ValidationError as error:
        raise UsageError(f"thresholds: {explain_validation_error(error, overrides, CheckSection)}") from None


def _completion_gate(report: Report) -> Gate:
    """Gate on whether the audit has finished; undecided, not failed, if it has not."""
    is_complete = report.audit.complete
    progress = "is complete" if is_complete else f"is not complete (stage: {report.audit.stage})"
    return Gate(
        name="complete",
        subject="audit",
        threshold=1,
        value=float(is_complete),
        ci_low=None,
        ci_high=None,
        n=1,
        verdict=GateStatus.PASSED if is_complete else GateStatus.UNDECIDED,
        message=f"the audit {progress}",
    )


def _coverage_gates(report: Report, min_coverage: float) -> Iterator[Gate]:
    """Gates on the coverage of each model's answers, and of all verdicts; undecided without any planned answers."""
    # The coverage of reviews is tested in total, not per model.
    rows = [row for row in report.coverage.models if row.stage != "review"]
    review_rows = [row for row in report.coverage.total if row.stage == "review"]
    for row in [*rows, *review_rows]:
        yield _coverage_gate(row, min_coverage)
    if not rows:
        yield build_estimate_gate(
            "min_coverage",
            "audit",
            "min",
            min_coverage,
            Estimate(value=None, n=0, reason="no answer of a model is recorded"),
            False,
        )


def _coverage_gate(row: CoverageRow, min_coverage: float) -> Gate:
    """Gate on the usable share of one coverage row; undecided, not failed, if it is too low."""
    usable_share, usable_percent = row.ok / row.planned if row.planned else 0.0, format_percent(row.ok, row.planned)
    is_enough = usable_share >= min_coverage
    return Gate(
        name="min_coverage",
        subject=row.name or "audit",
        threshold=min_coverage,
        value=usable_share,
        ci_low=None,
        ci_high=None,
        n=row.planned,
        verdict=GateStatus.PASSED if is_enough else GateStatus.UNDECIDED,
        message=(
            f"{row.ok} of {row.planned} {row.counted_label} are usable ({usable_percent}); "
            f"at least {min_coverage:.0%} required"
        ),
    )
