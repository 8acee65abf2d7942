"""The document of a replication: published figures with ours beside them, or from scores that authors released."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from auditor.reports.data.replication import (
    Departure,
    FindingRow,
    FindingTest,
    Mark,
    NotRun,
    RecomputedCell,
    TableLayout,
)
from auditor.reports.document import (
    Block,
    Column,
    Disclosure,
    Document,
    Figure,
    Inline,
    Link,
    List,
    ListItem,
    Paragraph,
    Printed,
    Row,
    Section,
    Strong,
    Table,
    Text,
)
from auditor.reports.number_format import describe_p_value, pluralize
from auditor.reports.sections.phrasing import join_texts, join_with_and, mark_code
from auditor.reports.sections.replication import (
    MARKS,
    SUPERSCRIPTS,
    UNMATCHED,
    WideTable,
    build_long_table,
    build_pictures,
    describe_table,
    find_shared_departures,
    list_notes,
    name_table,
    title_table,
)

DEPARTURES_ID = "departures"
DEFINITIONS: dict[Mark, str] = {
    "same_definition": "as published",
    "other_words": "as published, with other words in prompts",
    "other_definition": "differently",
}
"""How figures are defined, by mark."""
MARKS_NOTE = (
    "A mark says how our figures of a row are defined. Same definition: as the paper describes. Same definition, other "
    "words: the same, but the prompts are written anew. Other definition: a setting or a formula differs. The section "
    "Departures describes each difference."
)
SMALL_FORM_NOTE = (
    "This is the small form: a small model on this machine was asked a few questions. The figures show that every "
    "step works. They say nothing about the paper or about larger models."
)
EXTREMES_NOTE = (
    "Lowest and highest of several models: the interval is that of the named model by itself. The extreme of several "
    "models has no interval."
)
OTHER_FIGURES: dict[NotRun, str] = {
    "no_counterpart": (
        "of models that are not among yours. To set one of your models beside a published one: --as MY=THEIRS"
    ),
    "recorded_only": "computed only from released scores (--recorded FOLDER)",
}
"""Published figures that no figure of an experiment is set beside, in words."""
NO_OWN_FIGURE = (
    "No figure of yours: it needs an audit of the table's data (--data NAME=FILE), and a model of yours beside a "
    "published one (--as MY=THEIRS)."
)
ONLY_RELEASED = "No figure of yours: the command computes these only from released scores (--recorded FOLDER)."
"""Of a table without a figure of our models, and of one that no audit gives figures of."""
FINDING_WORDS = {"holds": "shown", "does not hold": "not shown", "cannot be compared": "cannot be compared"}
"""The result of a finding in words: a test that does not support it does not refute it."""
MAX_OPEN_ROWS = 40
"""A table with more rows is folded."""
MAX_UNMATCHED_ROWS = 6
"""More published rows without a figure of ours are folded."""


@dataclass(frozen=True, slots=True)
class Replication:
    """What a document of a replication shows.

    Attributes:
        source: where the figures were published.
        cells: in the order of the tables.
        departures: how the audits differ from the paper.
        layouts: of tables, by id.
        notes: what is to be known before reading, such as made-up data.
        details: on the audits and their data, such as names, costs and files.
        callouts: warnings above all figures but the answer on findings.
        appended: sections of the audits' own reports.
        findings: of the paper, tested on the audits; they lead.
        kind: of the document.
        summary: the main finding; by default how our figures are defined.
    """

    title: str
    source: str
    cells: Sequence[RecomputedCell]
    departures: Sequence[Departure] = ()
    layouts: Mapping[str, TableLayout] = field(default_factory=dict)
    notes: Sequence[Text] = ()
    details: Sequence[Text] = ()
    callouts: Sequence[Block] = ()
    appended: Sequence[Section] = ()
    kind: str = "Replication"
    summary: str = ""
    findings: Sequence[FindingRow] = ()


def build_replication_document(replication: Replication) -> Document:
    """Build the document: a section for each table, then the departures and sections of the audits' reports."""
    sections = [
        _build_table_section(list(group), replication.layouts.get(table, TableLayout()))
        for table, group in groupby(replication.cells, key=lambda cell: cell.published.table)
    ]
    marks = summarize_marks(replication.cells)
    opening: list[Block] = [
        *([Paragraph(summarize_findings(replication.findings), "lead")] if replication.findings else []),
        *replication.callouts,
        Paragraph(marks) if replication.findings else Paragraph(replication.summary or marks, "lead"),
        Paragraph(
            f"Source: {replication.source}. Published values have no interval: a difference says nothing by itself. A "
            "value that is not reached is no failure."
        ),
        Paragraph(MARKS_NOTE),
        *([Paragraph(EXTREMES_NOTE)] if any(cell.is_extreme for cell in replication.cells) else []),
        *([List(list(replication.notes))] if replication.notes else []),
        *([Disclosure("Audits and data", [List(list(replication.details))])] if replication.details else []),
    ]
    departures = [_build_departures_section(replication.departures)] if replication.departures else []
    findings = [_build_findings_section(replication.findings)] if replication.findings else []
    sections = [*findings, *sections, *departures, *replication.appended]
    return Document(replication.kind, replication.title, "", sections, opening)


def summarize_findings(findings: Sequence[FindingRow]) -> str:
    """How many findings of the paper are shown, and which, in sentences."""
    counts = Counter(row.result for row in findings)
    parts = [f"{counts['holds']} {'is' if counts['holds'] == 1 else 'are'} shown"]
    parts += [f"{n} {'is' if n == 1 else 'are'} not shown"] if (n := counts["does not hold"]) else []
    parts += [f"{n} cannot be compared"] if (n := counts["cannot be compared"]) else []
    names = join_with_and([row.claim.rstrip(".") for row in findings if row.result == "holds"] or ["none"])
    held = f" Shown: {names}." if counts["holds"] else ""
    return f"Of {pluralize(len(findings), 'finding')} of the paper, {join_with_and(parts)} on your data.{held}"


def _build_findings_section(findings: Sequence[FindingRow]) -> Section:
    """Each finding with its result, what was compared, and the words of the paper; and the gaps between regions."""
    note = (
        "A finding is shown if every test of it supports it: p is the largest of its tests, adjusted for the findings "
        "of the paper (Holm). A finding that is not shown is not refuted: your data may be too few to show it."
    )
    items = [ListItem(_describe_finding(row), "positive" if row.result == "holds" else "unclear") for row in findings]
    tests = [(row, test) for row in findings for test in row.tests]
    blocks: list[Block] = [List(items, is_findings=True), Paragraph(note, "note")]
    if tests:
        columns = [Column("Finding"), Column("Data", "name"), Column("Model or measure", "name"), Column("Compared")]
        columns += [Column("Figure", "estimate", style="signed"), Column("p", "number", style="p_value")]
        rows = [
            [row.id, test.data, test.model or test.pair or "all models", row.compared, test.figure, test.figure.p_value]
            for row, test in tests
        ]
        blocks.append(
            Disclosure("Tests of the findings", [Table("finding-tests", "Tests of the findings", "", columns, rows)])
        )
    if gaps := [test for _, test in tests if test.r_gap is not None]:
        blocks.append(_build_gap_table(gaps))
    return Section("findings-of-the-paper", "Which findings of the paper do your data show?", blocks, "Findings")


def _build_gap_table(tests: Sequence[FindingTest]) -> Table:
    """The gaps between regions: in r, raw and corrected for range, which are not tested, and in MAE, which is."""
    columns = [
        Column("Model", "name"),
        Column("Data", "name"),
        Column("Regions"),
        Column("Gap in r (not tested)", "estimate", style="signed"),
        Column("Gap in r corrected for range (not tested)", "estimate", style="signed"),
        Column("Gap in MAE", "estimate", style="signed", emphasis=True),
        Column("p of MAE", "number", style="p_value"),
    ]
    rows = [
        [test.model, test.data, test.pair, test.r_gap, test.corrected_r_gap, test.figure, test.figure.p_value]
        for test in tests
    ]
    caption = (
        "r is smaller where people’s scores vary less, even if a model errs equally, so a gap in r is not tested; "
        "the gap in MAE is."
    )
    return Table("finding-gaps", "Gaps between regions", caption, columns, rows)


def _describe_finding(row: FindingRow) -> list[Inline]:
    """The result of one finding, its claim, the tests, and the quotation."""
    result = FINDING_WORDS[row.result].capitalize()
    detail = f" ({row.reason})" if row.reason else ""
    if row.adjusted_p_value is not None:
        n = pluralize(len(row.tests), "test")
        supporting = f"{row.supporting} of {n} {'supports' if row.supporting == 1 else 'support'} it"
        detail = f" ({supporting}; adjusted {describe_p_value(row.adjusted_p_value)})"
    return [Strong(result), f"{detail}: {row.claim} Compared: {row.compared}. The paper: “{row.quote}”"]


def _build_table_section(cells: Sequence[RecomputedCell], layout: TableLayout) -> Section:
    """Build the section of one table: its pictures, the table with ours below each published row, and all figures."""
    first = cells[0].published
    matched = {cell.published.row for cell in cells if cell.not_run not in UNMATCHED}
    unmatched = {cell.published.row for cell in cells} - matched
    folded = unmatched if len(unmatched) > MAX_UNMATCHED_ROWS else set()
    table_id = f"table-{first.table}"
    blocks: list[Block] = [*_introduce(cells), *build_pictures(cells, layout, table_id)]
    if {cell.published.row for cell in cells} - folded:
        wide = WideTable.of(cells, layout.columns, folded)
        table = wide.build(table_id, name_table(first), mark_code(describe_table(first)))
        table_blocks = [table, *_explain_numbers(wide.numbers)]
        is_folded = layout.heat_map or len(table.rows) > MAX_OPEN_ROWS
        blocks += [Disclosure("Figures", table_blocks)] if is_folded else table_blocks
    blocks += list_notes([cell.published for cell in cells])
    blocks += _list_folded_rows(cells, folded)
    if any(cell.recomputed is not None for cell in cells):
        listed = [cell for cell in cells if cell.not_run not in UNMATCHED]
        long_table = build_long_table(f"{table_id}-list", f"{name_table(first)}, all figures", listed)
        blocks.append(Disclosure("All figures of this table, one in a row", [long_table], in_print="closed"))
    return Section(f"published-{first.table}", title_table(first), blocks, title_table(first))


def _introduce(cells: Sequence[RecomputedCell]) -> Iterator[Paragraph]:
    """Say why there is no figure of ours, or in what all of them depart from the paper."""
    if all(cell.not_run in UNMATCHED for cell in cells):
        is_released = all(cell.not_run == "recorded_only" for cell in cells)
        yield Paragraph(ONLY_RELEASED if is_released else NO_OWN_FIGURE)
    elif shared := find_shared_departures(cells):
        text: list[Inline] = [
            f"All your figures in this table depart from the paper in: {', '.join(shared)} (see ",
            Link("Departures", DEPARTURES_ID),
            ").",
        ]
        yield Paragraph(text)


def _explain_numbers(numbers: Mapping[tuple[str, ...], int]) -> list[Block]:
    """Explain the numbers of departures that only some figures of a table have."""
    listed = "; ".join(f"{str(number).translate(SUPERSCRIPTS)} {', '.join(names)}" for names, number in numbers.items())
    return [Paragraph(f"Departures of single figures: {listed}.", "note")] if listed else []


def _list_folded_rows(cells: Sequence[RecomputedCell], rows: set[str]) -> Iterator[Disclosure]:
    """List published rows as the paper prints them."""
    published = [cell.published for cell in cells if cell.published.row in rows]
    if not published:
        return
    names = list(dict.fromkeys(cell.column for cell in published))
    printed: dict[str, dict[str, str]] = {}
    for cell in published:
        printed.setdefault(cell.row, {})[cell.column] = cell.printed
    columns = (Column("", "name", "row"), *(Column(name, "estimate") for name in names))
    table_rows = [
        Row([row, *(Printed(of_row[name]) if of_row.get(name) else None for name in names)], is_muted=True)
        for row, of_row in printed.items()
    ]
    table_id = f"table-{published[0].table}-published"
    table = Table(table_id, "published only", "As the paper prints them.", columns, table_rows)
    yield Disclosure(f"{pluralize(len(rows), 'published row')} without a figure of yours", [table])


def summarize_marks(cells: Sequence[RecomputedCell]) -> str:
    """Count published figures by the best mark of a figure of ours, and figures of ours without a published one."""
    order = list(MARKS)
    best: dict[tuple[str, str, str], int] = {}
    other_keys: dict[NotRun, set[tuple[str, str, str]]] = {reason: set() for reason in OTHER_FIGURES}
    for cell in (cell for cell in cells if not cell.is_own_row):
        key = (cell.published.table, cell.published.row, cell.published.column)
        if cell.not_run in other_keys:
            other_keys[cell.not_run].add(key)
        elif cell.not_run not in UNMATCHED and not cell.published.is_definition:
            best[key] = min(best.get(key, len(order)), order.index(cell.mark))
    run = [order[rank] for rank in best.values() if order[rank] != "not_run"]
    n_own = sum(cell.is_own_row and cell.recomputed is not None for cell in cells)
    sentences = [_count_definitions(run)] if run else []
    if n_missing := len(best) - len(run):
        verb = "was" if n_missing == 1 else "were"
        sentences.append(
            f"{pluralize(n_missing, 'published figure')} {verb} not computed, for the reasons in the tables."
        )
    if n_own:
        verb = "has" if n_own == 1 else "have"
        sentences.append(f"{pluralize(n_own, 'further figure')} of your models {verb} no published counterpart.")
    for reason, keys in other_keys.items():
        if other := keys - set(best):
            verb = "is" if len(other) == 1 else "are"
            sentences.append(f"{pluralize(len(other), 'published figure')} {verb} {OTHER_FIGURES[reason]}.")
    return " ".join(sentences)


def _count_definitions(marks: Sequence[Mark]) -> str:
    """Say how our counterparts of published figures are defined."""
    counts = {mark: sum(other == mark for other in marks) for mark in DEFINITIONS if mark in marks}
    noun, verb = ("published figure", "has") if len(marks) == 1 else ("published figures", "have")
    subject = f"{len(marks)} {noun} {verb} a counterpart in your audits"
    if len(counts) > 1:
        parts = (f"{n} {'is' if n == 1 else 'are'} defined {DEFINITIONS[mark]}" for mark, n in counts.items())
        return f"{subject}: {'; '.join(parts)}."
    [mark] = counts
    return f"{subject}; {'it is' if len(marks) == 1 else f'all {len(marks)} are'} defined {DEFINITIONS[mark]}."


def _build_departures_section(departures: Sequence[Departure]) -> Section:
    """Build the table of departures, one in a row, with their sizes."""
    caption = mark_code(
        "How the audits differ from the paper. A name such as `probes.review.max_words` is a setting without a "
        "published value: it is compared with the program's full form of this experiment. Size: how much a figure "
        "changes, measured once on data that come with the program."
    )
    columns = (
        Column("departure", "name"), Column("audits"), Column("description"), Column("size", "number", digits=3),
        Column("size of what"),
    )  # fmt: skip
    rows = [
        (
            departure.id, ", ".join(departure.audits), mark_code(departure.description), departure.size,
            departure.size_note,
        )
        for departure in departures
    ]  # fmt: skip
    table = Table("departures", "departures", caption, columns, rows)
    return Section(DEPARTURES_ID, "Departures", [table], "Departures")


def prefix_ids(section: Section, prefix: str, audit: str) -> Section:
    """Copy a section of one audit's report for a document with several: ids get a prefix, and titles name the audit."""
    title = join_texts([section.title, f"audit {audit}"], ", ")
    blocks = [_prefix_block(block, prefix) for block in section.blocks]
    contents_title = f"{section.contents_title}, audit {audit}" if section.contents_title else ""
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


MAX_ROUNDING_ERROR = 1e-9


def build_recorded_document(
    title: str,
    source: str,
    cells: Sequence[RecomputedCell],
    departures: Sequence[Departure],
    audits: Sequence[str],
    files: Sequence[str],
) -> Document:
    """Build the document.

    Args:
        audits: names of the audits that now hold the scores.
        files: a line on each file that was read.
    """
    stored = f"The scores are now audits, so that every report can be made of them: {', '.join(audits)}."
    return build_replication_document(
        Replication(
            title, source, cells, departures, notes=[stored], details=files, kind="Replications",
            summary=_summarize(cells),
        )
    )  # fmt: skip


def _summarize(cells: Sequence[RecomputedCell]) -> str:
    """Say how many figures were computed again, and how far they are from the published ones."""
    published = [cell for cell in cells if not cell.is_own_row and cell.not_run != "not_published"]
    differences = [abs(cell.difference) for cell in cells if cell.difference is not None]
    if not differences:
        return f"None of {pluralize(len(published), 'published figure')} was computed again."
    largest = max(differences)
    distance = (
        "all are equal to 9 decimals" if largest < MAX_ROUNDING_ERROR else f"the largest difference is {largest:.2g}"
    )
    return f"{len(differences)} of {pluralize(len(published), 'published figure')} computed again: {distance}."
