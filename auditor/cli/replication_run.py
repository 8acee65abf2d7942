"""Run the audits of a paper's experiment, and print its figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.cli.output import print_json, print_message

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.replications.definitions import MeasuredAudit
    from auditor.replications.planning import ReplicationOptions
    from auditor.replications.presets import Paper
    from auditor.reports.data.cost.forecast import CostForecast
    from auditor.reports.document import Section, Text


def run_experiment(
    paper: Paper,
    options: ReplicationOptions,
    own_models: Mapping[str, str],
    storage: str | None,
    output: Path | None,
    as_json: bool,
    *,
    dry_run: bool,
) -> None:
    """Run the audits of a paper's experiment, and print its document."""
    from pydantic_core import to_jsonable_python

    from auditor.cli.page_output import present_document
    from auditor.replications.data_notes import describe_data
    from auditor.replications.joining import join_figures, match_models
    from auditor.replications.planning import plan_audits
    from auditor.reports.sections.phrasing import mark_code
    from auditor.reports.sections.replication_run import SMALL_FORM_NOTE, build_run_document

    configs = plan_audits(paper, options)
    assert paper.experiment is not None  # it has audits
    audited = [model.name for config in [*configs.values()][:1] for model in config.models]
    own_by_published = match_models(paper, audited, own_models)
    forecasts = _forecast_audits(configs, options, storage)
    _print_forecasts(forecasts, _list_asking_experiments(paper, options, configs))
    if dry_run:
        if as_json:
            print_json(to_jsonable_python(forecasts))
        print_message("Dry run: nothing was sent or written.")
        return
    measured = _measure_audits(paper, options, configs, storage)
    cells, departures = join_figures(paper, options.table_id, measured, own_by_published)
    notes = [
        *([SMALL_FORM_NOTE] if options.is_small else []),
        *map(mark_code, describe_data(paper.experiment, options, [audit.name for audit in measured])),
        *_describe_audits(measured),
    ]
    document = build_run_document(paper.title, paper.source, cells, departures, notes, _list_sections(measured))
    present_document(to_jsonable_python({"cells": cells, "departures": departures}), document, output, as_json)


def _measure_audits(
    paper: Paper, options: ReplicationOptions, configs: Mapping[str, AuditConfig], storage: str | None
) -> list[MeasuredAudit]:
    """Run the audits and the experiments on them, import people's comparisons, and load all reports."""
    from auditor.cli.experiments import open_progress
    from auditor.cli.run import run_with_progress
    from auditor.experiments.declaration import ExperimentContext
    from auditor.replications.joining import load_measured_audits
    from auditor.replications.people_comparisons import import_people_comparisons
    from auditor.replications.planning import list_data_files, plan_imports, select_runnable_tables
    from auditor.replications.trials import run_trials
    from auditor.run import resolve_storage_url

    assert paper.experiment is not None
    imports = plan_imports(paper, options)
    words = ["replicate", paper.id, *_list_option_words(options)]
    for config in configs.values():
        run_with_progress(config, words, storage, preflight=True, rediscover=False)
    import_people_comparisons(dict(imports.values()), storage, options.limit)
    names = {name: config.name for name, config in configs.items()}
    names |= {name: audit_name for name, (audit_name, _) in imports.items()}
    context = ExperimentContext(storage, open_progress, handles_signals=True)
    tables, files = select_runnable_tables(paper, options.table_id), list_data_files(paper.experiment, options)
    trials = run_trials(paper.experiment, tables, files, names, context)
    return load_measured_audits(resolve_storage_url(storage), names, imports, trials)


def _print_forecasts(forecasts: Mapping[str, CostForecast], asking: Sequence[str]) -> None:
    """Print what each audit costs, and the names of the experiments whose answers are not counted."""
    from auditor.reports.sections.forecast import describe_forecast

    for name, forecast in forecasts.items():
        print_message(f"{name}: {describe_forecast(forecast)}")
    if asking:
        print_message(f"Not counted: further answers for the experiments on these audits ({', '.join(asking)}).")


def _list_asking_experiments(
    paper: Paper, options: ReplicationOptions, configs: Mapping[str, AuditConfig]
) -> list[str]:
    """Names of the experiments on these audits that ask models again."""
    from auditor.replications.planning import list_data_files, select_runnable_tables
    from auditor.replications.trials import list_asking_experiments

    assert paper.experiment is not None
    tables, files = select_runnable_tables(paper, options.table_id), list_data_files(paper.experiment, options)
    return list_asking_experiments(paper.experiment, tables, files, configs)


def _forecast_audits(
    configs: Mapping[str, AuditConfig], options: ReplicationOptions, storage: str | None
) -> dict[str, CostForecast]:
    """Forecast each audit, by its stored name; UsageError if a survey of the paper's settings needs a file."""
    from auditor.cli.estimate import forecast_config
    from auditor.errors import SurveyError, UsageError

    try:
        return {config.name: forecast_config(config, storage) for config in configs.values()}
    except SurveyError as error:
        if not options.is_as_published:
            raise
        raise UsageError(f"--as-published: {error.message}", f"{error.how_to_fix} Name it with --data.") from None


def _list_option_words(options: ReplicationOptions) -> list[str]:
    """The options of the command that resumes the audits."""
    words = ["--small"] if options.is_small else []
    words += ["--models", str(options.models_file)] if options.models_file else []
    words += ["--table", options.table_id] if options.table_id else []
    words += ["--limit", str(options.limit)] if options.limit else []
    words += ["--as-published"] if options.is_as_published else []
    return [
        *words,
        *(word for name, file in options.files.items() for word in ("--data", f"{name}={file}")),
    ]


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
        survey = f" Survey: {report.audit.survey.title}." if is_of_survey else ""
        notes.append(
            f"{audit.name}: audit {report.audit.name} of {pluralize(len(audit.models), 'model')} "
            f"({', '.join(audit.models)}), {cells}{pluralize(cost.calls, 'call')}, "
            f"cost {format_usd(cost.usd, cost.lower_bound)}.{survey}"
        )
    return notes


def _list_sections(measured: Sequence[MeasuredAudit]) -> list[Section]:
    """Sections of the audits' reports that have the figures of each model."""
    from auditor.reports.sections.logic import group_logic_tables
    from auditor.reports.sections.over_models import build_over_models_section
    from auditor.reports.sections.paper_tables import group_model_tables
    from auditor.reports.sections.replication_run import prefix_ids
    from auditor.reports.sections.self_comparisons import build_consistency_section, build_methods_section
    from auditor.reports.sections.semantic import build_semantic_section

    sections = [
        (audit.name, section)
        for audit in measured
        for section in (
            group_model_tables(audit.report),
            build_methods_section(audit.report),
            build_over_models_section(audit.report, cut_offs=audit.name, is_open=True),
            build_consistency_section(audit.report),
            group_logic_tables(audit.report),
            build_semantic_section(audit.report),
        )
    ]
    return [prefix_ids(section, name.lower(), name) for name, section in sections if section is not None]
