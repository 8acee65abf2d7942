"""Gates on counts: open conflicts, versions of a model, cost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from auditor.config import CheckSection
from auditor.reports.data.coverage.model_versions import count_versions_by_model
from auditor.reports.data.gates.estimate_gates import format_threshold, withhold_pass
from auditor.reports.data.gates.schema import Gate, GateStatus
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import pluralize


def build_count_gates(
    report: Report, thresholds: CheckSection, models: Sequence[str], low_coverage_models: Collection[str] = ()
) -> Iterator[Gate]:
    """Yield the gates on unsettled conflicts, model versions and cost in USD, each only if its threshold is set.

    Args:
        models: all models of the audit; versions of others, such as judges, are gates of the whole audit.
        low_coverage_models: models with too few usable answers. What lost answers could add to a number of conflicts or
            versions is not known, so these gates can fail, but are undecided instead of passed.
    """
    if thresholds.max_open_conflicts is not None:
        states = report.conflicts.states
        n_unsettled = states.get("open", 0) + states.get("disputed", 0)
        description = f"{n_unsettled} of {report.conflicts.total} conflicts are not settled"
        gate = _build_count_gate(
            "max_open_conflicts", n_unsettled, thresholds.max_open_conflicts, description, report.conflicts.total
        )
        yield withhold_pass(gate) if low_coverage_models and gate.verdict is GateStatus.PASSED else gate
    if thresholds.max_served_models is not None:
        for gate in _served_model_gates(report, thresholds.max_served_models, models):
            is_withheld = gate.model in low_coverage_models and gate.verdict is GateStatus.PASSED
            yield withhold_pass(gate) if is_withheld else gate
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


def _served_model_gates(report: Report, max_served_models: int, models: Sequence[str]) -> Iterator[Gate]:
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
        gate = _build_count_gate(
            "max_served_models", n_versions or None, max_served_models, description, answer_counts[name], subject=name
        )
        yield gate.model_copy(update={"model": name if name in models else None})
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
        message=f"{description}; at most {format_threshold(maximum)} allowed",
    )
