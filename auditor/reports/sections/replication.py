"""Documents of published figures: the list of papers, and a paper's tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from auditor.reports.data.replication import FigureName, Origin, PaperCheck, PublishedCell, PublishedTableInfo
from auditor.reports.document import (
    Block,
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
    "readme": "the README of the authors' program",
    "user": "your file",
}
COMMANDS = (
    "`auditor replicate PAPER --published` shows the figures; with `--json`, the lines.",
    "`auditor replicate PAPER --models FILE` runs the experiment with your models, as ordinary audits within "
    "`limits.budget_usd` of FILE each. `--dry-run` shows the cost, `--small` asks the small model on this machine. The "
    "findings of the paper lead: each holds on your data, does not, or cannot be compared.",
    "`auditor replicate PAPER --recorded FOLDER` computes figures again from scores that the authors released, as "
    "audits, without a model. Download them first.",
)
"""What the command does, with code between backticks."""


def build_paper_list_document(tables: Sequence[PublishedTableInfo]) -> Document:
    """Build the list of papers and their tables, with what each experiment needs and costs."""
    rows = [
        (
            Name(info.paper), info.table, info.title, info.n_cells, info.n_run or None,
            ", ".join(info.released) or None,
        )
        for info in tables
    ]  # fmt: skip
    columns = (
        Column("paper", "name"), Column("table"), Column("what it shows"),
        Column("figures", "number"), Column("run by the command", "number"), Column("released scores"),
    )  # fmt: skip
    caption = "Published tables, and the files with their released scores."
    table = Table("papers", "published tables", caption, columns, rows)
    experiments: list[Text] = [
        [Name(info.paper), *mark_code(f": needs {info.needs}. Cost {info.cost}.")]
        for info in {info.paper: info for info in tables if info.needs}.values()
    ]
    sections = [Section("papers", "Papers", [table]), Section("experiments", "Experiments", [List(experiments)])]
    lead = "The program knows these tables of papers, and the line from which each figure was read."
    misprints = "Values are never corrected: a note says what is odd."
    opening: list[Block] = [Paragraph(lead, "lead"), List([mark_code(text) for text in COMMANDS]), Paragraph(misprints)]
    return Document("Replications", "Published tables", "", sections, opening)


FIGURE_KEYS = {
    "model_figure": "Of one model: a row of the table names the model.",
    "figure": "Over all models.",
    "group_figure": "Of one model by group, such as by country, in a table without published figures.",
}


NAME_COLUMNS = (Column("name", "name"), Column("what it is"))


def build_figure_list_document(names: Sequence[FigureName]) -> Document:
    """Build the list of names that the figures of a preset may have."""
    sections = [
        Section(
            key,
            key,
            [Table(f"names-{key}", key, title, NAME_COLUMNS, [[n.name, n.meaning] for n in names if n.key == key])],
        )
        for key, title in FIGURE_KEYS.items()
    ]
    lead = "A figure of a preset may have these names, each under its key."
    return Document("Replications", "Names of figures", "", sections, [Paragraph(lead, "lead")])


def build_check_document(check: PaperCheck) -> Document:
    """Build the result of the check of a preset."""
    title = f"{check.title} ({check.file})"
    counts = f"{pluralize(check.tables, 'table')}, {pluralize(check.published, 'published figure')}"
    lead = f"{pluralize(len(check.problems), 'problem')} found." if check.problems else f"No problem found: {counts}."
    opening: list[Block] = [Paragraph(lead, "lead")]
    if check.problems:
        opening.append(List([mark_code(problem) for problem in check.problems]))
    return Document("Replications", title, "", [], opening)


def build_published_document(title: str, source: str, cells: Sequence[PublishedCell]) -> Document:
    """Build the document of a paper's published figures, one section for each table."""
    sections = [_build_published_section(list(group)) for _, group in groupby(cells, key=lambda cell: cell.table)]
    return Document("Replications", title, "", sections, [Paragraph(f"Source: {source}.")])


def _build_published_section(cells: Sequence[PublishedCell]) -> Section:
    """Build the section of one table as the paper prints it."""
    first = cells[0]
    names = list(dict.fromkeys(cell.column for cell in cells))
    printed: dict[str, dict[str, str]] = {}
    for cell in cells:
        printed.setdefault(cell.row, {})[cell.column] = cell.printed
    rows = [(row, *(of_row.get(name) or None for name in names)) for row, of_row in printed.items()]
    columns = (Column("", "name", "row"), *map(Column, names))
    table = Table(f"table-{first.table}", name_table(first), describe_table(first), columns, rows)
    return Section(f"published-{first.table}", title_table(first), [table, *list_notes(cells)], title_table(first))


def name_table(cell: PublishedCell) -> str:
    """The name of a paper's table or figure: `Table 1`, `Figure 4`; its title where the paper has no number for it."""
    if cell.table.startswith("figure-"):
        return cell.table.replace("figure-", "Figure ")
    return f"Table {cell.table}" if cell.table.isdigit() else cell.title


def title_table(cell: PublishedCell) -> str:
    """The title of a table's section, such as `Table 1. Agreement with people`."""
    name = name_table(cell)
    return name if name == cell.title else f"{name}. {cell.title}"


def describe_table(cell: PublishedCell) -> str:
    """What the columns of a table mean, and where its figures are from."""
    return f"{cell.table_note} Source: {cell.place}, read from {ORIGINS[cell.origin]}.".lstrip()


def list_notes(cells: Sequence[PublishedCell]) -> list[Block]:
    """The notes on the rows of a table, as a list; empty if there are none."""
    notes: list[Text] = [f"{row}: {note}" for row, note in {cell.row: cell.note for cell in cells if cell.note}.items()]
    return [List(notes)] if notes else []
