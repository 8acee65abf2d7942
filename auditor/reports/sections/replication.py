"""Documents of published figures: the list of papers, a paper's tables, and figures recomputed beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from auditor.reports.data.replication import (
    Departure,
    Mark,
    NotRun,
    Origin,
    PublishedCell,
    PublishedTableInfo,
    RecomputedCell,
)
from auditor.reports.document import (
    Block,
    Cell,
    Code,
    Column,
    Disclosure,
    Document,
    Figure,
    List,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import pluralize
from auditor.reports.sections.phrasing import join_texts

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
MARKS: dict[Mark, str] = {
    "same_definition": "same definition",
    "other_words": "same definition, other words",
    "other_definition": "other definition",
    "not_run": "not run",
}


def build_paper_list_document(tables: Sequence[PublishedTableInfo], needs: Sequence[tuple[str, str, str]]) -> Document:
    """Build the list of papers and their tables.

    Args:
        needs: of each paper with an experiment: its name, what the user provides, and the calls of one model.
    """
    rows = [
        (
            Name(info.paper),
            info.table,
            info.title,
            ORIGINS[info.origin],
            info.n_cells,
            info.n_run or None,
            ", ".join(info.released) or None,
        )
        for info in tables
    ]
    columns = (
        Column("paper", "name"),
        Column("table"),
        Column("what it shows"),
        Column("read from"),
        Column("figures", "number"),
        Column("run by the command", "number"),
        Column("released scores"),
    )
    table = Table(
        "papers", "published tables", "Published tables, and the files with their released scores.", columns, rows
    )
    intro: list[Block] = [
        Paragraph(
            "The program knows these tables of papers, and the line of the source from which each figure was read.",
            "lead",
        ),
        List(
            [
                [
                    Code("auditor replicate PAPER --published"),
                    " shows the figures; with ",
                    Code("--json"),
                    ", the lines.",
                ],
                [
                    Code("auditor replicate PAPER --models FILE"),
                    " runs the experiment with your models, as ordinary audits: it can be stopped and resumed. ",
                    Code("--dry-run"),
                    " shows the calls and their cost, ",
                    Code("--small"),
                    " asks the small model on this machine about a few cells, in minutes. Each of our figures says "
                    "whether it is defined as the published one.",
                ],
                [
                    Code("auditor replicate PAPER --recorded FOLDER"),
                    " computes figures again from scores that the authors released. Download them first. No model is "
                    "asked. The scores become audits, so that every report can be made of them.",
                ],
            ]
        ),
        Paragraph("Values are never corrected. A misprint keeps its characters, and a note says what is odd."),
    ]
    experiments: list[Text] = [[Name(paper), f": needs {need}. Cost {cost}."] for paper, need, cost in needs]
    sections = [Section("papers", "Papers", [table]), Section("experiments", "Experiments", [List(experiments)])]
    return Document("Replications", "Published tables", "", sections, intro)


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


def build_run_document(
    title: str,
    source: str,
    cells: Sequence[RecomputedCell],
    departures: Sequence[Departure],
    notes: Sequence[Text],
    appended: Sequence[Section],
) -> Document:
    """Build the document of an experiment: published figures with those of our audits beside them.

    Args:
        departures: how the audits differ from the paper.
        notes: on the audits, such as their names and costs.
        appended: sections of the audits' own reports.
    """
    columns = (
        Column("row", "name"), Column("figure"), Column("published"), Column("our figure is of"),
        Column("ours", "estimate", digits=3), Column("difference", "number", digits=3, style="signed"),
        Column("mark"),
    )  # fmt: skip
    sections = []
    for _, group in groupby(cells, key=lambda cell: cell.published.table):
        table_cells = list(group)
        rows = [
            (
                cell.published.row, cell.published.column, cell.published.printed or None, cell.detail or None,
                cell.recomputed, _round_count(cell), _describe_mark(cell),
            )
            for cell in table_cells if cell.not_run != "no_counterpart"
        ]  # fmt: skip
        section = _build_section(table_cells[0].published, rows, columns, [c.published for c in table_cells])
        others = [cell.published for cell in table_cells if cell.not_run == "no_counterpart"]
        blocks = [*section.blocks, _list_other_models(others)] if others else section.blocks
        sections.append(replace(section, blocks=blocks if rows else blocks[1:]))
    opening: list[Block] = [
        Paragraph(_summarize_marks(cells), "lead"),
        Paragraph(
            f"Published in {source}. Published values have no interval: a difference says nothing by itself. A value "
            "that is not reached is no failure."
        ),
        List(list(notes)),
    ]
    return Document("Replication", title, "", [*sections, _build_departures_section(departures), *appended], opening)


def _list_other_models(cells: Sequence[PublishedCell]) -> Disclosure:
    """List the published figures of models that none of ours is set beside, as the paper prints them."""
    by_row = {name: list(group) for name, group in groupby(cells, key=lambda cell: cell.row)}
    names = list(dict.fromkeys(cell.column for cell in cells))
    printed = {(cell.row, cell.column): cell.printed for cell in cells}
    rows = [(name, *(printed.get((name, column)) for column in names)) for name in by_row]
    summary = f"{pluralize(len(cells), 'published figure')} without a model of yours (--as MY=THEIRS)"
    caption = f"{cells[0].title}. As the paper prints them."
    columns = (Column("row", "name"), *map(Column, names))
    return Disclosure(summary, [Table(f"table-{cells[0].table}-others", "published only", caption, columns, rows)])


def _round_count(cell: RecomputedCell) -> float | None:
    """The difference of a figure of ours from the published one; a whole number if ours is a count."""
    is_count = cell.recomputed is not None and isinstance(cell.recomputed.value, int)
    return round(cell.difference) if is_count and cell.difference is not None else cell.difference


def _describe_mark(cell: RecomputedCell) -> str:
    """A cell's mark in words, with its departures or the reason why there is no figure."""
    if cell.not_run is not None:
        return NOT_RUN[cell.not_run]
    mark = MARKS[cell.mark or "not_run"]
    return f"{mark}: {', '.join(cell.departures)}" if cell.departures else mark


def _summarize_marks(cells: Sequence[RecomputedCell]) -> str:
    """Count the published figures by the best mark that a figure of ours beside them has."""
    best: dict[tuple[str, str, str], int] = {}
    order = list(MARKS)
    for cell in cells:
        if cell.is_own_row:
            continue
        key = (cell.published.table, cell.published.row, cell.published.column)
        best[key] = min(best.get(key, len(order)), order.index(cell.mark or "not_run"))
    of_published = f"{pluralize(len(best), 'published figure')}: {_count_marks(best.values())}."
    own_ranks = [order.index(cell.mark or "not_run") for cell in cells if cell.is_own_row]
    if not own_ranks:
        return of_published
    noun = pluralize(len(own_ranks), "figure")
    return f"{of_published} {noun} of your models without a published row: {_count_marks(own_ranks)}."


def _count_marks(ranks: Collection[int]) -> str:
    """Count figures by mark, given as the position in `MARKS`."""
    counts = [(sum(rank == i for rank in ranks), label) for i, label in enumerate(MARKS.values())]
    return ", ".join(f"{n} {label}" for n, label in counts if n)


def _build_departures_section(departures: Sequence[Departure]) -> Section:
    """Build the table of departures with their sizes."""
    caption = "How the audits differ from the paper. Size: change of a figure on one fixture, where it was measured."
    columns = (
        Column("departure", "name"),
        Column("description"),
        Column("size", "number", digits=3),
        Column("of what"),
    )
    rows = [(departure.id, departure.description, departure.size, departure.size_note) for departure in departures]
    table = Table("departures", "departures", caption, columns, rows)
    return Section("departures", "Departures", [table], "Departures")


def prefix_ids(section: Section, prefix: str, heading: str) -> Section:
    """Copy a section of one audit's report for a document with several: ids and headings get a prefix."""
    title = join_texts([heading, section.title], ": ")
    blocks = [_prefix_block(block, prefix) for block in section.blocks]
    contents_title = f"{heading}: {section.contents_title}" if section.contents_title else ""
    return replace(section, id=f"{prefix}-{section.id}", title=title, blocks=blocks, contents_title=contents_title)


def _prefix_block(block: Block, prefix: str) -> Block:
    """Copy a block with a prefix before the ids in it."""
    match block:
        case Table():
            return replace(block, id=f"{prefix}-{block.id}")
        case Figure():
            return replace(block, id=f"{prefix}-{block.id}", table_id=block.table_id and f"{prefix}-{block.table_id}")
        case Disclosure():
            return replace(block, blocks=[_prefix_block(inner, prefix) for inner in block.blocks])
        case _:
            return block


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
    return _build_section(first, rows, columns, cells)


def _build_section(
    first: PublishedCell, rows: Sequence[Sequence[Cell]], columns: Sequence[Column], cells: Sequence[PublishedCell]
) -> Section:
    """Build the section of one table: its figures, and the notes on its rows."""
    caption = f"{first.title}. Source: {first.place}, read from {ORIGINS[first.origin]}."
    name = first.table.replace("figure-", "Figure ") if first.table.startswith("figure-") else f"Table {first.table}"
    blocks: list[Block] = [Table(f"table-{first.table}", name, caption, columns, rows)]
    notes = {cell.row: cell.note for cell in cells if cell.table == first.table and cell.note}
    if notes:
        items: list[Text] = [f"{row}: {note}" for row, note in notes.items()]
        blocks.append(List(items))
    return Section(f"published-{first.table}", name, blocks, name)
