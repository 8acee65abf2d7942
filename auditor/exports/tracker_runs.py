"""An audit as the runs of an experiment tracker: one a model, and one of the whole that holds the report.

Trackers compare runs by their metrics, so a model is a run and every figure of the report one of its metrics, each with
the ends of its interval and its n. What could not be measured is no metric: a tracker has no word for why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from auditor.domain import Method
from auditor.reports.measurement_schema import AlignmentRow, Estimate
from auditor.reports.report_schema import Report

Params = dict[str, str]
Metrics = dict[str, float]
REPORT_FILES = {"report.html": "html", "report.json": "json", "report.md": "markdown"}


@dataclass(frozen=True, slots=True)
class TrackerRun:
    """One run: of a model, or of the whole audit.

    Attributes:
        name: the model's; the audit's for the whole.
        params: what was decided beforehand.
        metrics: figures, each with `NAME_low`, `NAME_high` and `NAME_n`.
    """

    name: str
    params: Params
    metrics: Metrics


def build_runs(report: Report) -> tuple[TrackerRun, list[TrackerRun]]:
    """The run of the whole audit, and one of each audited model."""
    shared = _shared_params(report)
    whole = TrackerRun(report.audit.name, shared, _audit_metrics(report))
    models = [m for m in report.audit.models if m.audited]
    return whole, [
        TrackerRun(m.name, shared | {"model": m.model or m.name, "model_name": m.name}, _model_metrics(report, m.name))
        for m in models
    ]


def report_digest(report: Report) -> str:
    """Names what the report says, so that it is not written twice."""
    return sha256(report.model_dump_json().encode()).hexdigest()


def write_artifacts(report: Report, folder: Path) -> None:
    """The report in all its forms, and the tables of the paper."""
    from auditor.atomic_files import write_atomically
    from auditor.exports.tables import export_paper
    from auditor.reports.pages.render import render_report

    for name, form in REPORT_FILES.items():
        write_atomically(render_report(report, form), folder / name)
    export_paper(report, folder / "tables")


def _shared_params(report: Report) -> Params:
    audit = report.audit
    found = {
        "audit": audit.name,
        "auditor": audit.auditor,
        "stage": audit.stage,
        "survey": audit.survey.title,
        "cells": audit.survey.asked,
        "samples": audit.samples,
        "seed": audit.seed,
        "config_hash": audit.config_hash,
        "judges": ", ".join(m.name for m in audit.models if m.judge),
    }
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def _audit_metrics(report: Report) -> Metrics:
    found = _estimate_metrics("fleiss_kappa", report.panel.fleiss_kappa) | _estimate_metrics(
        "conflicts_settled", report.conflicts.settled
    )
    found |= {"models": len([m for m in report.audit.models if m.audited]), "conflicts": report.conflicts.total}
    found["conflicts_open"] = report.conflicts.states.get("open", 0)
    return found | _cost_metrics(report, None)


def _model_metrics(report: Report, model_name: str) -> Metrics:
    found: Metrics = {}
    for row in (r for r in report.alignment if r.model == model_name):
        prefix = "" if row.method == Method.DIRECT else f"{row.method}."
        for figure, estimate in _agreement_estimates(row):
            found |= _estimate_metrics(f"{prefix}{figure}", estimate)
    for gap in (g for g in report.regions.gaps if g.model == model_name and g.method == Method.DIRECT):
        found |= _estimate_metrics("region_gap_mae", gap.mae_gap)
    for consistency in (r for r in report.self_consistency if r.model == model_name):
        found |= _estimate_metrics("self_consistency", consistency.cosine) | _estimate_metrics(
            "sample_variance", consistency.variance
        )
    for peers in (r for r in report.peer_agreement if r.model == model_name):
        found |= _estimate_metrics("peer_agreement", peers.agreement)
    for covered in (r for r in report.coverage.models if r.name == model_name and r.stage == "direct"):
        prefix = "" if covered.method in (None, Method.DIRECT) else f"{covered.method}."
        found |= {f"{prefix}answers_planned": covered.planned, f"{prefix}answers_usable": covered.ok}
    return found | _cost_metrics(report, model_name)


def _agreement_estimates(row: AlignmentRow) -> Iterable[tuple[str, Estimate]]:
    """Intervals over countries and topics where there are such, else over cells; as the report's own words go."""
    plain = {
        "pearson_r": (row.pearson_r, row.ci_low, row.ci_high),
        "mae": (row.mae, row.mae_ci_low, row.mae_ci_high),
        "rmse": (row.rmse, row.rmse_ci_low, row.rmse_ci_high),
    }
    for name, (value, low, high) in plain.items():
        crossed: Estimate = getattr(row.crossed, name)
        if crossed.ci_low is not None:
            low, high = crossed.ci_low, crossed.ci_high
        yield name, Estimate(value=value, n=row.n, ci_low=low, ci_high=high, reason=row.reason or "no interval")
    yield "bias", row.bias


def _estimate_metrics(name: str, estimate: Estimate) -> Metrics:
    if estimate.value is None:
        return {}
    ends = {f"{name}_low": estimate.ci_low, f"{name}_high": estimate.ci_high}
    known = {key: value for key, value in ends.items() if value is not None}
    return {name: estimate.value, **known, f"{name}_n": estimate.n}


def _cost_metrics(report: Report, model_name: str | None) -> Metrics:
    """Dollars where every price is known: a sum of a part would look like the whole."""
    rows = [report.cost.total] if model_name is None else [r for r in report.cost.rows if r.name == model_name]
    found: Metrics = {"calls": sum(r.calls for r in rows), "requests": sum(r.attempts for r in rows)}
    if rows and all(r.usd is not None and not r.lower_bound for r in rows):
        found["cost_usd"] = sum(r.usd or 0.0 for r in rows)
    return found
