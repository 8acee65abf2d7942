"""The document of an experiment: a paper's published figures with those of our audits beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from auditor.reports.data.replication import Departure, Mark, NotRun, RecomputedCell
from auditor.reports.document import (
    Block,
    Column,
    Disclosure,
    Document,
    Figure,
    Link,
    List,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import pluralize
from auditor.reports.sections.phrasing import join_texts
from auditor.reports.sections.replication import NOT_RUN, build_table_of_figures, describe_table

DEPARTURES_ID = "departures"
MARKS: dict[Mark, str] = {
    "same_definition": "same definition",
    "other_words": "same definition, other words",
    "other_definition": "other definition",
    "not_run": "not run",
}

COUNTED_MARKS: dict[Mark, str] = {
    "same_definition": "with the same definition",
    "other_words": "with the same definition in other words",
    "other_definition": "with another definition",
    "not_run": "not run",
}
"""The same after a number of figures."""
MARKS_NOTE = (
    "A mark says how each of our figures is defined. Same definition: as the paper describes. Same definition, other "
    "words: the same, but the prompts are written anew. Other definition: a setting or a formula differs; the mark "
    "names it, and the section Departures describes it."
)
SMALL_FORM_NOTE = (
    "This is the small form: a small model on this machine was asked a few questions. The figures show that every "
    "step works. They say nothing about the paper or about larger models."
)
OTHER_FIGURES: dict[NotRun, tuple[str, str]] = {
    "no_counterpart": ("of other models", "without a model of yours (--as MY=THEIRS)"),
    "recorded_only": ("of released scores (--recorded FOLDER)", "of released scores (--recorded FOLDER)"),
}
"""Published figures that no figure of an experiment is set beside, in words: in the summary, and above their list."""

NO_OWN_FIGURE = (
    "No figure of yours: it needs an audit of the table's data (--data NAME=FILE), and a model of yours beside a "
    "published one (--as MY=THEIRS)."
)
ONLY_RELEASED = "No figure of yours: the command computes these only from released scores (--recorded FOLDER)."
"""Of a table without a figure of our models, and of one that no audit gives figures of."""


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
    sections = [_build_table_section(list(group)) for _, group in groupby(cells, key=lambda cell: cell.published.table)]
    opening: list[Block] = [
        Paragraph(_summarize_marks(cells), "lead"),
        Paragraph(
            f"Published in {source}. Published values have no interval: a difference says nothing by itself. A value "
            "that is not reached is no failure."
        ),
        Paragraph(MARKS_NOTE),
        List(list(notes)),
    ]
    return Document("Replication", title, "", [*sections, _build_departures_section(departures), *appended], opening)


def _build_table_section(cells: Sequence[RecomputedCell]) -> Section:
    """Build the section of one table: our figures beside the published ones, then those of other models."""
    published = [cell.published for cell in cells]
    listed = [cell for cell in cells if cell.not_run not in OTHER_FIGURES]
    shared = _find_shared_departures(listed)
    has_published = any(cell.published.value is not None for cell in listed)
    columns = (
        Column("row", "name"), Column("figure"), *((Column("published"),) if has_published else ()),
        Column("ours", "estimate", digits=3),
        *((Column("difference", "number", digits=3, style="signed"),) if has_published else ()),
        Column("ours is of"), Column("mark"),
    )  # fmt: skip
    rows = [
        (
            cell.published.row, cell.published.column, *((cell.published.printed or None,) if has_published else ()),
            cell.recomputed, *((_round_count(cell),) if has_published else ()),
            cell.detail or None, _describe_mark(cell, shared),
        )
        for cell in listed
    ]  # fmt: skip
    section = build_table_of_figures(published[0], rows, columns, published)
    if rows:
        blocks = section.blocks
    else:
        is_released = all(cell.not_run == "recorded_only" for cell in cells)
        title = "" if section.title == published[0].title else f"{published[0].title}. "
        blocks = [Paragraph(f"{title}{ONLY_RELEASED if is_released else NO_OWN_FIGURE}"), *section.blocks[1:]]
    if shared:
        note = f"Every figure with another definition differs from the paper in: {', '.join(shared)} (see "
        link = Link("Departures", DEPARTURES_ID)
        blocks = [Paragraph([note, link, "). A mark names only what else differs."]), *blocks]
    return replace(section, blocks=[*blocks, *_list_other_figures(cells)])


def _find_shared_departures(cells: Sequence[RecomputedCell]) -> list[str]:
    """Departures of every figure of a table of which ours are measured in another way; empty for fewer than two."""
    of_figures = [cell.departures for cell in cells if cell.mark == "other_definition"]
    if len(of_figures) < 2:
        return []
    return [departure for departure in of_figures[0] if all(departure in departures for departures in of_figures)]


def _list_other_figures(cells: Sequence[RecomputedCell]) -> Iterator[Disclosure]:
    """List the published figures that none of ours is set beside, as the paper prints them, by the reason."""
    for reason, (_, words) in OTHER_FIGURES.items():
        others = [cell.published for cell in cells if cell.not_run == reason]
        if not others:
            continue
        by_row = {name: list(group) for name, group in groupby(others, key=lambda cell: cell.row)}
        names = list(dict.fromkeys(cell.column for cell in others))
        printed = {(cell.row, cell.column): cell.printed for cell in others}
        rows = [(name, *(printed.get((name, column)) or None for column in names)) for name in by_row]
        caption = f"{describe_table(others[0])} As the paper prints them."
        columns = (Column("row", "name"), *map(Column, names))
        table = Table(f"table-{others[0].table}-{reason}", "published only", caption, columns, rows)
        yield Disclosure(f"{pluralize(len(others), 'published figure')} {words}", [table])


def _round_count(cell: RecomputedCell) -> float | None:
    """The difference of a figure of ours from the published one; a whole number if ours is a count."""
    is_count = cell.recomputed is not None and isinstance(cell.recomputed.value, int)
    return round(cell.difference) if is_count and cell.difference is not None else cell.difference


def _describe_mark(cell: RecomputedCell, shared: Collection[str]) -> str:
    """A cell's mark in words, with its departures but the shared ones, or the reason why there is no figure."""
    if cell.not_run == "no_file":
        names = cell.detail.rpartition(": ")[2].split(", ")
        return NOT_RUN["no_file"].replace("--data NAME=FILE", " ".join(f"--data {name}=FILE" for name in names))
    if cell.not_run is not None:
        return NOT_RUN[cell.not_run]
    mark = MARKS[cell.mark or "not_run"]
    is_other = cell.mark == "other_definition"
    departures = [departure for departure in cell.departures if not (is_other and departure in shared)]
    return f"{mark}: {', '.join(departures)}" if departures else mark


def _summarize_marks(cells: Sequence[RecomputedCell]) -> str:
    """Count published figures by the best mark of a figure of ours beside them, and figures of ours without one."""
    best: dict[tuple[str, str, str], int] = {}
    order = list(MARKS)
    other_keys: dict[NotRun, set[tuple[str, str, str]]] = {reason: set() for reason in OTHER_FIGURES}
    for cell in cells:
        if cell.is_own_row:
            continue
        key = (cell.published.table, cell.published.row, cell.published.column)
        if cell.not_run in other_keys:
            other_keys[cell.not_run].add(key)
        else:
            best[key] = min(best.get(key, len(order)), order.index(cell.mark or "not_run"))
    own_ranks = [order.index(cell.mark or "not_run") for cell in cells if cell.is_own_row]
    sentences = []
    if best:
        verb = "is" if len(best) == 1 else "are"
        sentences.append(
            f"{pluralize(len(best), 'published figure')} {verb} beside ours: {_count_marks(best.values())}."
        )
    if own_ranks:
        noun, verb = ("figure", "has") if len(own_ranks) == 1 else ("figures", "have")
        sentences.append(
            f"{len(own_ranks)} {noun} of your models {verb} no published one beside: {_count_marks(own_ranks)}."
        )
    for reason, keys in other_keys.items():
        if other := keys - set(best):
            verb = "is" if len(other) == 1 else "are"
            sentences.append(f"{pluralize(len(other), 'published figure')} {verb} {OTHER_FIGURES[reason][0]}.")
    return " ".join(sentences)


def _count_marks(ranks: Collection[int]) -> str:
    """Count figures by mark, given as the position in `MARKS`."""
    counts = [(sum(rank == i for rank in ranks), label) for i, label in enumerate(COUNTED_MARKS.values())]
    return ", ".join(f"{n} {label}" for n, label in counts if n)


def _build_departures_section(departures: Sequence[Departure]) -> Section:
    """Build the table of departures with their sizes."""
    caption = (
        "How the audits differ from the paper. Size: how much a figure changes, measured once on data that come with "
        "the program."
    )
    columns = (
        Column("departure", "name"),
        Column("description"),
        Column("size", "number", digits=3),
        Column("size of what"),
    )
    rows = [(departure.id, departure.description, departure.size, departure.size_note) for departure in departures]
    table = Table("departures", "departures", caption, columns, rows)
    return Section(DEPARTURES_ID, "Departures", [table], "Departures")


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
