"""Convert a report to runs of an experiment tracker: one per model, and one of the whole audit with the report's files.

Trackers compare runs by their metrics. So each model is a run, and each of its figures in the report is a metric with
the ends of its 95% CI and its n. A figure that could not be measured has no metric: trackers cannot hold a reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from auditor.atomic_files import write_files
from auditor.domain import Method, Purpose
from auditor.exports.tables import export_paper
from auditor.metrics.estimate import Estimate
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.report_schema import Report
from auditor.reports.output import REPORT_FORMATS, render_report

Params = dict[str, str]
Metrics = dict[str, float]
TRACKED_FIGURES = ("pearson_r", "spearman_rho", "mae", "rmse", "bias", "concordance")
"""Figures of agreement with people that are metrics: fields of `AlignmentRow`."""
REPORT_FILES = {f"report{suffix}": name for suffix, name in REPORT_FORMATS.items() if name != "text"}


@dataclass(frozen=True, slots=True)
class TrackerRun:
    """A run of a model, or of the whole audit.

    Attributes:
        name: name of the model or of the audit.
        params: settings of the audit and the model, as text.
        metrics: figures by name; estimates also have `NAME_low`, `NAME_high` (95% CI) and `NAME_n`.
    """

    name: str
    params: Params
    metrics: Metrics


def build_runs(report: Report) -> tuple[TrackerRun, list[TrackerRun]]:
    """Build the run of the whole audit, and one run per audited model."""
    shared_params = _shared_params(report)
    audit_run = TrackerRun(report.audit.name, shared_params, _audit_metrics(report))
    models = [model for model in report.audit.models if model.audited]
    # Only where they differ between models.
    sampling_params = {name: {"sampling": label} for name, label in report.sampling.labels(Purpose.DIRECT).items()}
    return audit_run, [
        TrackerRun(
            model.name,
            shared_params
            | {"model": model.model or model.name, "model_name": model.name}
            | sampling_params.get(model.name, {}),
            _model_metrics(report, model.name),
        )
        for model in models
    ]


def compute_report_digest(report: Report) -> str:
    """SHA-256 of the report's JSON, by which an export recognises a report that it has written before."""
    return sha256(report.model_dump_json().encode()).hexdigest()


def write_artifacts(report: Report, folder: Path) -> None:
    """Write the report as HTML, JSON and Markdown, and the tables of the paper, to a folder."""
    write_files({folder / name: render_report(report, form) for name, form in REPORT_FILES.items()})
    export_paper(report, folder / "tables")


def _shared_params(report: Report) -> Params:
    """Settings of the audit that all of its runs have, as text; those without a value are left out."""
    audit = report.audit
    params = {
        "audit": audit.name,
        "auditor": audit.auditor,
        "stage": audit.stage,
        "survey": audit.survey.title,
        "cells": audit.survey.asked,
        "samples": audit.samples,
        "seed": audit.seed,
        "config_hash": audit.config_hash,
        "judges": ", ".join(model.name for model in audit.models if model.judge),
    }
    return {name: str(value) for name, value in params.items() if value not in (None, "")}


def _audit_metrics(report: Report) -> Metrics:
    """Metrics of the whole audit: agreement of the judges, conflicts, number of models, and cost."""
    metrics = _estimate_metrics("fleiss_kappa", report.panel.fleiss_kappa) | _estimate_metrics(
        "conflicts_settled", report.conflicts.settled
    )
    metrics |= {
        "models": len([model for model in report.audit.models if model.audited]),
        "conflicts": report.conflicts.total,
    }
    metrics["conflicts_open"] = report.conflicts.states.get("open", 0)
    return metrics | _cost_metrics(report, None)


def _model_metrics(report: Report, model_name: str) -> Metrics:
    """Metrics of one model; those of a method other than direct questions are named `METHOD.NAME`.

    Trackers put the metrics of all runs side by side, so self-consistency is left out for a model that was asked with
    other sampling settings than the others.
    """
    metrics: Metrics = {}
    for row in (report_row for report_row in report.alignment if report_row.model == model_name):
        prefix = "" if row.method == Method.DIRECT else f"{row.method}."
        for figure, estimate in _agreement_estimates(row):
            metrics |= _estimate_metrics(f"{prefix}{figure}", estimate)
    for gap in (
        region_gap
        for region_gap in report.regions.gaps
        if region_gap.model == model_name and region_gap.method == Method.DIRECT
    ):
        metrics |= _estimate_metrics("region_gap_mae", gap.mae_gap)
    is_comparable = model_name not in report.sampling.refusing_models(Purpose.DIRECT)
    for consistency in (
        report_row for report_row in report.self_consistency if report_row.model == model_name and is_comparable
    ):
        metrics |= _estimate_metrics("self_consistency", consistency.cosine) | _estimate_metrics(
            "sample_variance", consistency.variance
        )
    for peers in (report_row for report_row in report.peer_agreement if report_row.model == model_name):
        metrics |= _estimate_metrics("peer_agreement", peers.agreement)
    for coverage in (
        report_row
        for report_row in report.coverage.models
        if report_row.name == model_name and report_row.stage == "direct"
    ):
        prefix = "" if coverage.method in (None, Method.DIRECT) else f"{coverage.method}."
        metrics |= {f"{prefix}answers_planned": coverage.planned, f"{prefix}answers_usable": coverage.ok}
    return metrics | _cost_metrics(report, model_name)


def _agreement_estimates(row: AlignmentRow) -> Iterable[tuple[str, Estimate]]:
    """Yield the tracked figures with their 95% CIs over countries and topics."""
    for name in TRACKED_FIGURES:
        yield name, getattr(row, name)


def _estimate_metrics(name: str, estimate: Estimate) -> Metrics:
    """Metrics of an estimate: `NAME`, `NAME_low` and `NAME_high` (95% CI) and `NAME_n`; empty if it has no value."""
    if estimate.value is None:
        return {}
    interval_ends = {f"{name}_low": estimate.ci_low, f"{name}_high": estimate.ci_high}
    known_ends = {key: value for key, value in interval_ends.items() if value is not None}
    return {name: estimate.value, **known_ends, f"{name}_n": estimate.n}


def _cost_metrics(report: Report, model_name: str | None) -> Metrics:
    """Counts of calls and requests; the cost in US dollars only if every price is known, since a part would mislead."""
    cost_rows = (
        [report.cost.total] if model_name is None else [row for row in report.cost.rows if row.name == model_name]
    )
    metrics: Metrics = {
        "calls": sum(row.calls for row in cost_rows),
        "requests": sum(row.attempts for row in cost_rows),
    }
    if cost_rows and all(row.usd is not None and not row.lower_bound for row in cost_rows):
        metrics["cost_usd"] = sum(row.usd or 0.0 for row in cost_rows)
    return metrics
