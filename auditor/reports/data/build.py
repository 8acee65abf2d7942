"""Build the report of an audit: a pure function of the stored records, so that equal answers give equal reports."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

import numpy as np

from auditor.domain import Cell
from auditor.prompts.survey_translations import load_further_wordings
from auditor.reports.data.agreement.alignment import compute_alignment
from auditor.reports.data.agreement.baselines import (
    build_guess_claims,
    compute_baselines,
    compute_ceilings,
    compute_gains,
)
from auditor.reports.data.agreement.cultural_findings import (
    build_cultural_findings,
    compute_country_errors,
    compute_topic_errors,
    find_shortfalls,
)
from auditor.reports.data.agreement.languages import build_languages_report, compare_methods, load_language_scores
from auditor.reports.data.agreement.over_models import (
    build_attributes_report,
    build_over_models_report,
    choose_method,
    collect_report_figures,
    find_equal_series,
)
from auditor.reports.data.agreement.population import (
    build_nonresponse_report,
    compute_population_agreement,
    compute_structure,
)
from auditor.reports.data.agreement.regions import build_regions_report
from auditor.reports.data.agreement.sensitivity import (
    build_sensitivity_rows,
    build_variance_rows,
    find_influential_units,
)
from auditor.reports.data.agreement.tiers import build_tier_rankings
from auditor.reports.data.conflicts import build_conflicts_report
from auditor.reports.data.cost import build_cost_report, build_savings_rows
from auditor.reports.data.coverage.build import build_coverage_report, build_reask_rows, build_refusals_report
from auditor.reports.data.coverage.counts import build_model_version_rows
from auditor.reports.data.failures import build_failures_report
from auditor.reports.data.judge_quality.build import build_judge_quality, build_pair_labels
from auditor.reports.data.judge_quality.schema import PairLabelsReport
from auditor.reports.data.panel.build import (
    build_panel_report,
    compute_consistency_alignment,
    compute_peer_agreement,
    compute_self_consistency,
)
from auditor.reports.data.probe_reports import (
    build_probe_reports,
    list_attribute_figures,
    load_recorded_probes,
    measure_installed_probes,
    measure_probe_coverage,
)
from auditor.reports.data.report_schema import (
    AuditSummary,
    CellReport,
    ModelSummary,
    QuestionReport,
    Report,
    RewordingReport,
    SurveySummary,
)
from auditor.reports.data.report_source import ReportSource, count_addressing_traces, load_source
from auditor.reports.data.requests import build_requests_report, build_sampling_report
from auditor.reports.data.robustness import build_design_averages
from auditor.reports.data.task import build_task_report
from auditor.reports.data.traces import build_examples
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.labels import load_labels
from auditor.storage.probe_results import list_label_forms
from auditor.surveys.baselines import count_donor_countries


def build_report(db: Database, audit_name: str) -> Report:
    """Build the report of an audit from its stored records.

    Calls no model, writes nothing and reads no clock: the report changes only when the stored records change, and its
    times are stored ones. One input is not in the database: the ceiling of r and the bounds of nonresponse need the
    survey's respondents, which are read from the survey's own file. The report says so if that file is missing.

    Raises:
        StorageError: there is no such audit.
    """
    with garbage_collection_paused():
        return _assemble_report(db, load_source(db, audit_name))


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause Python's cyclic garbage collector.

    A report and an export create millions of rows, none of them in a reference cycle, which the collector would scan
    repeatedly.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _assemble_report(db: Database, source: ReportSource) -> Report:
    """Compute every section of the report from the loaded records; those that others need come first."""
    ceilings = compute_ceilings(source)  # over all cells first, then within topics
    alignment = compute_alignment(source, ceilings[0].largest_r)
    sampling = build_sampling_report(source.config, source.call_counts)
    self_consistency, peer_agreement = compute_self_consistency(source, sampling), compute_peer_agreement(source)
    probe_reports, task = build_probe_reports(db, source, sampling), build_task_report(source)
    equal_series, judge_quality = find_equal_series(source), build_judge_quality(source)
    figures = collect_report_figures(alignment, self_consistency, list_attribute_figures(probe_reports), task)
    method = choose_method({row.method for row in alignment})
    regions, methods = build_regions_report(source), compare_methods(source)
    countries, baselines = compute_country_errors(source), compute_baselines(source)
    recorded_probes = load_recorded_probes(db, source)
    return Report(
        audit=_summarize_audit(source),
        coverage=build_coverage_report(
            source, [*measure_probe_coverage(probe_reports, recorded_probes)], count_addressing_traces(db, source)
        ),
        alignment=alignment,
        sensitivity=build_sensitivity_rows(source),
        gain=compute_gains(source),
        baselines=baselines,
        guesses=build_guess_claims(source, baselines),
        donor_countries=count_donor_countries(source.survey),
        population=compute_population_agreement(source, alignment, ceilings),
        structure=compute_structure(source),
        ceiling=ceilings,
        nonresponse=build_nonresponse_report(source) if _needs_nonresponse_bounds(source) else None,
        regions=regions,
        topics=compute_topic_errors(source),
        countries=countries,
        self_consistency=self_consistency,
        panel=build_panel_report(source, alignment, peer_agreement, judge_quality),
        peer_agreement=peer_agreement,
        conflicts=build_conflicts_report(db, source),
        refusals=build_refusals_report(source),
        repairs=build_reask_rows(source),
        methods=methods,
        task=task,
        tiers=build_tier_rankings(source),
        variance=build_variance_rows(source, load_language_scores(db, source)),
        languages=build_languages_report(db, source),
        cost=build_cost_report(source),
        failures=build_failures_report(db, source),
        requests=build_requests_report(db, source),
        sampling=sampling,
        served=build_model_version_rows(source.call_counts),
        savings=build_savings_rows(source),
        consistency_alignment=compute_consistency_alignment(source.config, self_consistency, alignment),
        environment=json.loads(source.audit.environment),
        cultural_findings=build_cultural_findings(source, countries),
        shortfalls=find_shortfalls(source),
        influence=find_influential_units(source),
        equal_series=equal_series,
        examples=build_examples(db, source),
        judge_quality=judge_quality,
        pair_labels=_build_pair_labels(db, source.audit.id),
        over_models=build_over_models_report(
            source, alignment, methods, self_consistency, peer_agreement, regions, countries, equal_series
        ),
        designs=build_design_averages(source),
        attributes=build_attributes_report(
            [source.config], figures, [group for group in equal_series if group.method == method]
        ),
        **probe_reports,
        probes=measure_installed_probes(recorded_probes),
    )


def _build_pair_labels(db: Database, audit_id: int) -> list[PairLabelsReport]:
    """Measure the judges of pairs against people's labels; the modules are not loaded without labels."""
    if not any(load_labels(db, audit_id, form.kind) for form in list_label_forms()):
        return []

    return build_pair_labels(db, audit_id)


def _needs_nonresponse_bounds(source: ReportSource) -> bool:
    """Whether the configuration asks for best and worst cases of nonresponse."""
    section = source.config.survey if source.config else None
    return section is not None and section.nonresponse == "bounds"


def _summarize_audit(source: ReportSource) -> AuditSummary:
    """The report's summary of the audit: its state, settings, survey, models and cells."""
    audit, config, survey = source.audit, source.config, source.survey
    return AuditSummary(
        name=audit.name,
        simulated=config is not None and config.is_simulated,
        auditor=metadata.version("auditor"),
        stage=audit.stage,
        complete=audit.stage in audits.FINAL_STAGES,
        created_at=audit.created_at,
        finished_at=audit.finished_at,
        seed=config.seed if config else None,
        config_hash=audit.config_hash,
        imported=config is None,
        samples=config.direct.samples if config and config.probes.direct else None,
        thresholds=config.check.list_names() if config else [],
        survey=SurveySummary(
            survey=survey,
            question=survey.wording if config else survey.question,
            cells=0 if survey.task else len(source.cells),
            asked=0 if survey.task else int((~np.isnan(source.survey_scores)).sum()),
            topic_questions={
                topic: QuestionReport(wording=question.wording, scale=question.scale)
                for topic, question in survey.topic_questions.items()
            },
            unread_wordings=[
                code
                for code, questions in survey.wordings.items()
                if (built_in := load_further_wordings(code)).questions[: len(questions)] == tuple(questions)
                and not built_in.is_read
            ],
            clusters="zone" if source.cluster_countries(source.survey_scores).unit == "zone" else "country",
            zones=_group_by_zone(source),
            rephrased={
                code: RewordingReport(wording=phrasing.wording, scale=phrasing.scale, topics=dict(phrasing.topics))
                for code, phrasing in survey.phrasings.items()
            },
        ),
        models=_summarize_models(source),
        cells=[] if survey.task else _build_cell_reports(source),
    )


def _group_by_zone(source: ReportSource) -> dict[str, list[str]]:
    """Countries by cultural zone; those in none are left out."""
    countries_by_zone: dict[str, list[str]] = {}
    for country in source.countries:
        if country in source.zone_by_country:
            countries_by_zone.setdefault(source.zone_by_country[country], []).append(country)
    return countries_by_zone


def _summarize_models(source: ReportSource) -> list[ModelSummary]:
    """Audited models and judges with their provider identifiers; a model that is both has one entry."""
    provider_models = (
        {name: model.model for name, model in source.config.models_by_name.items()} if source.config else {}
    )
    return [
        ModelSummary(
            name=name, model=provider_models.get(name), judge=name in source.judge_names, audited=name in source.models
        )
        for name in dict.fromkeys([*source.models, *source.judge_names])
    ]


def _build_cell_reports(source: ReportSource) -> list[CellReport]:
    """One entry per cell: people's score and each model's scores by method; None where there is no score."""
    survey_scores = source.survey.scores
    methods = list(dict.fromkeys(method for method, _ in source.columns))
    score_rows = source.score_matrix.T.tolist()

    def nest_scores(row: list[float]) -> dict[str, dict[str, float | None]]:
        """Scores of one cell by method, then model; None for nan."""
        scores_by_method: dict[str, dict[str, float | None]] = {method: {} for method in methods}
        for (method, model), score in zip(source.columns, row, strict=True):
            scores_by_method[method][model] = None if score != score else score  # only nan differs from itself
        return scores_by_method

    return [
        CellReport(
            country=cell.country, topic=cell.topic, survey=survey_scores.get(Cell(*cell)), scores=nest_scores(row)
        )
        for cell, row in zip(source.cells, score_rows, strict=True)
    ]
