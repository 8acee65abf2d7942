"""Gates: what a configuration or a command asks of an audit, and whether its figures meet it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from html import escape
from typing import Literal

import pydantic

from auditor.config import AuditConfig, CheckSection
from auditor.config.validation_messages import explain_validation_error
from auditor.errors import UsageError, did_you_mean
from auditor.reports.coverage.model_versions import count_versions_by_model
from auditor.reports.coverage.schema import CoverageRow
from auditor.reports.estimate_conversion import RESCALED_SCORES_REASON
from auditor.reports.gates.gate_estimates import (
    SubjectEstimates,
    column_label,
    mae_estimates,
    pearson_estimates,
    region_gap_estimates,
    worst_topic_estimates,
)
from auditor.reports.measurement_schema import Estimate, ReportModel
from auditor.reports.pages.number_format import format_interval, format_number, format_percent, pluralize
from auditor.reports.report_schema import Report
from auditor.text_safety import escape_invisible

BoundKind = Literal["min", "max"]


class GateStatus(StrEnum):
    """What came of a gate, or of all."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """There is no figure, no interval where one is asked for, or too little coverage."""
    SKIPPED = "skipped"
    """Scores without a distance from people, beside others that have one."""


NOT_PASSED = (GateStatus.FAILED, GateStatus.UNDECIDED)


class Gate(ReportModel):
    """One threshold, tested on one model or on the audit."""

    name: str
    """The threshold's name, such as `min_pearson`."""
    subject: str
    """The model and, where there are several, the method; the audit for what concerns all."""
    threshold: float
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    verdict: GateStatus
    message: str
    """What was found, in one line."""


class CheckResult(ReportModel):
    """Whether an audit meets what is asked of it."""

    audit: str
    complete: bool
    confident: bool
    verdict: GateStatus
    gates: list[Gate]

    @property
    def passed(self) -> bool:
        """Whether every gate was passed, by an audit that is whole."""
        return self.verdict is GateStatus.PASSED

    def __bool__(self) -> bool:
        return self.passed

    @property
    def exit_code(self) -> int:
        """0 passed, 3 a gate failed, 4 coverage too low for a verdict."""
        return {GateStatus.PASSED: 0, GateStatus.FAILED: 3, GateStatus.UNDECIDED: 4}[self.verdict]

    def _repr_html_(self) -> str:
        cells = [[g.verdict, g.name, g.subject, g.message] for g in self.gates]
        rows = "".join(f"<tr>{''.join(f'<td>{escape(escape_invisible(c))}</td>' for c in row)}</tr>" for row in cells)
        return f"<table><caption>{escape(self.audit)}: {self.verdict}</caption><tbody>{rows}</tbody></table>"

    def __str__(self) -> str:
        bad = [f"{g.name} {g.subject}: {g.message}" for g in self.gates if g.verdict in NOT_PASSED]
        return f"{self.audit} {self.verdict}" + "".join(f"\n  {line}" for line in bad)


def check_report(report: Report, thresholds: CheckSection) -> CheckResult:
    """Test a report against thresholds.

    Coverage goes first: where the audit has not run to its end, or less is usable than `min_coverage`, there is no
    verdict, whatever the figures say. Then any gate that failed decides, then any that could not be tested. With
    `confident` the worse end of each interval must meet the threshold; that all gates do so at once needs no
    correction for their number, since a pass takes every one of them (intersection-union test: Berger, Technometrics
    24, 1982).

    Args:
        report: see `build_report`.
        wanted: the thresholds.
    """
    gates = [
        _completion_gate(report),
        *_coverage_gates(report, thresholds.min_coverage),
        *_estimate_gates(report, thresholds),
    ]
    gates += _count_gates(report, thresholds)
    first = [g for g in gates if g.name in ("complete", "min_coverage")]
    if any(g.verdict is not GateStatus.PASSED for g in first):
        verdict = GateStatus.UNDECIDED
    else:
        found = {g.verdict for g in gates}
        verdict = next((v for v in NOT_PASSED if v in found), GateStatus.PASSED)
    return CheckResult(
        audit=report.audit.name,
        complete=report.audit.complete,
        confident=thresholds.confident,
        verdict=verdict,
        gates=gates,
    )


def resolve_thresholds(config: AuditConfig | None, overrides: Mapping[str, object]) -> CheckSection:
    """A config's thresholds, with changes; the defaults where there is no config, as for imported scores.

    Raises:
        UsageError: there is no such threshold, or it cannot have that value.
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
    done = report.audit.complete
    found = "ran to its end" if done else f"has not run to its end (stage: {report.audit.stage})"
    return Gate(
        name="complete",
        subject="audit",
        threshold=1,
        value=float(done),
        ci_low=None,
        ci_high=None,
        n=1,
        verdict=GateStatus.PASSED if done else GateStatus.UNDECIDED,
        message=f"the audit {found}",
    )


def _coverage_gates(report: Report, min_coverage: float) -> Iterator[Gate]:
    """All that every model said, and all verdicts; an audit without any has no coverage."""
    rows = [row for row in report.coverage.models if row.stage != "review"]
    reviews = [row for row in report.coverage.total if row.stage == "review"]
    for row in [*rows, *reviews]:
        yield _coverage_gate(row, min_coverage)
    if not rows:
        yield _build_estimate_gate(
            "min_coverage",
            "audit",
            "min",
            min_coverage,
            Estimate(value=None, n=0, reason="nothing that a model said is there"),
            False,
        )


def _coverage_gate(row: CoverageRow, min_coverage: float) -> Gate:
    found, usable = row.ok / row.planned if row.planned else 0.0, format_percent(row.ok, row.planned)
    enough = found >= min_coverage
    return Gate(
        name="min_coverage",
        subject=row.name or "audit",
        threshold=min_coverage,
        value=found,
        ci_low=None,
        ci_high=None,
        n=row.planned,
        verdict=GateStatus.PASSED if enough else GateStatus.UNDECIDED,
        message=f"{row.ok} of {row.planned} {row.counted_label} usable ({usable}), at least {min_coverage:.0%} asked",
    )


# --- figures ----------------------------------------------------------------------------------------------------


def _estimate_gates(report: Report, thresholds: CheckSection) -> Iterator[Gate]:
    sources: Mapping[str, tuple[BoundKind, Callable[[Report], SubjectEstimates]]] = {
        "min_pearson": ("min", pearson_estimates),
        "max_mae": ("max", mae_estimates),
        "max_region_gap": ("max", region_gap_estimates),
        "max_topic_mae": ("max", lambda r: worst_topic_estimates(r, thresholds.confident)),
        "min_self_consistency": ("min", lambda r: [(column_label(r, c), c.cosine) for c in r.self_consistency]),
        "max_variance": ("max", lambda r: [(column_label(r, c), c.variance) for c in r.self_consistency]),
        "min_peer_agreement": ("min", lambda r: [(p.model, p.agreement) for p in r.peer_agreement]),
        "min_accuracy": ("min", lambda r: [(m.model, m.accuracy) for m in r.task.models] if r.task else []),
        "min_kappa": ("min", lambda r: [("panel", r.panel.fleiss_kappa)]),
    }
    for name, (side, rows_of) in sources.items():
        threshold = getattr(thresholds, name)
        if threshold is None:
            continue
        rows = rows_of(report)
        nothing = Estimate(value=None, n=0, reason="the audit has no such figure")
        tested = any(estimate.reason != RESCALED_SCORES_REASON for _, estimate in rows)
        for subject, estimate in rows or [("audit", nothing)]:
            gate = _build_estimate_gate(name, subject, side, threshold, estimate, thresholds.confident)
            skipped = tested and estimate.reason == RESCALED_SCORES_REASON
            yield gate.model_copy(update={"verdict": GateStatus.SKIPPED}) if skipped else gate


def _build_estimate_gate(
    name: str, subject: str, bound_kind: BoundKind, threshold: float, estimate: Estimate, confident: bool
) -> Gate:
    tested = (estimate.ci_low if bound_kind == "min" else estimate.ci_high) if confident else estimate.value
    if tested is None:
        verdict = GateStatus.UNDECIDED
    else:
        met = tested >= threshold if bound_kind == "min" else tested <= threshold
        verdict = GateStatus.PASSED if met else GateStatus.FAILED
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
    bound = f"{'at least' if bound_kind == 'min' else 'at most'} {_format_threshold(threshold)} asked"
    if estimate.value is None:
        return f"not measurable: {estimate.reason}; {bound}"
    between = (
        format_interval(estimate.ci_low, estimate.ci_high, 3)
        if estimate.ci_low is not None
        else f"no interval: {estimate.reason}"
    )
    where = f"{'lower' if bound_kind == 'min' else 'upper'} end of the interval tested, " if confident else ""
    return f"{format_number(estimate.value, 3)} ({between}, n {estimate.n}); {where}{bound}"


def _format_threshold(value: float) -> str:
    return f"{value:g}".replace("-", "\u2212")


# --- counts -----------------------------------------------------------------------------------------------------


def _count_gates(report: Report, thresholds: CheckSection) -> Iterator[Gate]:
    if thresholds.max_open_conflicts is not None:
        states = report.conflicts.states
        unsettled = states.get("open", 0) + states.get("disputed", 0)
        found = f"{unsettled} of {report.conflicts.total} conflicts unsettled"
        yield _build_count_gate(
            "max_open_conflicts", unsettled, thresholds.max_open_conflicts, found, report.conflicts.total
        )
    if thresholds.max_served_models is not None:
        yield from _served_model_gates(report, thresholds.max_served_models)
    if thresholds.max_cost_usd is not None:
        cost = report.cost.total
        spent = 0.0 if cost.usd is None and not cost.unpriced else cost.usd
        over = spent is not None and spent > thresholds.max_cost_usd
        known = None if cost.lower_bound and not over else spent
        told = "unknown" if spent is None else f"${spent:.4f}{' or more: some prices are unknown' * cost.lower_bound}"
        yield _build_count_gate("max_cost_usd", known, thresholds.max_cost_usd, f"cost {told}", cost.answers)


def _served_model_gates(report: Report, max_served_models: int) -> Iterator[Gate]:
    answers = {
        name: sum(r.answers for r in report.served if r.name == name) for name in count_versions_by_model(report.served)
    }
    for name, n in count_versions_by_model(report.served).items():
        found = f"{pluralize(n, 'thing')} served it, as far as the provider says" if n else "the provider does not say"
        yield _build_count_gate("max_served_models", n or None, max_served_models, found, answers[name], subject=name)
    if not answers:
        yield _build_count_gate("max_served_models", None, max_served_models, "nobody was asked here", 0)


def _build_count_gate(
    name: str, observed: float | None, maximum: float, description: str, n: int, subject: str = "audit"
) -> Gate:
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
        message=f"{description}; at most {_format_threshold(maximum)} asked",
    )
