"""The command `replicate`: published tables, and the same figures from own audits or from released scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from auditor.cli.options import JsonOption, PageFileOption, StorageOption

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
    typer.Option(
        "--models",
        metavar="FILE",
        help="Run the experiment with the models and judges of a configuration, and its paraphraser and rot_model.",
    ),
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
SampleOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="N",
        min=1,
        help="Ask about only N cells (a country and a topic), questions or sets of items in each audit and experiment.",
    ),
]
LIST = "list"


def replicate(
    paper: PaperArgument,
    table: TableOption = None,
    published: PublishedOption = False,
    recorded: RecordedOption = None,
    models: ModelsOption = None,
    small: SmallOption = False,
    limit: SampleOption = None,
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
    from auditor.cli.replication_run import run_experiment
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
        run_experiment(selected, options, parse_pairs(as_model, "--as"), storage, output, as_json, dry_run=dry_run)


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
