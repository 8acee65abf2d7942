"""The command `replicate`: published tables, and the same figures from own audits or from released scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeAlias

import typer
from pydantic_core import to_jsonable_python

from auditor.cli.estimate import forecast_config
from auditor.cli.experiments import open_progress
from auditor.cli.run import run_with_progress
from auditor.console.options import JsonOption, StorageOption, output_file
from auditor.console.output import list_called_words, print_json, print_message
from auditor.console.page_output import present_document, resolve_page_format
from auditor.errors import UsageError
from auditor.experiments.stored_audit import ExperimentContext
from auditor.probes.logic.section import group_logic_tables
from auditor.probes.semantic.experiments.sections import build_trial_sections
from auditor.probes.semantic.section import build_semantic_section
from auditor.replications.findings import check_findings
from auditor.replications.full_form import describe_data, describe_files, identify_file
from auditor.replications.joining import join_figures, load_measured_audits
from auditor.replications.paper_files import (
    add_published_rows,
    check_paper,
    find_paper,
    list_figure_names,
    list_published_tables,
)
from auditor.replications.planning import (
    ReplicationOptions,
    apply_options,
    list_data_files,
    list_ignored_settings,
    match_models,
    plan_audits,
    plan_imports,
    select_runnable_tables,
    split_named_models,
)
from auditor.replications.recorded import recompute_tables
from auditor.reports.document import Callout, List, Paragraph
from auditor.reports.number_format import format_usd, pluralize
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.forecast import describe_forecast
from auditor.reports.sections.over_models import build_over_models_section
from auditor.reports.sections.paper_tables import group_model_tables
from auditor.reports.sections.phrasing import mark_code
from auditor.reports.sections.provenance import build_simulation_note, label_kind
from auditor.reports.sections.replication import (
    build_check_document,
    build_figure_list_document,
    build_figures_table,
    build_paper_list_document,
    build_published_document,
)
from auditor.reports.sections.replication_run import (
    SMALL_FORM_NOTE,
    Replication,
    build_recorded_document,
    build_replication_document,
    prefix_ids,
)
from auditor.reports.sections.self_comparisons import build_consistency_section, build_methods_section
from auditor.run import finish_audit, resolve_storage_url, store_audit
from auditor.surveys import builtin_surveys

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.replications.definitions import MeasuredAudit
    from auditor.replications.presets import Paper
    from auditor.replications.trials import AuditPlan
    from auditor.reports.data.cost import CostForecast
    from auditor.reports.data.replication import Departure, RecomputedCell
    from auditor.reports.document import Section, Text


def forecast_audits(
    configs: Mapping[str, AuditConfig], plans: Mapping[str, AuditPlan], storage: str | None
) -> dict[str, CostForecast]:
    """Forecast each audit that asks models, with the experiments on it, by its stored name.

    Args:
        configs, plans: by name of the survey or data set.
    """
    return {
        configs[name].name: forecast_config(configs[name], storage, plan.calls, is_asked=plan.is_asked)
        for name, plan in plans.items()
        if plan.is_asked or plan.calls
    }


def print_forecasts(
    configs: Mapping[str, AuditConfig], plans: Mapping[str, AuditPlan], forecasts: Mapping[str, CostForecast]
) -> None:
    """Print what each audit costs with the experiments on it, which are named."""
    for name, plan in plans.items():
        audit_name = configs[name].name
        if audit_name not in forecasts:
            print_message(f"{audit_name}: no calls; the data of its tables are not at hand.")
            continue
        message = f"{audit_name}: {describe_forecast(forecasts[audit_name])}"
        if plan.calls:
            listed = ", ".join(plan.asking_trials)
            subject = "These include" if plan.is_asked else "All are"
            message += f" {subject} calls of the experiments on it ({listed})."
        print_message(message)


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
    from auditor.replications.trials import QUESTIONS_KEY

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
    assert paper.experiment is not None  # it has audits
    names = [audit.name for audit in measured]
    is_simulated = any(audit.report.audit.simulated for audit in measured)
    notes: list[Text] = [
        *([SMALL_FORM_NOTE] if options.is_small else []),
        *map(mark_code, describe_data(paper.experiment, options, names)),
        *([f"--as-published: {paper.experiment.as_published_note}"] if options.is_as_published else []),
    ]
    files = describe_files(paper.experiment, options, names)
    cautions = [f"{audit.name}: {caution}" for audit in measured for caution in list_cautions(audit.report)]
    return Replication(
        paper.title,
        paper.source,
        cells,
        departures,
        layouts={table.id: table.layout for table in paper.tables},
        notes=notes,
        details=[*_describe_audits(measured), *files],
        callouts=[
            *build_simulation_note(is_simulated=is_simulated),
            *([Callout("Reasons for caution", [List(cautions), Paragraph(CAUTIONS_NOTE)])] if cautions else []),
        ],
        appended=_list_sections(measured),
        kind=label_kind("Replication", is_simulated=is_simulated),
    )


def _plan_trials(paper: Paper, options: ReplicationOptions, configs: Mapping[str, AuditConfig]) -> dict[str, AuditPlan]:
    """Plan the experiments on the audits, and read their files; AuditorError if one cannot be used."""
    from auditor.replications.trials import plan_trials

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
    from auditor.replications.trials import import_people_comparisons, run_trials

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
    notes: list[Text] = []
    for audit in measured:
        report = audit.report
        if audit.stored_config is None:
            notes.append(f"{audit.name}: audit {report.audit.name} of people's comparisons; no model was asked.")
            continue
        cost = report.cost.total
        is_of_survey = audit.config.survey is not None
        cells = f"{pluralize(report.audit.survey.asked, 'cell')}, " if is_of_survey else ""
        survey = (
            f" Survey: {report.audit.survey.survey.title}. {report.audit.survey.survey.source}" if is_of_survey else ""
        )
        notes.append(
            f"{audit.name}: audit {report.audit.name} of {pluralize(len(audit.models), 'model')} "
            f"({', '.join(audit.models)}), {cells}{pluralize(cost.sums.calls, 'call')}, "
            f"cost {format_usd(cost.usd, cost.lower_bound)}.{survey}"
        )
    return notes


def _list_sections(measured: Sequence[MeasuredAudit]) -> list[Section]:
    """Sections of the audits' reports that have the figures of each model."""
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


PaperArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="PAPER",
        help="The paper: evalmoraal, sage, sge, logic, consistency, or a preset of yours (FILE.toml). `list` lists the "
        "papers and their tables, `figures` the names of figures for a preset, `check FILE.toml` checks a preset.",
    ),
]
PresetArgument: TypeAlias = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="With `check`: the preset.", show_default=False)
]
AddPublishedOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--add-published",
        metavar="FILE",
        help="Add published rows from a CSV file with table, row, column, value and perhaps quote, model, place, note.",
    ),
]
TableOption: TypeAlias = Annotated[
    str | None, typer.Option("--table", metavar="T", help="Show only this table; by default all.")
]
PublishedOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--published", help="Print the published figures, each with the line of the paper that it was read from."
    ),
]
RecordedOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--recorded", metavar="FOLDER", help="Compute figures again from scores that the authors released."),
]
ModelsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--models",
        metavar="FILE",
        help="Run the experiment with the models, judges, limits, paraphraser, rot_model and encoders of a file.",
    ),
]
SmallOption: TypeAlias = Annotated[
    bool, typer.Option("--small", help="Run a few cells with the small model on this machine, in minutes.")
]
AsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="MY=THEIRS",
        help="Set a model of yours beside a published one. THEIRS=PROVIDER/MODEL asks a model that is in no file, such "
        "as repaired=hosted_vllm/my/tuned. May be repeated.",
    ),
]
DataOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--data", metavar="NAME=FILE", help="File of a survey or data set, such as WVS=wvs7.csv; may be repeated."
    ),
]
AsPublishedOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--as-published",
        help="Use settings of the paper that lose information (evalmoraal: missing answers count as 0) or need a "
        "download (sage: weights of its encoders).",
    ),
]
DryRunOption: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Show the audits, their calls and their cost; send and write nothing.")
]
OutputOption: TypeAlias = Annotated[
    Path | None,
    output_file("Write the result as a page to this file (.html, .md or .txt), or all figures as a table (.csv)."),
]
SampleOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="N",
        min=1,
        help="Ask about only N cells (a country and a topic), questions or sets of items in each audit and experiment.",
    ),
]
LIST, FIGURES, CHECK = "list", "figures", "check"


def replicate(
    paper: PaperArgument,
    preset: PresetArgument = None,
    table: TableOption = None,
    published: PublishedOption = False,
    recorded: RecordedOption = None,
    models: ModelsOption = None,
    add_published: AddPublishedOption = None,
    small: SmallOption = False,
    limit: SampleOption = None,
    as_model: AsOption = None,
    data: DataOption = None,
    as_published: AsPublishedOption = False,
    dry_run: DryRunOption = False,
    output: OutputOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set the figures of a paper's tables beside your own.

    --models or --small runs the experiment as ordinary audits: the same command resumes them, and recorded answers are
    never requested again. --recorded reads scores that authors released, from your download; no model is asked.

    Example: auditor replicate evalmoraal --small
    """
    resolve_page_format(output, allows_csv=not (published or paper in (LIST, FIGURES, CHECK)))
    modes = {"--published": published, "--recorded": bool(recorded), "--models": bool(models), "--small": small}
    options_of_runs = {
        "--limit": bool(limit), "--as": bool(as_model), "--data": bool(data), "--as-published": as_published,
        "--dry-run": dry_run,
    }  # fmt: skip
    if (preset is not None) != (paper == CHECK):
        raise_for_preset(paper, preset)
    if paper in (LIST, FIGURES, CHECK):
        others = {"--table": bool(table), "--add-published": bool(add_published)}
        refuse_unused(f"`replicate {paper}`", others | modes | options_of_runs)
        return show_check(preset, output, as_json) if preset else show_list(paper, output, as_json)
    selected = find_paper(paper)
    if add_published is not None:
        selected = add_published_rows(selected, add_published)
    selected.select_tables(table)
    check_mode(modes, options_of_runs)
    if published:
        return show_published(selected, table, output, as_json)
    if recorded is not None:
        return show_recorded(selected, table, recorded, storage, output, as_json)

    files = dict(parse_pairs(data, "--data"))
    named, pairs = split_named_models(selected, parse_pairs(as_model, "--as"))
    options = ReplicationOptions(table, small, limit, models, files, as_published, named)
    run_experiment(selected, options, pairs, storage, output, as_json, dry_run=dry_run)


def raise_for_preset(paper: str, preset: Path | None) -> NoReturn:
    """Raise UsageError for a second argument without `check`, or for `check` without one."""
    if preset is None:
        raise UsageError("`replicate check` needs a file.", "Name the preset: auditor replicate check FILE.toml")
    raise UsageError(f"'{preset}' is one argument too many.", f"To check a preset: auditor replicate {CHECK} FILE.toml")


def show_list(list_name: str, output: Path | None, as_json: bool) -> None:
    """Show the papers with their tables, or the names of figures."""
    if list_name == FIGURES:
        names = list_figure_names()
        present_document(to_jsonable_python(names), build_figure_list_document(names), output, as_json)
    else:
        tables = list_published_tables()
        present_document(to_jsonable_python(tables), build_paper_list_document(tables), output, as_json)


def show_check(preset: Path, output: Path | None, as_json: bool) -> None:
    """Show what is wrong in a preset; exit code 1 if anything is."""
    check = check_paper(preset)
    present_document(to_jsonable_python(check), build_check_document(check), output, as_json)
    if check.problems:
        raise typer.Exit(1)


def show_published(paper: Paper, table: str | None, output: Path | None, as_json: bool) -> None:
    """Show the published figures of a paper."""
    cells = list(paper.iterate_cells(table))
    document = build_published_document(paper.title, paper.source, cells)
    present_document(to_jsonable_python(cells), document, output, as_json)


def show_recorded(
    paper: Paper, table: str | None, folder: Path, storage: str | None, output: Path | None, as_json: bool
) -> None:
    """Show figures of released scores beside the published ones."""
    recorded = recompute_tables(paper, table, folder, storage)
    files = list(map(identify_file, recorded.files))
    document = build_recorded_document(
        paper.title, paper.source, recorded.cells, recorded.departures, recorded.audits, files
    )
    figures = build_figures_table(recorded.cells)
    data = {"cells": recorded.cells, "departures": recorded.departures}
    present_document(to_jsonable_python(data), document, output, as_json, figures)


def check_mode(modes: Mapping[str, bool], options_of_runs: Mapping[str, bool]) -> None:
    """Require one option that says what is shown, or data where no model is needed; no option without an effect.

    Raises:
        UsageError: there is none or several, or an option has no effect.
    """
    chosen = [name for name, is_chosen in modes.items() if is_chosen]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} cannot be combined.", "Use one of them.")
    if not chosen and not options_of_runs["--data"]:
        raise UsageError(
            "What should be shown?", "Add one of --published, --recorded FOLDER, --models FILE and --small."
        )
    if chosen and chosen[0] in ("--published", "--recorded"):
        refuse_unused(chosen[0], options_of_runs)


def refuse_unused(mode: str, options: Mapping[str, bool]) -> None:
    """Raise UsageError if an option is given that has no effect."""
    if unused := [name for name, is_given in options.items() if is_given]:
        raise UsageError(f"{', '.join(unused)}: no effect with {mode}.", "Leave it out.")


def parse_pairs(texts: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Parse the values `A=B` of an option; UsageError for another form, or the same value twice.

    An A may have several B only for --as: a model of ours may be set beside several published ones.
    """
    pairs: list[tuple[str, str]] = []
    for text in texts or ():
        left, separator, right = text.partition("=")
        if not (left and separator and right):
            raise UsageError(f"{option}: '{text}' has another form.", f"Write it as {option} A=B.")
        if (left, right) in pairs or (option != "--as" and left in dict(pairs)):
            raise UsageError(f"{option}: '{left}' is given twice.", "Give it once.")
        pairs.append((left, right))
    return pairs
