"""The command `replicate`: published tables, and the same figures from own audits or from released scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeAlias

import typer

from auditor.console.options import JsonOption, StorageOption, output_file

if TYPE_CHECKING:
    from auditor.replications.presets import Paper

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
    from auditor.console.page_output import resolve_page_format
    from auditor.replications.paper_files import add_published_rows, find_paper

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
    from auditor.cli.replication_run import run_experiment
    from auditor.replications.model_matching import split_named_models
    from auditor.replications.planning import ReplicationOptions

    files = dict(parse_pairs(data, "--data"))
    named, pairs = split_named_models(selected, parse_pairs(as_model, "--as"))
    options = ReplicationOptions(table, small, limit, models, files, as_published, named)
    run_experiment(selected, options, pairs, storage, output, as_json, dry_run=dry_run)


def raise_for_preset(paper: str, preset: Path | None) -> NoReturn:
    """Raise UsageError for a second argument without `check`, or for `check` without one."""
    from auditor.errors import UsageError

    if preset is None:
        raise UsageError("`replicate check` needs a file.", "Name the preset: auditor replicate check FILE.toml")
    raise UsageError(f"'{preset}' is one argument too many.", f"To check a preset: auditor replicate {CHECK} FILE.toml")


def show_list(list_name: str, output: Path | None, as_json: bool) -> None:
    """Show the papers with their tables, or the names of figures."""
    from pydantic_core import to_jsonable_python

    from auditor.console.page_output import present_document
    from auditor.replications.paper_list import list_figure_names, list_published_tables
    from auditor.reports.sections.replication import build_figure_list_document, build_paper_list_document

    if list_name == FIGURES:
        names = list_figure_names()
        present_document(to_jsonable_python(names), build_figure_list_document(names), output, as_json)
    else:
        tables = list_published_tables()
        present_document(to_jsonable_python(tables), build_paper_list_document(tables), output, as_json)


def show_check(preset: Path, output: Path | None, as_json: bool) -> None:
    """Show what is wrong in a preset; exit code 1 if anything is."""
    from pydantic_core import to_jsonable_python

    from auditor.console.page_output import present_document
    from auditor.replications.paper_files import check_paper
    from auditor.reports.sections.replication import build_check_document

    check = check_paper(preset)
    present_document(to_jsonable_python(check), build_check_document(check), output, as_json)
    if check.problems:
        raise typer.Exit(1)


def show_published(paper: Paper, table: str | None, output: Path | None, as_json: bool) -> None:
    """Show the published figures of a paper."""
    from pydantic_core import to_jsonable_python

    from auditor.console.page_output import present_document
    from auditor.reports.sections.replication import build_published_document

    cells = list(paper.iterate_cells(table))
    document = build_published_document(paper.title, paper.source, cells)
    present_document(to_jsonable_python(cells), document, output, as_json)


def show_recorded(
    paper: Paper, table: str | None, folder: Path, storage: str | None, output: Path | None, as_json: bool
) -> None:
    """Show figures of released scores beside the published ones."""
    from pydantic_core import to_jsonable_python

    from auditor.console.page_output import present_document
    from auditor.replications.data_notes import identify_file
    from auditor.replications.recorded import recompute_tables
    from auditor.reports.sections.recorded import build_recorded_document
    from auditor.reports.sections.replication_table import build_figures_table

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
    from auditor.errors import UsageError

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
    from auditor.errors import UsageError

    if unused := [name for name, is_given in options.items() if is_given]:
        raise UsageError(f"{', '.join(unused)}: no effect with {mode}.", "Leave it out.")


def parse_pairs(texts: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Parse the values `A=B` of an option; UsageError for another form, or the same value twice.

    An A may have several B only for --as: a model of ours may be set beside several published ones.
    """
    from auditor.errors import UsageError

    pairs: list[tuple[str, str]] = []
    for text in texts or ():
        left, separator, right = text.partition("=")
        if not (left and separator and right):
            raise UsageError(f"{option}: '{text}' has another form.", f"Write it as {option} A=B.")
        if (left, right) in pairs or (option != "--as" and left in dict(pairs)):
            raise UsageError(f"{option}: '{left}' is given twice.", "Give it once.")
        pairs.append((left, right))
    return pairs
