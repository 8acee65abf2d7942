"""The page that lists the pages of all cells, and the search of all answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from auditor.domain import Cell, Outcome, Task
from auditor.reports.data.traces import CellTraces, TraceReport
from auditor.reports.document import (
    Block,
    Callout,
    Cell as TableCell,
    Column,
    Document,
    Facts,
    Inline,
    Link,
    Name,
    Paragraph,
    Search,
    SearchFilter,
    SearchRecord,
    Section,
    Table,
)
from auditor.reports.number_format import format_count, format_percent, pluralize
from auditor.reports.sections.provenance import label_kind
from auditor.reports.sections.traces.cell_page import (
    PageAudit,
    build_audit_notes,
    describe_result,
    identify_model_section,
    label_outcome,
    tag_answer,
)
from auditor.storage.count_queries import OutcomeCount

VERDICT_LABELS = ("all VALID", "VALID and INVALID", "all INVALID", "no verdict")


def build_search(models: Sequence[str], cells: Sequence[Cell], counts: Sequence[OutcomeCount]) -> Search:
    """Build the search by model, country, topic, outcome, verdicts and text; by item in an audit of a task.

    Args:
        models: names of the audit's models, in its order.
        cells: cells of the answers, in the order of the survey or task.
        counts: number of the answers by model, cell and outcome.
    """
    answered_models, outcomes = ({count.model for count in counts}, {count.outcome for count in counts})
    countries, topics = (tuple(dict.fromkeys(cell[i] for cell in cells)) for i in (0, 1))
    has_countries = any(countries)
    filters = [
        SearchFilter("Model", [model for model in models if model in answered_models]),
        *([SearchFilter("Country", countries)] if has_countries else []),
        SearchFilter("Topic" if has_countries else "Item", topics),
        SearchFilter("Outcome", [label_outcome(outcome) for outcome in Outcome if outcome in outcomes]),
        SearchFilter("Verdicts", VERDICT_LABELS),
    ]
    return Search("Search the answers", "Text of the answer, or its error message", filters)


def build_records(cell_traces: CellTraces, search: Search, page: str) -> list[SearchRecord]:
    """Convert the answers on a cell.

    Args:
        page: URL of the cell's page.
    """
    models, *places, outcomes, verdicts = (search_filter.options for search_filter in search.filters)
    place = cell_traces.cell if len(places) > 1 else (cell_traces.cell.topic,)
    place_choices = [options.index(name) for options, name in zip(places, place, strict=True)]
    return [
        SearchRecord(
            title=(model, *filter(None, reversed(cell_traces.cell)), f"answer {trace.trace.sample + 1}"),
            detail=describe_result(trace),
            tags=tag_answer(trace),
            text=trace.transcript.error or "" if trace.transcript.text is None else trace.transcript.text,
            choices=(
                models.index(model),
                *place_choices,
                outcomes.index(label_outcome(trace.trace.outcome)),
                verdicts.index(_label_verdicts(trace)),
            ),
            page=f"{page}#{identify_model_section(position)}",
        )
        for position, (model, traces) in enumerate(groupby(cell_traces.traces, key=lambda trace: trace.trace.model), 1)
        for trace in traces
    ]


def _label_verdicts(trace: TraceReport) -> str:
    """Whether the judges who voted on an answer agree."""
    votes = {row.verdict.is_valid for row in trace.verdicts if row.verdict.ruling is not None}
    if len(votes) != 1:
        return VERDICT_LABELS[1] if votes else VERDICT_LABELS[3]
    return VERDICT_LABELS[0] if True in votes else VERDICT_LABELS[2]


MAX_LINKS_PER_OUTCOME = 100


def build_index_document(
    audit: PageAudit,
    pages: Mapping[Cell, str],
    counts: Sequence[OutcomeCount],
    task: Task | None,
    *,
    search: Search | None = None,
    report: str = "",
    n_omitted_cells: int = 0,
) -> Document:
    """Build the list of pages.

    Args:
        pages: URL of each cell's page, in the order of the survey or task.
        counts: number of the answers on these pages, by model, cell and outcome.
        task: the task whose items have pages; None for a survey.
        search: the search of the answers on these pages; None if there are only sentence pairs.
        report: URL of the report; empty for none.
    """
    outcomes = Counter[str]()
    for count in counts:
        outcomes[count.outcome] += count.n
    n_models, n_answers = len({count.model for count in counts}), outcomes.total()
    navigation: list[Block] = [Paragraph(Link("Report", page=report), "note")] if report else []
    omitted = (
        f"{pluralize(n_omitted_cells, 'cell has', 'cells have')} no page, because there are too many. The pages are "
        "spread evenly over countries and topics. The command auditor traces shows all answers."
    )
    facts = [
        ("model" if n_models == 1 else "models", format_count(n_models)),
        ("page" if len(pages) == 1 else "pages", format_count(len(pages))),
        ("answer" if n_answers == 1 else "answers", format_count(n_answers)),
        ("usable", format_percent(outcomes[Outcome.OK], n_answers)),
    ]
    return Document(
        kind=label_kind("What was asked and answered", is_simulated=audit.is_simulated),
        title=audit.name,
        subtitle="All answers behind the report, with their prompts, verdicts and costs",
        sections=[*_list_pages(pages, task), *_list_losses(pages, counts)],
        opening=[
            *navigation,
            *build_audit_notes(audit),
            *([Callout("Not all cells have a page", [Paragraph(omitted)])] if n_omitted_cells else []),
            Facts(facts),
        ],
        search=search,
    )


def _list_pages(pages: Mapping[Cell, str], task: Task | None) -> list[Section]:
    """The pages by country and by topic, or by item."""
    if task is not None:
        rows: list[list[Inline]] = [
            [Link(cell.topic, page=page), Name(task.items[cell.topic].question if cell.topic in task.items else "")]
            for cell, page in pages.items()
        ]
        table = Table(
            "items",
            "Items",
            "Select an item to read the answers to it.",
            [Column("Item", "name"), Column("Question")],
            rows,
        )
        return [Section("items", "By item", [table], "By item")]
    countries, topics = (dict.fromkeys(cell[i] for cell in pages) for i in (0, 1))
    by_country = {
        country: [(cell.topic, page) for cell, page in pages.items() if cell.country == country]
        for country in countries
    }
    by_topic = {
        topic: [(cell.country, page) for cell, page in pages.items() if cell.topic == topic] for topic in topics
    }
    return [
        _build_link_section("countries", "By country", "Country", "Topics", by_country),
        _build_link_section("topics", "By topic", "Topic", "Countries", by_topic),
    ]


def _build_link_section(
    section_id: str, title: str, noun: str, others: str, links_by_name: Mapping[str, Sequence[tuple[str, str]]]
) -> Section:
    """A table with one row for each country or topic, which has the links to its pages."""
    rows = [[name, _join_links(links)] for name, links in links_by_name.items()]
    caption = f"Select one of the {others.lower()} to read the answers."
    table = Table(section_id, title, caption, [Column(noun, "name"), Column(others)], rows)
    return Section(section_id, title, [table], title)


def _join_links(links: Sequence[tuple[str, str]]) -> list[Inline]:
    """Links by text and URL, separated by dots."""
    nodes: list[Inline] = [node for text, page in links for node in (" · ", Link(text, page=page))]
    return nodes[1:]


def _list_losses(pages: Mapping[Cell, str], counts: Sequence[OutcomeCount]) -> list[Section]:
    """The answers that are not usable, by outcome, with links to their pages; empty without any."""
    rows: list[list[TableCell]] = []
    for outcome in Outcome:
        lost = [count for count in counts if count.outcome == outcome and outcome is not Outcome.OK]
        cells = dict.fromkeys(Cell(count.country, count.topic) for count in lost)
        if not lost:
            continue
        links = [(", ".join(filter(None, (cell.topic, cell.country))), pages[cell]) for cell in pages if cell in cells]
        nodes = _join_links(links[:MAX_LINKS_PER_OUTCOME])
        if len(links) > MAX_LINKS_PER_OUTCOME:
            nodes.append(f" and {format_count(len(links) - MAX_LINKS_PER_OUTCOME)} more")
        rows.append([label_outcome(outcome), sum(count.n for count in lost), nodes])
    columns = [Column("Outcome", "name"), Column("Answers", "number"), Column("Cells")]
    title = "Answers that are not usable"
    caption = "Answers without a usable result, by the reason, and the pages that show them."
    table = Table("outcomes", title, caption, columns, rows)
    return [Section("outcomes", title, [table], "Not usable")] if rows else []
