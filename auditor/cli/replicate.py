"""The command `replicate`: published tables, and the same figures from own audits or from released scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from auditor.cli.options import JsonOption, LimitOption, PageFileOption, StorageOption
from auditor.cli.output import print_json, print_message

if TYPE_CHECKING:
    from auditor.replications.definitions import MeasuredAudit
    from auditor.replications.planning import ReplicationOptions
    from auditor.replications.presets import Paper
    from auditor.reports.document import Section, Text

PaperArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="PAPER", help="The paper: evalmoraal, sage, sge, logic or consistency; `list` lists their tables."
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
    typer.Option("--models", metavar="FILE", help="Run the experiment with the models and judges of a configuration."),
]
SmallOption: TypeAlias = Annotated[
    bool, typer.Option("--small", help="Run a few cells with the small model on this machine, in minutes.")
]
AsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--as", metavar="MY=THEIRS", help="Set a model of yours beside a published one; may be repeated."),
]
DataOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--data", metavar="NAME=FILE", help="File of a survey or data set, such as WVS=wvs7.csv; may be repeated."
    ),
]
AsPublishedOption: TypeAlias = Annotated[
    bool, typer.Option("--as-published", help="Treat missing survey answers as the paper did, such as counting them 0.")
]
DryRunOption: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Show the audits, their calls and their cost; send and write nothing.")
]
LIST = "list"


def replicate(
    paper: PaperArgument,
    table: TableOption = None,
    published: PublishedOption = False,
    recorded: RecordedOption = None,
    models: ModelsOption = None,
    small: SmallOption = False,
    limit: LimitOption = None,
    as_model: AsOption = None,
    data: DataOption = None,
    as_published: AsPublishedOption = False,
    dry_run: DryRunOption = False,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set the figures of a paper's tables beside your own.

    --models or --small runs the experiment as ordinary audits, one for each survey or data set: the same command
    resumes them, and recorded answers are never requested again. Each of our figures says whether it is defined as the
    published one.
    --recorded reads the scores that a paper's authors released, from your download; no model is asked.

    Example: auditor replicate evalmoraal --small
    """
    from pydantic_core import to_jsonable_python

    from auditor.cli.page_output import present_document, resolve_page_format
    from auditor.replications.comparison import list_experiments, list_published_tables, recompute_tables
    from auditor.replications.planning import ReplicationOptions
    from auditor.replications.presets import load_paper
    from auditor.reports.sections import replication

    resolve_page_format(output)
    modes = {"--published": published, "--recorded": bool(recorded), "--models": bool(models), "--small": small}
    options_of_runs = {
        "--limit": bool(limit), "--as": bool(as_model), "--data": bool(data), "--as-published": as_published,
        "--dry-run": dry_run,
    }  # fmt: skip
    if paper == LIST:
        refuse_unused(f"`replicate {LIST}`", {"--table": bool(table)} | modes | options_of_runs)
        tables = list_published_tables()
        document = replication.build_paper_list_document(tables, list_experiments())
        present_document(to_jsonable_python(tables), document, output, as_json)
        return
    selected = load_paper(paper)
    mode = select_mode(modes, has_data=bool(data))
    if mode in ("--published", "--recorded"):
        refuse_unused(mode, options_of_runs)
    if published:
        cells = list(selected.iterate_cells(table))
        document = replication.build_published_document(selected.title, selected.source, cells)
        present_document(to_jsonable_python(cells), document, output, as_json)
    elif recorded is not None:
        recomputed, audits = recompute_tables(selected, table, recorded, storage)
        document = replication.build_recomputed_document(selected.title, selected.source, recomputed, audits)
        present_document(to_jsonable_python(recomputed), document, output, as_json)
    else:
        options = ReplicationOptions(
            table, small, limit, models, parse_pairs(data, "--data"), is_as_published=as_published
        )
        _run_experiment(selected, options, parse_pairs(as_model, "--as"), storage, output, as_json, dry_run=dry_run)


def select_mode(modes: Mapping[str, bool], *, has_data: bool) -> str:
    """The option that says what is shown; `--data` where no model is needed. UsageError for none or several."""
    from auditor.errors import UsageError

    chosen = [name for name, is_chosen in modes.items() if is_chosen]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} cannot be combined.", "Use one of them.")
    if not chosen and not has_data:
        raise UsageError(
            "What should be shown?", "Add one of --published, --recorded FOLDER, --models FILE and --small."
        )
    return chosen[0] if chosen else "--data"


def refuse_unused(mode: str, options: Mapping[str, bool]) -> None:
    """Raise UsageError if an option is given that has no effect."""
    from auditor.errors import UsageError

    if unused := [name for name, is_given in options.items() if is_given]:
        raise UsageError(f"{', '.join(unused)}: no effect with {mode}.", "Leave it out.")


def parse_pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Parse the values `A=B` of an option; UsageError for another form, or an A that occurs twice."""
    from auditor.errors import UsageError

    pairs: dict[str, str] = {}
    for text in texts or ():
        left, separator, right = text.partition("=")
        if not (left and separator and right):
            raise UsageError(f"{option}: '{text}' has another form.", f"Write it as {option} A=B.")
        if left in pairs:
            raise UsageError(f"{option}: '{left}' is given twice.", "Give it once.")
        pairs[left] = right
    return pairs


def _run_experiment(
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

    from auditor.cli.estimate import forecast_config
    from auditor.cli.experiments import open_progress
    from auditor.cli.page_output import present_document
    from auditor.cli.run import run_with_progress
    from auditor.errors import SurveyError, UsageError
    from auditor.experiments.declaration import ExperimentContext
    from auditor.replications.data_notes import describe_data
    from auditor.replications.joining import join_figures, load_measured_audits, match_models
    from auditor.replications.people_comparisons import import_people_comparisons
    from auditor.replications.planning import list_data_files, plan_audits, plan_imports, select_runnable_tables
    from auditor.replications.trials import run_trials
    from auditor.reports.sections.forecast import describe_forecast
    from auditor.reports.sections.replication_run import SMALL_FORM_NOTE, build_run_document
    from auditor.run import resolve_storage_url

    configs, imports = plan_audits(paper, options), plan_imports(paper, options)
    audited = [model.name for config in [*configs.values()][:1] for model in config.models]
    own_by_published = match_models(paper, audited, own_models)
    try:
        forecasts = {config.name: forecast_config(config, storage) for config in configs.values()}
    except SurveyError as error:
        if not options.is_as_published:
            raise
        raise UsageError(f"--as-published: {error.message}", f"{error.how_to_fix} Name it with --data.") from None
    for name, forecast in forecasts.items():
        print_message(f"{name}: {describe_forecast(forecast)}")
    if dry_run:
        if as_json:
            print_json(to_jsonable_python(forecasts))
        print_message("Dry run: nothing was sent or written.")
        return
    words = ["replicate", paper.id, *_list_option_words(options)]
    for config in configs.values():
        run_with_progress(config, words, storage, preflight=True, rediscover=False)
    import_people_comparisons(dict(imports.values()), storage)
    names = {name: config.name for name, config in configs.items()}
    names |= {name: audit_name for name, (audit_name, _) in imports.items()}
    measured = load_measured_audits(resolve_storage_url(storage), names, imports)
    context = ExperimentContext(storage, open_progress, handles_signals=True)
    assert paper.experiment is not None  # it has audits
    tables = select_runnable_tables(paper, options.table_id)
    measured = run_trials(paper.experiment, tables, list_data_files(paper.experiment, options), measured, context)
    cells, departures = join_figures(paper, options.table_id, measured, own_by_published)
    notes = [
        *([SMALL_FORM_NOTE] if options.is_small else []),
        *describe_data(paper.experiment, options, names),
        *_describe_audits(measured),
    ]
    document = build_run_document(paper.title, paper.source, cells, departures, notes, _list_sections(measured))
    present_document(to_jsonable_python({"cells": cells, "departures": departures}), document, output, as_json)


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
