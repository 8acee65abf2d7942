"""Documents of published figures: the list of papers, a paper's tables, and figures recomputed beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from auditor.reports.data.replication import (
    NotRun,
    Origin,
    PublishedCell,
    PublishedTableInfo,
    RecomputedCell,
)
from auditor.reports.document import (
    Block,
    Cell,
    Column,
    Document,
    List,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import pluralize
from auditor.reports.sections.phrasing import mark_code

ORIGINS: dict[Origin, str] = {
    "paper": "the paper",
    "summary": "a summary of the paper, without the cells that it does not quote",
    "release": "the authors' released results",
}
NOT_RUN: dict[NotRun, str] = {
    "not_in_folder": "not run: the folder has no scores of it",
    "not_published": "not run: nothing was published",
    "recorded_only": "not run: computed only from released scores (--recorded FOLDER)",
    "no_audit": "not run: no audit of this survey or data set",
    "no_file": "not run: a file is missing (--data NAME=FILE)",
    "no_counterpart": "not run: no model of yours is set beside it (--as MY=THEIRS)",
    "too_few_models": "not run: too few models",
    "no_value": "not run: the report has no value",
}


COMMANDS = (
    "`auditor replicate PAPER --published` shows the figures; with `--json`, the lines.",
    "`auditor replicate PAPER --models FILE` runs the experiment with your models, as ordinary audits: it can be "
    "stopped and resumed. `--dry-run` shows the calls and their cost, `--small` asks the small model on this machine "
    "about a few cells, in minutes. Each of our figures says whether it is defined as the published one.",
    "`auditor replicate PAPER --recorded FOLDER` computes figures again from scores that the authors released. "
    "Download them first. No model is asked. The scores become audits, so that every report can be made of them.",
)
"""What the command does, with code between backticks."""


def build_paper_list_document(tables: Sequence[PublishedTableInfo], needs: Sequence[tuple[str, str, str]]) -> Document:
    """Build the list of papers and their tables.

    Args:
        needs: of each paper with an experiment: its name, what the user provides, and the calls of one model.
    """
    rows = [
        (
            Name(info.paper), info.table, info.title, ORIGINS[info.origin], info.n_cells, info.n_run or None,
            ", ".join(info.released) or None,
        )
        for info in tables
    ]  # fmt: skip
    columns = (
        Column("paper", "name"), Column("table"), Column("what it shows"), Column("read from"),
        Column("figures", "number"), Column("run by the command", "number"), Column("released scores"),
    )  # fmt: skip
    caption = "Published tables, and the files with their released scores."
    table = Table("papers", "published tables", caption, columns, rows)
    experiments: list[Text] = [
        [Name(paper), *mark_code(f": needs {need}. Cost {cost}.")] for paper, need, cost in needs
    ]
    sections = [Section("papers", "Papers", [table]), Section("experiments", "Experiments", [List(experiments)])]
    lead = "The program knows these tables of papers, and the line of the source from which each figure was read."
    misprints = "Values are never corrected. A misprint keeps its characters, and a note says what is odd."
    opening: list[Block] = [Paragraph(lead, "lead"), List([mark_code(text) for text in COMMANDS]), Paragraph(misprints)]
    return Document("Replications", "Published tables", "", sections, opening)


def build_published_document(title: str, source: str, cells: Sequence[PublishedCell]) -> Document:
    """Build the document of a paper's published figures, one section for each table."""
    sections = [
        _build_table_section(table_cells[0], [(cell.row, cell.column, cell.printed) for cell in table_cells], (), cells)
        for table_cells in _group_by_table(cells)
    ]
    return Document("Replications", title, "", sections, [Paragraph(f"Published in {source}.")])


def build_recomputed_document(
    title: str, source: str, cells: Sequence[RecomputedCell], audits: Sequence[str]
) -> Document:
    """Build the document of published figures with recomputed ones beside them."""
    published = [cell.published for cell in cells]
    by_key = {(cell.published.table, cell.published.row, cell.published.column): cell for cell in cells}
    own_columns = (
        Column("ours", "estimate", digits=4),
        Column("difference", "number", digits=4),
        Column("remark"),
    )
    sections = []
    for table_cells in _group_by_table(published):
        rows = [
            (cell.row, cell.column, cell.printed, *_own_cells(by_key[cell.table, cell.row, cell.column]))
            for cell in table_cells
        ]
        sections.append(_build_table_section(table_cells[0], rows, own_columns, published))
    summary = [Paragraph(_summarize(cells), "lead"), Paragraph(f"Published in {source}. {_name_audits(audits)}")]
    return Document("Replications", title, "", sections, summary)


def _own_cells(cell: RecomputedCell) -> tuple[Cell, ...]:
    """Our estimate, its difference from the published figure, and why there is none."""
    return (cell.recomputed, cell.difference, None if cell.not_run is None else NOT_RUN[cell.not_run])


def _summarize(cells: Sequence[RecomputedCell]) -> str:
    """Say how many figures were computed again, and how far they are from the published ones."""
    differences = [abs(cell.difference) for cell in cells if cell.difference is not None]
    if not differences:
        return f"None of {pluralize(len(cells), 'published figure')} was computed again."
    largest = max(differences)
    distance = "all are equal to 9 decimals" if largest < 1e-9 else f"the largest difference is {largest:.2g}"
    return f"{len(differences)} of {pluralize(len(cells), 'published figure')} computed again: {distance}."


def _name_audits(audits: Sequence[str]) -> str:
    """Say where the scores are now."""
    return f"The scores are now audits: {', '.join(audits)}." if audits else ""


def _group_by_table(cells: Sequence[PublishedCell]) -> Iterator[list[PublishedCell]]:
    for _, group in groupby(cells, key=lambda cell: cell.table):
        yield list(group)


def _build_table_section(
    first: PublishedCell, rows: Sequence[Sequence[Cell]], own_columns: Sequence[Column], cells: Sequence[PublishedCell]
) -> Section:
    """Build the section of one table of published figures, with further columns beside them."""
    columns = (Column("row", "name"), Column("figure"), Column("published"), *own_columns)
    return build_table_of_figures(first, rows, columns, cells)


def _name_table(table: str) -> str:
    """The name of a paper's table or figure in the contents: `Table 1`, `Figure 4`, or a word such as `Variance`."""
    if table.startswith("figure-"):
        return table.replace("figure-", "Figure ")
    return f"Table {table}" if table.isdigit() else table.capitalize()


def describe_table(cell: PublishedCell) -> str:
    """What the table of a cell shows, and what its columns mean."""
    return f"{cell.title}. {cell.table_note}".strip()


def build_table_of_figures(
    first: PublishedCell, rows: Sequence[Sequence[Cell]], columns: Sequence[Column], cells: Sequence[PublishedCell]
) -> Section:
    """Build the section of one table: its figures, and the notes on its rows."""
    name = _name_table(first.table)
    is_numbered = name != first.table.capitalize()
    caption = describe_table(first) if is_numbered else first.table_note
    caption = f"{caption} Source: {first.place}, read from {ORIGINS[first.origin]}.".lstrip()
    blocks: list[Block] = [Table(f"table-{first.table}", name, caption, columns, rows)]
    notes = {cell.row: cell.note for cell in cells if cell.table == first.table and cell.note}
    if notes:
        items: list[Text] = [f"{row}: {note}" for row, note in notes.items()]
        blocks.append(List(items))
    return Section(f"published-{first.table}", name if is_numbered else first.title, blocks, name)
