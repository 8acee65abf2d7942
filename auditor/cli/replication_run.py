"""Run the audits of a paper's experiment, and print its figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.console.output import print_json, print_message

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.replications.definitions import MeasuredAudit
    from auditor.replications.planning import ReplicationOptions
    from auditor.replications.presets import Paper
    from auditor.replications.trial_plans import AuditPlan
    from auditor.reports.data.replication import Departure, RecomputedCell
    from auditor.reports.document import Callout, Section, Text
    from auditor.reports.sections.replication_run import Replication

CAUTIONS_NOTE = "Sections named here are in the audit's own report: auditor report AUDIT."


def run_experiment(
    paper: Paper,
    options: ReplicationOptions,
    pairs: Sequence[tuple[str, str]],
    storage: str | None,
    output: Path | None,
    as_json: bool,
    *,
    dry_run: bool,
) -> None:
    """Run the audits of a paper's experiment, and print its document.

    Args:
        pairs: a model of ours and the published one that it is set beside.
    """
    from pydantic_core import to_jsonable_python

    from auditor.cli.replication_forecast import forecast_audits, print_forecasts
    from auditor.console.page_output import present_document
    from auditor.replications.findings import check_findings
    from auditor.replications.joining import join_figures
    from auditor.replications.model_matching import match_models
    from auditor.replications.planning import list_ignored_settings, plan_audits
    from auditor.reports.sections.replication_run import build_replication_document
    from auditor.reports.sections.replication_table import build_figures_table

    configs = plan_audits(paper, options)
    _require_data(paper, options.files)
    if ignored := list_ignored_settings(paper, options):
        print_message(f"--models: the experiment has settings of its own. Without effect: {', '.join(ignored)}.")
    audited = [model.name for config in [*configs.values()][:1] for model in config.models]
    own_by_published = match_models(paper, audited, pairs)
    plans = _plan_trials(paper, options, configs)
    forecasts = forecast_audits(configs, plans, storage)
    print_forecasts(configs, plans, forecasts)
    if dry_run:
        if as_json:
            print_json(to_jsonable_python(forecasts))
        print_message("Dry run: nothing was sent or written.")
        return
    measured = _measure_audits(paper, options, configs, plans, storage)
    cells, departures = join_figures(paper, options.table_id, measured, own_by_published)
    findings = check_findings(paper, measured)
    replication = _describe_replication(paper, options, measured, cells, departures)
    document = build_replication_document(replace(replication, findings=findings))
    figures = build_figures_table(cells)
    result = {"findings": findings, "cells": cells, "departures": departures}
    present_document(to_jsonable_python(result), document, output, as_json, figures)


def _require_data(paper: Paper, files: Mapping[str, str]) -> None:
    """Require that each value of --data is a file, a folder or a built-in survey; UsageError if it is not.

    Values for questions may be `built-in`; they are checked where they are read.
    """
    from auditor.errors import UsageError
    from auditor.replications.trial_plans import QUESTIONS_KEY
    from auditor.surveys import builtin_surveys

    assert paper.experiment is not None
    for name, path in files.items():
        is_of_questions = paper.experiment.files[name].key == QUESTIONS_KEY
        if not is_of_questions and not Path(path).exists() and path not in builtin_surveys():
            raise UsageError(f"--data {name}: there is no file '{path}'.", "Correct the path, or leave it out.")


def _describe_replication(
    paper: Paper,
    options: ReplicationOptions,
    measured: Sequence[MeasuredAudit],
    cells: Sequence[RecomputedCell],
    departures: Sequence[Departure],
) -> Replication:
    """What the document of a replication shows: figures, notes, warnings, and sections of the audits' reports."""
    from auditor.replications.data_notes import describe_data, describe_files
    from auditor.reports.sections.phrasing import mark_code
    from auditor.reports.sections.replication_run import SMALL_FORM_NOTE, Replication
    from auditor.reports.sections.simulation_note import label_kind

    assert paper.experiment is not None  # it has audits
    names = [audit.name for audit in measured]
    is_simulated = any(audit.report.audit.simulated for audit in measured)
    notes: list[Text] = [
        *([SMALL_FORM_NOTE] if options.is_small else []),
        *map(mark_code, describe_data(paper.experiment, options, names)),
        *([f"--as-published: {paper.experiment.as_published_note}"] if options.is_as_published else []),
    ]
    files = describe_files(paper.experiment, options, names)
    return Replication(
        paper.title,
        paper.source,
        cells,
        departures,
        layouts={table.id: table.layout for table in paper.tables},
        notes=notes,
        details=[*_describe_audits(measured), *files],
        callouts=_list_warnings(measured, is_simulated=is_simulated),
        appended=_list_sections(measured),
        kind=label_kind("Replication", is_simulated=is_simulated),
    )


def _list_warnings(measured: Sequence[MeasuredAudit], *, is_simulated: bool) -> list[Callout]:
    """Say that models are simulated, and list the reasons for caution of each audit's report."""
    from auditor.reports.document import Callout, List, Paragraph
    from auditor.reports.sections.caution import list_cautions
    from auditor.reports.sections.simulation_note import build_simulation_note

    cautions = [f"{audit.name}: {caution}" for audit in measured for caution in list_cautions(audit.report)]
    return [
        *build_simulation_note(is_simulated=is_simulated),
        *([Callout("Reasons for caution", [List(cautions), Paragraph(CAUTIONS_NOTE)])] if cautions else []),
    ]


def _plan_trials(paper: Paper, options: ReplicationOptions, configs: Mapping[str, AuditConfig]) -> dict[str, AuditPlan]:
    """Plan the experiments on the audits, and read their files; AuditorError if one cannot be used."""
    from auditor.replications.planning import apply_options, list_data_files, select_runnable_tables
    from auditor.replications.trial_plans import plan_trials

    assert paper.experiment is not None
    tables, files = select_runnable_tables(paper, options.table_id), list_data_files(paper.experiment, options)
    return plan_trials(apply_options(paper.experiment, options), tables, files, configs)


def _measure_audits(
    paper: Paper,
    options: ReplicationOptions,
    configs: Mapping[str, AuditConfig],
    plans: Mapping[str, AuditPlan],
    storage: str | None,
) -> list[MeasuredAudit]:
    """Run the audits and the experiments on them, import people's comparisons, and load all reports.

    Audits that only experiments need are stored, and not asked.
    """
    from auditor.cli.experiments import open_progress
    from auditor.cli.run import run_with_progress
    from auditor.console.output import list_called_words
    from auditor.experiments.declaration import ExperimentContext
    from auditor.replications.joining import load_measured_audits
    from auditor.replications.people_comparisons import import_people_comparisons
    from auditor.replications.planning import apply_options, list_data_files, plan_imports, select_runnable_tables
    from auditor.replications.trials import run_trials
    from auditor.run import finish_audit, resolve_storage_url, store_audit

    assert paper.experiment is not None
    imports = plan_imports(paper, options)
    words = list_called_words()
    for name, config in configs.items():
        if plans[name].is_asked:
            run_with_progress(config, words, storage, preflight=True, rediscover=False)
        else:
            store_audit(config, storage=storage)
    import_people_comparisons(dict(imports.values()), storage, options.limit)
    names = {name: config.name for name, config in configs.items()}
    names |= {name: audit_name for name, (audit_name, _) in imports.items()}
    context = ExperimentContext(storage, open_progress, handles_signals=True)
    experiment = apply_options(paper.experiment, options)
    tables, files = select_runnable_tables(paper, options.table_id), list_data_files(experiment, options)
    trials = run_trials(experiment, tables, files, names, context)
    for name, config in configs.items():
        if not plans[name].is_asked:
            finish_audit(config.name, storage=storage)
    return load_measured_audits(resolve_storage_url(storage), names, imports, trials)


def _describe_audits(measured: Sequence[MeasuredAudit]) -> list[Text]:
    """Notes on the audits: their names, models, cells, calls and costs, and their survey's source."""
    from auditor.reports.number_format import format_usd, pluralize

    notes: list[Text] = []
    for audit in measured:
        report = audit.report
        if audit.stored_config is None:
            notes.append(f"{audit.name}: audit {report.audit.name} of people's comparisons; no model was asked.")
            continue
        cost = report.cost.total
        is_of_survey = audit.config.survey is not None
        cells = f"{pluralize(report.audit.survey.asked, 'cell')}, " if is_of_survey else ""
        survey = f" Survey: {report.audit.survey.title}. {report.audit.survey.source}" if is_of_survey else ""
        notes.append(
            f"{audit.name}: audit {report.audit.name} of {pluralize(len(audit.models), 'model')} "
            f"({', '.join(audit.models)}), {cells}{pluralize(cost.calls, 'call')}, "
            f"cost {format_usd(cost.usd, cost.lower_bound)}.{survey}"
        )
    return notes


def _list_sections(measured: Sequence[MeasuredAudit]) -> list[Section]:
    """Sections of the audits' reports that have the figures of each model."""
    from auditor.probes.logic.section import group_logic_tables
    from auditor.probes.semantic.experiments.section_answer_counts import build_trial_sections
    from auditor.probes.semantic.section import build_semantic_section
    from auditor.reports.sections.over_models import build_over_models_section
    from auditor.reports.sections.paper_tables import group_model_tables
    from auditor.reports.sections.replication_run import prefix_ids
    from auditor.reports.sections.self_comparisons import build_consistency_section, build_methods_section

    sections = [
        (audit.name, section)
        for audit in measured
        for section in (
            group_model_tables(audit.report),
            build_methods_section(audit.report),
            build_over_models_section(audit.report, has_details=False),
            build_consistency_section(audit.report),
            group_logic_tables(audit.report),
            build_semantic_section(audit.report),
            *build_trial_sections(audit.trials),
        )
    ]
    return [prefix_ids(section, name.lower(), name) for name, section in sections if section is not None]
