"""Gates on estimates, such as r or the MAE of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from auditor.config import CheckSection
from auditor.config.installed_probes import load_probe
from auditor.metrics.estimate import Estimate
from auditor.probe_interface import GateFigure
from auditor.reports.data.gates.gate_estimates import (
    SubjectEstimates,
    concordance_estimates,
    consistency_estimates,
    corrected_estimates,
    distribution_estimates,
    mae_estimates,
    pearson_estimates,
    peer_agreement_estimates,
    region_gap_estimates,
    worst_topic_estimates,
)
from auditor.reports.data.gates.schema import Gate, GateStatus
from auditor.reports.data.probe_reports import UnavailableProbe
from auditor.reports.data.report_schema import Report
from auditor.reports.data.rescaled_scores import RESCALED_SCORES_REASON
from auditor.reports.number_format import describe_estimate

BoundKind = Literal["min", "max"]
CORRECTED_GATE = "min_peer_agreement"
"""The threshold of a share of VALID, which labels correct."""


def build_estimate_gates(report: Report, thresholds: CheckSection, *, use_corrections: bool = True) -> Iterator[Gate]:
    """Yield a gate per configured threshold and per model (or other subject) that has the estimate.

    Peer agreement is corrected by people's labels if each model has enough of them, unless `use_corrections` is false.
    A threshold that the audit has no estimate for gives one undecided gate. Series with rescaled scores have no MAE;
    their gates are skipped if another series has one.
    """
    # By threshold: whether it is a lower or upper limit, and the function that lists (subject, estimate).
    estimate_sources: Mapping[str, tuple[BoundKind, Callable[[Report], SubjectEstimates]]] = {
        "min_pearson": ("min", pearson_estimates),
        "min_concordance": ("min", concordance_estimates),
        "max_mae": ("max", mae_estimates),
        "max_region_gap": ("max", region_gap_estimates),
        "max_topic_mae": ("max", lambda report: worst_topic_estimates(report, thresholds.confident)),
        "min_self_consistency": ("min", lambda report: consistency_estimates(report, "cosine")),
        "max_variance": ("max", lambda report: consistency_estimates(report, "variance")),
        "min_peer_agreement": ("min", peer_agreement_estimates),
        "min_accuracy": (
            "min",
            lambda report: [(row.model, row.accuracy) for row in report.task.models] if report.task else [],
        ),
        "min_skill": ("min", lambda report: distribution_estimates(report, "skill")),
        "min_variance_ratio": ("min", lambda report: distribution_estimates(report, "variance_ratio")),
        "max_order_effect": ("max", lambda report: distribution_estimates(report, "order_effect")),
        "min_kappa": ("min", lambda report: [("panel", report.panel.fleiss_kappa)]),
    }
    for name, (bound_kind, list_estimates) in estimate_sources.items():
        threshold = getattr(thresholds, name)
        if threshold is None:
            continue
        corrected = corrected_estimates(report) if name == CORRECTED_GATE and use_corrections else []
        estimates = corrected or list_estimates(report)
        missing = Estimate(value=None, n=0, reason="the audit does not measure it")
        is_testable = any(estimate.reason != RESCALED_SCORES_REASON for _, estimate in estimates)
        for subject, estimate in estimates or [("audit", missing)]:
            gate = build_estimate_gate(name, subject, bound_kind, threshold, estimate, thresholds.confident)
            is_skipped = is_testable and estimate.reason == RESCALED_SCORES_REASON
            if corrected:
                message = f"{gate.message} (corrected by people’s labels)"
                gate = gate.model_copy(update={"corrected": True, "message": message})
            yield gate.model_copy(update={"verdict": GateStatus.SKIPPED}) if is_skipped else gate


def build_probe_gates(report: Report, thresholds: CheckSection) -> Iterator[Gate]:
    """Yield a gate for each threshold of a probe of another package, and each subject that has the figure.

    Raises:
        ProbeError: the hook of the probe failed.
    """
    for probe, limits in thresholds.probes.items():
        figures = report.probes.get(probe)
        is_available = figures is not None and not isinstance(figures, UnavailableProbe)
        listed = load_probe(probe).call_each("gate_figures", figures, item=GateFigure) if is_available else []
        for name, threshold in limits.items():
            bound_kind: BoundKind = "min" if name.startswith("min_") else "max"
            missing = Estimate(value=None, n=0, reason="the audit does not measure it")
            estimates = [(figure.subject, figure.estimate) for figure in listed if figure.name == name]
            for subject, estimate in estimates or [("audit", missing)]:
                yield build_estimate_gate(
                    f"{probe}.{name}", subject, bound_kind, threshold, estimate, thresholds.confident
                )


def build_estimate_gate(
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
        bound = f"at least {format_threshold(threshold)} required{tested_end}"
    else:
        bound = f"at most {format_threshold(threshold)} allowed{tested_end}"
    if estimate.value is None:
        return f"not available: {estimate.reason}; {bound}"
    return f"{describe_estimate('', estimate, digits=3)}, n = {estimate.n}; {bound}"


def format_threshold(value: float) -> str:
    """Format a threshold without trailing zeros, with a true minus sign."""
    return f"{value:g}".replace("-", "\u2212")
