"""Gates: test the figures of an audit against the thresholds of its configuration or of a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from html import escape
from typing import Literal

import pydantic

from auditor.config import AuditConfig, CheckSection
from auditor.config.validation_messages import explain_validation_error
from auditor.errors import UsageError, did_you_mean
from auditor.metrics.estimate import Estimate
from auditor.reports.data.coverage.model_versions import count_versions_by_model
from auditor.reports.data.coverage.schema import CoverageRow
from auditor.reports.data.estimate_conversion import RESCALED_SCORES_REASON
from auditor.reports.data.gates.gate_estimates import (
    SubjectEstimates,
    consistency_estimates,
    mae_estimates,
    pearson_estimates,
    region_gap_estimates,
    worst_topic_estimates,
)
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import describe_estimate, format_percent, pluralize
from auditor.text_safety import escape_invisible

BoundKind = Literal["min", "max"]


class GateStatus(StrEnum):
    """Status of one gate, or of a whole check."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """The figure or the required interval is missing, or coverage is too low."""
    SKIPPED = "skipped"
    """The series has rescaled scores and so no MAE, and other series have one."""


NOT_PASSED = (GateStatus.FAILED, GateStatus.UNDECIDED)


class Gate(ReportModel):
    """One threshold, tested on one model or on the whole audit."""

    name: str
    """The threshold's name, such as `min_pearson`."""
    subject: str
    """The model, with the method if there are several; `audit` for the whole audit."""
    threshold: float
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    verdict: GateStatus
    message: str
    """The figure and the threshold, in one line."""


class CheckResult(ReportModel):
    """Outcome of testing an audit against thresholds."""

    audit: str
    complete: bool
    confident: bool
    verdict: GateStatus
    gates: list[Gate]

    @property
    def passed(self) -> bool:
        """Whether the audit is complete and every gate passed or was skipped."""
        return self.verdict is GateStatus.PASSED

    def __bool__(self) -> bool:
        """Whether the check passed, so that `assert check_result` works."""
        return self.passed

    @property
    def exit_code(self) -> int:
        """Exit code of `auditor check`: 0 passed, 3 a gate failed, 4 undecided, such as for low coverage."""
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


def check_report(report: Report, thresholds: CheckSection) -> CheckResult:
    """Test a report against thresholds.

    If the audit has not finished, or coverage is below `min_coverage`, the check is undecided, whatever the figures
    are. Otherwise it fails if any gate failed, and is undecided if any gate could not be tested. With `confident`, the
    worse end of each interval must meet the threshold. This needs no correction for the number of gates, since a pass
    requires all of them (intersection-union test: Berger, Technometrics 24, 1982).

    Args:
        report: see `build_report`.
        thresholds: limits for the figures; None for those that are not tested.
    """
    gates = [
        _completion_gate(report),
        *_coverage_gates(report, thresholds.min_coverage),
        *_estimate_gates(report, thresholds),
    ]
    gates += _count_gates(report, thresholds)
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


# --- coverage ---------------------------------------------------------------------------------------------------


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
        yield _build_estimate_gate(
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


# --- figures ----------------------------------------------------------------------------------------------------


def _estimate_gates(report: Report, thresholds: CheckSection) -> Iterator[Gate]:
    """Yield a gate per configured threshold and per model (or other subject) that has the estimate.

    A threshold that the audit has no estimate for gives one undecided gate. Series with rescaled scores have no MAE;
    their gates are skipped if another series has one.
    """
    # By threshold: whether it is a lower or upper limit, and the function that lists (subject, estimate).
    estimate_sources: Mapping[str, tuple[BoundKind, Callable[[Report], SubjectEstimates]]] = {
        "min_pearson": ("min", pearson_estimates),
        "max_mae": ("max", mae_estimates),
        "max_region_gap": ("max", region_gap_estimates),
        "max_topic_mae": ("max", lambda report: worst_topic_estimates(report, thresholds.confident)),
        "min_self_consistency": ("min", lambda report: consistency_estimates(report, "cosine")),
        "max_variance": ("max", lambda report: consistency_estimates(report, "variance")),
        "min_peer_agreement": ("min", lambda report: [(row.model, row.agreement) for row in report.peer_agreement]),
        "min_accuracy": (
            "min",
            lambda report: [(row.model, row.accuracy) for row in report.task.models] if report.task else [],
        ),
        "min_kappa": ("min", lambda report: [("panel", report.panel.fleiss_kappa)]),
    }
    for name, (bound_kind, list_estimates) in estimate_sources.items():
        threshold = getattr(thresholds, name)
        if threshold is None:
            continue
        estimates = list_estimates(report)
        missing = Estimate(value=None, n=0, reason="the audit does not measure it")
        is_testable = any(estimate.reason != RESCALED_SCORES_REASON for _, estimate in estimates)
        for subject, estimate in estimates or [("audit", missing)]:
            gate = _build_estimate_gate(name, subject, bound_kind, threshold, estimate, thresholds.confident)
            is_skipped = is_testable and estimate.reason == RESCALED_SCORES_REASON
            yield gate.model_copy(update={"verdict": GateStatus.SKIPPED}) if is_skipped else gate


def _build_estimate_gate(
    name: str, subject: str, bound_kind: BoundKind, threshold: float, estimate: Estimate, confident: bool
) -> Gate:
    """Test an estimate against a threshold; undecided if the tested number is missing.

    Args:
        name: the threshold's name, such as `min_pearson`.
        subject: what the estimate is of, such as a model.
        bound_kind: whether the number must be at least (`min`) or at most (`max`) the threshold.
        confident: whether the worse end of the interval is tested instead of the value.
    """
    tested_value = (estimate.ci_low if bound_kind == "min" else estimate.ci_high) if confident else estimate.value
    if tested_value is None:
        verdict = GateStatus.UNDECIDED
    else:
        is_met = tested_value >= threshold if bound_kind == "min" else tested_value <= threshold
        verdict = GateStatus.PASSED if is_met else GateStatus.FAILED
    return Gate(
        name=name,
        subject=subject,
        threshold=threshold,
        value=estimate.value,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
        n=estimate.n,
        verdict=verdict,
        message=_gate_message(bound_kind, threshold, estimate, confident),
    )


def _gate_message(bound_kind: BoundKind, threshold: float, estimate: Estimate, confident: bool) -> str:
    """One line with the estimate, its interval and n, and the threshold; for a missing estimate, the reason."""
    tested_end = f" for the {'lower' if bound_kind == 'min' else 'upper'} end of the interval" if confident else ""
    if bound_kind == "min":
        bound = f"at least {_format_threshold(threshold)} required{tested_end}"
    else:
        bound = f"at most {_format_threshold(threshold)} allowed{tested_end}"
    if estimate.value is None:
        return f"not available: {estimate.reason}; {bound}"
    return f"{describe_estimate('', estimate, digits=3)}, n = {estimate.n}; {bound}"


def _format_threshold(value: float) -> str:
    """Format a threshold without trailing zeros, with a true minus sign."""
    return f"{value:g}".replace("-", "\u2212")


# --- counts -----------------------------------------------------------------------------------------------------


def _count_gates(report: Report, thresholds: CheckSection) -> Iterator[Gate]:
    """Yield the gates on unsettled conflicts, model versions and cost in USD, each only if its threshold is set."""
    if thresholds.max_open_conflicts is not None:
        states = report.conflicts.states
        n_unsettled = states.get("open", 0) + states.get("disputed", 0)
        description = f"{n_unsettled} of {report.conflicts.total} conflicts are not settled"
        yield _build_count_gate(
            "max_open_conflicts", n_unsettled, thresholds.max_open_conflicts, description, report.conflicts.total
        )
    if thresholds.max_served_models is not None:
        yield from _served_model_gates(report, thresholds.max_served_models)
    if thresholds.max_cost_usd is not None:
        cost = report.cost.total
        # None: some answers were paid for at an unknown price, and no price is known.
        spent = 0.0 if cost.usd is None and not cost.unpriced else cost.usd
        is_over = spent is not None and spent > thresholds.max_cost_usd
        # A lower bound below the limit decides nothing; one above it fails.
        observed = None if cost.lower_bound and not is_over else spent
        cost_text = (
            "unknown"
            if spent is None
            else f"${spent:.4f}{' or more, since some prices are unknown' * cost.lower_bound}"
        )
        yield _build_count_gate("max_cost_usd", observed, thresholds.max_cost_usd, f"cost {cost_text}", cost.answers)


def _served_model_gates(report: Report, max_served_models: int) -> Iterator[Gate]:
    """Yield a gate for each model on the number of versions that its provider reported."""
    answer_counts = {
        name: sum(row.answers for row in report.served if row.name == name)
        for name in count_versions_by_model(report.served)
    }
    for name, n_versions in count_versions_by_model(report.served).items():
        description = (
            f"{pluralize(n_versions, 'model version')} answered, as far as the provider reports"
            if n_versions
            else "the provider does not report the model version"
        )
        yield _build_count_gate(
            "max_served_models", n_versions or None, max_served_models, description, answer_counts[name], subject=name
        )
    if not answer_counts:
        yield _build_count_gate("max_served_models", None, max_served_models, "no answer of a model is recorded", 0)


def _build_count_gate(
    name: str, observed: float | None, maximum: float, description: str, n: int, subject: str = "audit"
) -> Gate:
    """Test a number against a maximum; undecided if the number is not known.

    Args:
        observed: the tested number; None if unknown.
        description: the number in words, for the gate's message.
        n: what the number is counted over, such as all conflicts or answers.
    """
    verdict = (
        GateStatus.UNDECIDED if observed is None else GateStatus.PASSED if observed <= maximum else GateStatus.FAILED
    )
    return Gate(
        name=name,
        subject=subject,
        threshold=maximum,
        value=observed,
        ci_low=None,
        ci_high=None,
        n=n,
        verdict=verdict,
        message=f"{description}; at most {_format_threshold(maximum)} allowed",
    )
