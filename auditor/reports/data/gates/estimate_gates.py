"""Gates on estimates, such as r or the MAE of a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

from pydantic import BaseModel

from auditor.config import CheckSection
from auditor.config.installed_probes import InstalledProbe, list_built_in_probes, load_probe
from auditor.errors import ProbeError
from auditor.metrics.estimate import Estimate
from auditor.probe_interface import GateFigure
from auditor.reports.data.gates.gate_estimates import (
    GatedFigure,
    accuracy_estimates,
    concordance_estimates,
    consistency_estimates,
    corrected_estimates,
    count_lost,
    kappa_estimates,
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
NOT_MEASURED = GatedFigure("audit", Estimate(value=None, n=0, reason="the audit does not measure it"))
"""The figure of a threshold that the audit has no figure for."""
CORRECTED_GATE = "min_peer_agreement"
"""The threshold of a share of VALID, which labels correct."""


def build_estimate_gates(
    report: Report,
    thresholds: CheckSection,
    *,
    use_corrections: bool = True,
    low_coverage_models: Collection[str] = (),
) -> Iterator[Gate]:
    """Yield a gate per configured threshold and per model (or other subject) that has the estimate.

    Peer agreement is corrected by people's labels if each model has enough of them, unless `use_corrections` is false.
    A threshold that the audit has no estimate for gives one undecided gate. Series with rescaled scores have no MAE;
    their gates are skipped if another series has one.

    Args:
        low_coverage_models: models with too few usable answers; their gates, and those of the whole audit, can only
            fail under the bounds for lost answers, and are undecided otherwise.
    """
    # By threshold: whether it is a lower or upper limit, and the function that lists the tested figures.
    figure_sources: Mapping[str, tuple[BoundKind, Callable[[Report], list[GatedFigure]]]] = {
        "min_pearson": ("min", pearson_estimates),
        "min_concordance": ("min", concordance_estimates),
        "max_mae": ("max", mae_estimates),
        "max_region_gap": ("max", region_gap_estimates),
        "max_topic_mae": ("max", lambda report: worst_topic_estimates(report, thresholds.confident)),
        "min_self_consistency": ("min", lambda report: consistency_estimates(report, "cosine")),
        "max_variance": ("max", lambda report: consistency_estimates(report, "variance")),
        "min_peer_agreement": ("min", peer_agreement_estimates),
        "min_accuracy": ("min", accuracy_estimates),
        **{
            name: (_bound_kind(name), partial(probe.list_gate_figures, threshold=name))
            for probe in list_built_in_probes()
            for name in probe.thresholds.model_fields
        },
        "min_kappa": ("min", kappa_estimates),
    }
    for name, (bound_kind, list_figures) in figure_sources.items():
        threshold = thresholds.find(name)
        if threshold is None:
            continue
        corrected = corrected_estimates(report) if name == CORRECTED_GATE and use_corrections else []
        figures = corrected or list_figures(report)
        is_testable = any(figure.estimate.reason != RESCALED_SCORES_REASON for figure in figures)
        for figure in figures or [NOT_MEASURED]:
            gate = build_estimate_gate(name, bound_kind, threshold, figure, thresholds.confident)
            if corrected:
                message = f"{gate.message} (corrected by people’s labels)"
                gate = gate.model_copy(update={"corrected": True, "message": message})
            if is_testable and figure.estimate.reason == RESCALED_SCORES_REASON:
                yield gate.model_copy(update={"verdict": GateStatus.SKIPPED})
            else:
                yield _decide_with_losses(gate, bound_kind, figure, low_coverage_models)


def build_probe_gates(
    report: Report, thresholds: CheckSection, models: Sequence[str], low_coverage_models: Collection[str] = ()
) -> Iterator[Gate]:
    """Yield a gate for each threshold of a probe of another package, and each subject that has the figure.

    Args:
        models: all models of the audit; a figure whose subject is none of them belongs to the whole audit.
        low_coverage_models: as in `build_estimate_gates`.

    Raises:
        ProbeError: the hook of the probe failed.
    """
    for probe, limits in thresholds.probes.items():
        measured = report.probes.get(probe)
        is_missing = measured is None or isinstance(measured, UnavailableProbe)
        listed = [] if is_missing else _list_gate_figures(load_probe(probe), measured)
        not_measured = NOT_MEASURED
        if isinstance(measured, UnavailableProbe):
            reason = f"{measured.unavailable[0].lower()}{measured.unavailable[1:].rstrip('.')}"
            not_measured = GatedFigure("audit", Estimate(value=None, n=0, reason=reason))
        for name, threshold in limits.items():
            bound_kind = _bound_kind(name)
            figures = []
            for row in (row for row in listed if row.name == name):
                model = row.subject if row.subject in models else None
                figures.append(GatedFigure(row.subject, row.estimate, model, count_lost(report, probe, model)))
            for figure in figures or [not_measured]:
                gate = build_estimate_gate(f"{probe}.{name}", bound_kind, threshold, figure, thresholds.confident)
                yield _decide_with_losses(gate, bound_kind, figure, low_coverage_models)


def _list_gate_figures(probe: InstalledProbe, figures: BaseModel | None) -> list[GateFigure]:
    """The figures that a probe compares with thresholds.

    Raises:
        ProbeError: the hook failed, or returned a figure of a threshold that the probe does not declare.
    """
    gate_figures = probe.call_each("gate_figures", figures, item=GateFigure)
    for figure in gate_figures:
        probe.require_fields("gate_figures", figure, {"name": str, "subject": str, "estimate": Estimate})
        if figure.name not in probe.probe.gates:
            raise ProbeError(
                f"the hook 'gate_figures' of the probe '{probe.name}' returned the figure '{figure.name}', which is "
                "not in the probe's list of gates.",
                probe.advice,
            )
    return gate_figures


def _bound_kind(name: str) -> BoundKind:
    """Whether a threshold of a probe is a lower or an upper limit, by its name."""
    return "min" if name.startswith("min_") else "max"


def _decide_with_losses(
    gate: Gate, bound_kind: BoundKind, figure: GatedFigure, low_coverage_models: Collection[str]
) -> Gate:
    """The gate as it is if enough answers are usable; else failed only if it fails whatever the lost answers are."""
    if not low_coverage_models or (figure.model is not None and figure.model not in low_coverage_models):
        return gate
    best = figure.bound_high if bound_kind == "min" else figure.bound_low
    if figure.lost == 0:  # all answers behind this figure are usable: those of another probe are lost
        return gate if gate.verdict is GateStatus.FAILED else withhold_pass(gate)
    if best is None or (best >= gate.threshold if bound_kind == "min" else best <= gate.threshold):
        return withhold_pass(gate)
    note = f"at {'most' if bound_kind == 'min' else 'least'} {best:.3f}, whatever the lost answers are"
    return gate.model_copy(update={"verdict": GateStatus.FAILED, "message": f"{gate.message}; {note}"})


def withhold_pass(gate: Gate) -> Gate:
    """The gate, undecided since coverage is too low."""
    message = f"{gate.message}; undecided, since coverage is too low"
    return gate.model_copy(update={"verdict": GateStatus.UNDECIDED, "message": message})


def build_estimate_gate(
    name: str, bound_kind: BoundKind, threshold: float, figure: GatedFigure, confident: bool
) -> Gate:
    """Test an estimate against a threshold; undecided if the tested number is missing.

    Args:
        name: the threshold's name, such as `min_pearson`.
        bound_kind: whether the number must be at least (`min`) or at most (`max`) the threshold.
        confident: whether the worse end of the interval is tested instead of the value.
    """
    estimate = figure.estimate
    tested_value = (estimate.ci_low if bound_kind == "min" else estimate.ci_high) if confident else estimate.value
    if tested_value is None:
        verdict = GateStatus.UNDECIDED
    else:
        is_met = tested_value >= threshold if bound_kind == "min" else tested_value <= threshold
        verdict = GateStatus.PASSED if is_met else GateStatus.FAILED
    return Gate(
        name=name,
        subject=figure.subject,
        model=figure.model,
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
