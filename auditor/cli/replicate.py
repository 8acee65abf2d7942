"""The command `replicate`: published tables, and the same figures from released scores."""

from __future__ import annotations

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
LIST = "list"


def replicate(
    paper: PaperArgument,
    table: TableOption = None,
    published: PublishedOption = False,
    recorded: RecordedOption = None,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the published tables of a paper, or recompute them.

    --recorded reads the scores that a paper's authors released, from your download. The scores become audits without
    asking any model. The output shows the published figures next to those of auditor, with 95% CIs.

    Example: auditor replicate evalmoraal --table log-probability --recorded cultural-moral-judgments-llms/data
    """
    from pydantic_core import to_jsonable_python

    from auditor.cli.page_output import present_document, resolve_page_format
    from auditor.errors import UsageError
    from auditor.replications.comparison import list_published_tables, recompute_tables
    from auditor.replications.presets import load_paper
    from auditor.reports.sections import replication

    resolve_page_format(output)
    if paper == LIST:
        tables = list_published_tables()
        document = replication.build_paper_list_document(tables)
        present_document(to_jsonable_python(tables), document, output, as_json)
        return
    selected = load_paper(paper)
    if published == (recorded is not None):
        raise UsageError("What should be shown?", "Add either --published or --recorded FOLDER.")
    if recorded is None:
        cells = list(selected.iterate_cells(table))
        document = replication.build_published_document(selected.title, selected.source, cells)
        present_document(to_jsonable_python(cells), document, output, as_json)
        return
    recomputed, audits = recompute_tables(selected, table, recorded, storage)
    document = replication.build_recomputed_document(selected.title, selected.source, recomputed, audits)
    present_document(to_jsonable_python(recomputed), document, output, as_json)
