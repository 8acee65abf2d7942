"""Gates on estimates: their schema, the figures that they test with intervals and bounds, and their outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from html import escape
from math import inf
from typing import Literal

from pydantic import BaseModel

from auditor.config import CheckSection
from auditor.config.installed_probes import InstalledProbe, list_built_in_probes, load_probe
from auditor.domain import Method, Purpose
from auditor.errors import ProbeError, pluralize
from auditor.metrics.intervals.estimate import BoundedEstimate, Estimate
from auditor.probe_interface import GateFigure
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.coverage.lost_samples import UNKNOWN_SIGN_REASON, has_unknown_sign
from auditor.reports.data.measurement_schema import GroupErrorRow, RegionGapRow
from auditor.reports.data.probe_reports import UnavailableProbe
from auditor.reports.data.report_model import ROUNDING_ERROR, ReportModel
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import RESCALED_SCORES_REASON, has_rescaled_scores
from auditor.reports.number_format import describe_estimate
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
EXIT_CODES = {GateStatus.PASSED: 0, GateStatus.FAILED: 3, GateStatus.UNDECIDED: 4}


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
        return EXIT_CODES[self.verdict]

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


SETTINGS_REASON = "the configured sampling settings were not accepted, so it cannot be compared"


@dataclass(frozen=True, slots=True)
class GatedFigure:
    """A figure that a threshold is for.

    Attributes:
        subject: what it is of, such as a model with its method.
        model: the model that it belongs to; None if it belongs to the whole audit.
        lost: planned answers behind it that are not usable.
        bound_low, bound_high: the figure over all planned answers is between them, whatever the lost ones would have
            been; None where no bound is known.
        note: by which rule it was picked from several figures.
    """

    subject: str
    estimate: Estimate
    model: str | None = None
    lost: int = 0
    bound_low: float | None = None
    bound_high: float | None = None
    note: str = ""


def pearson_estimates(report: Report) -> list[GatedFigure]:
    """r of each series of scores, with its interval over countries and topics; no interval where these are too few."""
    return [
        _bound(column_label(report, row), row.pearson_r, row, row.worst_case.pearson_r if row.worst_case else None)
        for row in report.alignment
    ]


def concordance_estimates(report: Report) -> list[GatedFigure]:
    """Lin's concordance of each series of scores, with its interval over countries and topics.

    It is at most r where r is positive, and at most 0 elsewhere; so the upper bound of r bounds it too.
    """
    figures = pearson_estimates(report)
    return [
        replace(
            figure,
            estimate=row.concordance,
            bound_low=None,
            bound_high=None if figure.bound_high is None else max(0.0, figure.bound_high),
        )
        for figure, row in zip(figures, report.alignment, strict=True)
    ]


def mae_estimates(report: Report) -> list[GatedFigure]:
    """MAE of each series of scores, with the interval over countries and topics."""
    return [
        _bound(column_label(report, row), row.mae, row, row.worst_case.mae if row.worst_case else None)
        for row in report.alignment
    ]


def _bound(subject: str, estimate: Estimate, row: AlignmentRow, bounds: BoundedEstimate | None) -> GatedFigure:
    """The figure of a series of scores with its worst-case bounds, if it has any."""
    low, high = (bounds.bound_low, bounds.bound_high) if bounds else (None, None)
    return GatedFigure(subject, estimate, row.model, row.lost_samples.lost, low, high)


def count_lost(report: Report, stage: str, model: str | None = None, method: str | None = None) -> int:
    """Count planned answers of a stage that are not usable: those of one model and method, or all."""
    return sum(
        row.planned - row.ok
        for row in report.coverage.models
        if row.stage == stage and model in (None, row.name) and method in (None, row.method)
    )


def refusal_estimates(report: Report) -> list[GatedFigure]:
    """Share of refusals among each model's answers, bounded by all that were not asked for or got lost."""
    unanswered, planned = Counter[str](), Counter[str]()
    for coverage in report.coverage.models:
        if coverage.stage == "direct" and coverage.name is not None:
            unanswered[coverage.name] += coverage.never_asked + coverage.lost_requests
            planned[coverage.name] += coverage.planned
    figures = []
    for row in report.refusals.models if report.refusals else []:
        n_refused = round((row.share.value or 0.0) * row.share.n)
        low = n_refused / planned[row.name] if planned[row.name] else None
        figures.append(GatedFigure(row.name, row.share, row.name, unanswered[row.name], low))
    return figures


def peer_agreement_estimates(report: Report) -> list[GatedFigure]:
    """Peer agreement of each model, with its interval over countries and topics.

    The upper bound takes all lost verdicts for VALID, and those of every judge on lost answers.
    """
    n_judges = len({row.name for row in report.coverage.judges})
    figures = []
    for row in report.peer_agreement:
        lost = count_lost(report, "review", row.model) + n_judges * count_lost(
            report, "direct", row.model, Method.DIRECT
        )
        total = row.given + lost
        bounds = (row.valid / total, (row.valid + lost) / total) if total else (None, None)
        figures.append(GatedFigure(row.model, row.agreement, row.model, lost, *bounds))
    return figures


def kappa_estimates(report: Report) -> list[GatedFigure]:
    """Fleiss' kappa of the judges; no bound is known for lost verdicts."""
    lost = count_lost(report, "review") + count_lost(report, "direct", method=Method.DIRECT)
    return [GatedFigure("panel", report.panel.fleiss_kappa, lost=lost)]


def accuracy_estimates(report: Report) -> list[GatedFigure]:
    """Accuracy of each model on the items of a task, bounded by all lost samples being wrong or right."""
    return [
        GatedFigure(row.model, row.accuracy, row.model, row.planned - row.usable, row.bound_low, row.bound_high)
        for row in (report.task.models if report.task else [])
    ]


def corrected_estimates(report: Report) -> list[GatedFigure]:
    """The share of VALID of each model corrected by people's labels; empty unless each model has enough of them.

    With the interval over countries and topics, or, where these are too few, the one for these traces.
    """
    shares = report.judge_quality.corrected_shares if report.judge_quality else {}
    lost = {figure.model: figure.lost for figure in peer_agreement_estimates(report)}
    return [
        GatedFigure(
            model,
            row.corrected if row.corrected_elsewhere.ci_low is None else row.corrected_elsewhere,
            model,
            lost.get(model, 0),
        )
        for model, row in shares.items()
    ]


def region_gap_estimates(report: Report) -> list[GatedFigure]:
    """Absolute gap in MAE between regions of each series of scores, with the interval of the absolute value.

    Without an interval where lost samples leave the sign of the gap open: a confident gate is then undecided.
    """
    figures = [
        GatedFigure(column_label(report, row), Estimate(None, 0, reason=RESCALED_SCORES_REASON), row.model)
        for row in report.alignment
        if has_rescaled_scores(row.method)
    ]
    for gap in report.regions.gaps:
        if has_rescaled_scores(gap.method):
            continue
        is_unsigned = gap.worst_case is not None and has_unknown_sign(gap.worst_case.mae)
        gap_size = take_absolute(gap.mae_gap)
        if is_unsigned:
            reason = gap_size.reason or UNKNOWN_SIGN_REASON
            gap_size = Estimate(gap_size.value, gap_size.n, reason=reason)
        subject = f"{column_label(report, gap)}: {gap.first} and {gap.second}"
        lost = gap.first_lost_samples.lost + gap.second_lost_samples.lost
        figures.append(GatedFigure(subject, gap_size, gap.model, lost, _bound_gap_size_below(gap)))
    return figures


def _bound_gap_size_below(gap: RegionGapRow) -> float | None:
    """The smallest absolute gap in MAE, whatever the lost samples would have scored; None if no bound is known."""
    bounds = gap.worst_case.mae if gap.worst_case else None
    if bounds is None or bounds.bound_low is None or bounds.bound_high is None:
        return None
    return max(0.0, bounds.bound_low, -bounds.bound_high)


def take_absolute(signed: Estimate) -> Estimate:
    """The absolute value of a signed figure, with the interval of the absolute value."""
    if signed.value is None or signed.ci_low is None or signed.ci_high is None:
        return Estimate(None if signed.value is None else abs(signed.value), signed.n, reason=signed.reason)
    magnitudes = sorted(abs(end) for end in (signed.ci_low, signed.ci_high))
    # The absolute value of an interval that includes 0 starts at 0.
    low = 0.0 if signed.ci_low <= 0 <= signed.ci_high else magnitudes[0]
    return Estimate(abs(signed.value), signed.n, low, magnitudes[1], signed.reason, signed.resampled)


def worst_topic_estimates(report: Report, confident: bool) -> list[GatedFigure]:
    """MAE of the topic that decides for each series of scores, with the interval that the report has for it.

    It is the topic with the largest MAE or, if `confident`, the largest upper end of an interval, which exceeds the
    largest true error of all topics in at least 97.5% of audits; no correction for the choice is needed for that. A
    topic without the required interval counts as the worst. The lower bound is the largest of those of all topics.
    """
    rows_by_series: dict[tuple[str, str], list[GroupErrorRow]] = {}
    for row in report.topics:
        rows_by_series.setdefault((row.model, row.method), []).append(row)
    return [
        _pick_worst_topic(column_label(report, rows[0]), rows, confident)
        for rows in rows_by_series.values()
        if has_rescaled_scores(rows[0].method) or any(row.mae.value is not None for row in rows)
    ]


def _pick_worst_topic(label: str, topics: Sequence[GroupErrorRow], confident: bool) -> GatedFigure:
    """The figure of the topic that decides for one series; the note says by which rule."""
    model, lost = topics[0].model, sum(row.lost_samples.lost for row in topics)
    bound_low = max(row.mae_bound_low or 0.0 for row in topics)
    if has_rescaled_scores(topics[0].method):
        return GatedFigure(label, Estimate(None, 0, reason=RESCALED_SCORES_REASON), model, lost, bound_low)
    rows = [row for row in topics if row.mae.value is not None]
    largest = max(rows, key=lambda row: row.mae.value or 0.0)
    if not confident:
        note = f"the largest error of {pluralize(len(rows), 'topic')}"
        return GatedFigure(f"{label}: {largest.name}", largest.mae, model, lost, bound_low, note=note)
    worst = max(rows, key=lambda row: inf if row.mae.ci_high is None else row.mae.ci_high)
    if worst.mae.ci_high is None:
        note = "a topic without an interval decides"
    else:
        note = f"of {pluralize(len(rows), 'topic')}, the one whose interval ends highest decides"
        if worst is not largest:
            note += f", not the one with the largest error ({largest.name}, {largest.mae.value:.3f})"
    return GatedFigure(f"{label}: {worst.name}", worst.mae, model, lost, bound_low, note=note)


def consistency_estimates(report: Report, field: Literal["cosine", "variance"]) -> list[GatedFigure]:
    """Self-consistency or variance of each series of scores.

    Without a value for models that were asked with other sampling settings than the configuration's, if these differ
    between models: one threshold cannot hold for both.
    """
    refusing_models = report.sampling.refusing_models(Purpose.DIRECT)
    labels = report.sampling.labels(Purpose.DIRECT)
    return [
        GatedFigure(
            column_label(report, row),
            Estimate(None, 0, reason=f"{SETTINGS_REASON} ({labels[row.model]})")
            if row.model in refusing_models
            else getattr(row, field),
            row.model,
            count_lost(report, "direct", row.model, row.method),
        )
        for row in report.self_consistency
    ]


def column_label(report: Report, row: object) -> str:
    """Label of a row with `model` and `method`: the model, followed by the method if the report has several methods."""
    model, method = getattr(row, "model", ""), getattr(row, "method", "")
    return model if len({alignment_row.method for alignment_row in report.alignment}) < 2 else f"{model} ({method})"


BoundKind = Literal["min", "max"]
NOT_MEASURED = GatedFigure("audit", Estimate(value=None, n=0, reason="the audit does not measure it"))
"""The figure of a threshold that the audit has no figure for."""
NOT_SCORED_REASON = "not scored yet: the run is not finished"
SCORE_GATES: Mapping[str, Callable[[Report], list[GatedFigure]]] = {
    "min_pearson": pearson_estimates,
    "min_concordance": concordance_estimates,
    "max_mae": mae_estimates,
    "max_region_gap": region_gap_estimates,
    "max_topic_mae": partial(worst_topic_estimates, confident=False),
    "min_self_consistency": partial(consistency_estimates, field="cosine"),
    "max_variance": partial(consistency_estimates, field="variance"),
    "max_refused": refusal_estimates,
    "min_peer_agreement": peer_agreement_estimates,
}
"""The thresholds of figures that every audit of a survey has for each model once it has finished, with what lists
these figures."""
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
    figure_sources: Mapping[str, Callable[[Report], list[GatedFigure]]] = {
        **SCORE_GATES,
        "max_topic_mae": lambda report: worst_topic_estimates(report, thresholds.confident),
        "min_accuracy": accuracy_estimates,
        **{
            name: partial(probe.list_gate_figures, threshold=name)
            for probe in list_built_in_probes()
            for name in probe.thresholds.model_fields
        },
        "min_kappa": kappa_estimates,
    }
    for name, list_figures in figure_sources.items():
        bound_kind = _bound_kind(name)
        threshold = thresholds.find(name)
        if threshold is None:
            continue
        corrected = corrected_estimates(report) if name == CORRECTED_GATE and use_corrections else []
        figures = corrected or list_figures(report)
        is_testable = any(figure.estimate.reason != RESCALED_SCORES_REASON for figure in figures)
        for figure in figures or _list_missing_figures(report, name):
            gate = build_estimate_gate(name, bound_kind, threshold, figure, thresholds.confident)
            if corrected:
                message = f"{gate.message} (corrected by people’s labels)"
                gate = gate.model_copy(update={"corrected": True, "message": message})
            if is_testable and figure.estimate.reason == RESCALED_SCORES_REASON:
                yield gate.model_copy(update={"verdict": GateStatus.SKIPPED})
            else:
                yield _decide_with_losses(gate, bound_kind, figure, low_coverage_models)


def _list_missing_figures(report: Report, name: str) -> list[GatedFigure]:
    """The figures of a threshold that the audit has none for: those of each model, if its run has not finished."""
    models = dict.fromkeys(row.name for row in report.coverage.models if row.name is not None)
    if report.audit.complete or name not in SCORE_GATES or not models:
        return [NOT_MEASURED]
    return [GatedFigure(model, Estimate(None, 0, reason=NOT_SCORED_REASON), model) for model in models]


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
    """Whether a threshold is a lower or an upper limit, by its name."""
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
        margin = tested_value - threshold if bound_kind == "min" else threshold - tested_value
        verdict = GateStatus.PASSED if margin >= -ROUNDING_ERROR else GateStatus.FAILED
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
        message="; ".join(filter(None, (_gate_message(bound_kind, threshold, estimate, confident), figure.note))),
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
