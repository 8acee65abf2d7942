"""The report of an audit: a pure function of what is stored, so that equal answers give equal reports."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

import numpy as np

from auditor.domain import Cell
from auditor.reports.agreement.baselines import compute_baselines, compute_ceilings, compute_gains
from auditor.reports.agreement.languages import build_languages_report
from auditor.reports.agreement.method_differences import compare_methods
from auditor.reports.agreement.nonresponse import build_nonresponse_report
from auditor.reports.agreement.section import (
    build_regions_report,
    compute_alignment,
    compute_country_errors,
    compute_topic_errors,
)
from auditor.reports.agreement.tiers import build_tier_rankings
from auditor.reports.conflicts.section import build_conflicts_report
from auditor.reports.cost.savings import build_savings_rows
from auditor.reports.cost.section import build_cost_report
from auditor.reports.coverage.model_versions import build_model_version_rows
from auditor.reports.coverage.refusals import build_reask_rows, build_refusals_report
from auditor.reports.coverage.section import build_coverage_report
from auditor.reports.logic.section import build_logic_report
from auditor.reports.panel.section import build_panel_report, compute_peer_agreement, compute_self_consistency
from auditor.reports.report_schema import AuditSummary, CellReport, ModelSummary, Report, RewordingReport, SurveySummary
from auditor.reports.report_source import ReportSource, load_source
from auditor.reports.semantic.section import build_semantic_report
from auditor.reports.task.section import build_task_report
from auditor.storage import audits
from auditor.storage.database import Database


def build_report(db: Database, audit_name: str) -> Report:
    """Everything that is known of an audit.

    Nothing is asked of any model, nothing is written, and no clock is read: the report changes only when what is
    stored changes. Times in it are stored ones. Only what the respondents of a survey tell, the ceiling and the bounds
    of nonresponse, is read from the survey's own file, and named as missing where that is gone.

    Raises:
        StorageError: there is no such audit.
    """
    with _garbage_collection_paused():
        return _assemble_report(db, load_source(db, audit_name))


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Python's search for cyclic garbage waits: rows by the million make none, and would be searched time and again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _assemble_report(db: Database, source: ReportSource) -> Report:
    most = compute_ceilings(source)
    aligned = compute_alignment(source, most[0].largest_r)
    peers = compute_peer_agreement(source)
    moral, compared = build_semantic_report(db, source), build_logic_report(db, source)
    return Report(
        audit=_summarize_audit(source),
        coverage=build_coverage_report(source, moral, compared),
        alignment=aligned,
        gain=compute_gains(source),
        baselines=compute_baselines(source),
        ceiling=most,
        nonresponse=build_nonresponse_report(source) if _needs_nonresponse_bounds(source) else None,
        regions=build_regions_report(source),
        topics=compute_topic_errors(source),
        countries=compute_country_errors(source),
        self_consistency=compute_self_consistency(source),
        panel=build_panel_report(source, aligned, peers),
        peer_agreement=peers,
        conflicts=build_conflicts_report(db, source),
        refusals=build_refusals_report(source),
        repairs=build_reask_rows(source),
        methods=compare_methods(source),
        task=build_task_report(source),
        tiers=build_tier_rankings(source),
        languages=build_languages_report(db, source),
        semantic=moral,
        logic=compared,
        cost=build_cost_report(source),
        served=build_model_version_rows(source.call_counts),
        savings=build_savings_rows(source),
        environment=json.loads(source.audit.environment),
    )


def _needs_nonresponse_bounds(source: ReportSource) -> bool:
    section = source.config.survey if source.config else None
    return section is not None and section.nonresponse == "bounds"


def _summarize_audit(source: ReportSource) -> AuditSummary:
    audit, config, survey = source.audit, source.config, source.survey
    return AuditSummary(
        name=audit.name,
        auditor=metadata.version("auditor"),
        stage=audit.stage,
        complete=audit.stage in audits.FINAL_STAGES,
        created_at=audit.created_at,
        finished_at=audit.finished_at,
        seed=config.seed if config else None,
        config_hash=audit.config_hash,
        samples=config.direct.samples if config and config.probes.direct else None,
        survey=SurveySummary(
            name=survey.name,
            title=survey.title,
            source=survey.source,
            wording=survey.wording,
            scale=survey.scale,
            cells=0 if survey.task else len(source.cells),
            asked=0 if survey.task else int((~np.isnan(source.survey_scores)).sum()),
            rephrased={
                code: RewordingReport(wording=p.wording, scale=p.scale, topics=dict(p.topics))
                for code, p in survey.phrasings.items()
            },
        ),
        models=_summarize_models(source),
        cells=[] if survey.task else _build_cell_reports(source),
    )


def _summarize_models(source: ReportSource) -> list[ModelSummary]:
    providers = {m.name: m.model for m in [*source.config.models, *source.config.judge_models]} if source.config else {}
    return [
        ModelSummary(
            name=name, model=providers.get(name), judge=name in source.judge_names, audited=name in source.models
        )
        for name in dict.fromkeys([*source.models, *source.judge_names])
    ]


def _build_cell_reports(source: ReportSource) -> list[CellReport]:
    people = source.survey.scores
    methods = list(dict.fromkeys(method for method, _ in source.columns))
    values = source.score_matrix.T.tolist()

    def scores(row: list[float]) -> dict[str, dict[str, float | None]]:
        found: dict[str, dict[str, float | None]] = {method: {} for method in methods}
        for (method, model), value in zip(source.columns, row, strict=True):
            found[method][model] = None if value != value else value
        return found

    return [
        CellReport(country=cell.country, topic=cell.topic, survey=people.get(Cell(*cell)), scores=scores(row))
        for cell, row in zip(source.cells, values, strict=True)
    ]
