"""The search of all answers: its filters, and each answer as a record."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from auditor.domain import Cell, Outcome
from auditor.reports.data.traces.schema import CellTraces, TraceReport
from auditor.reports.document import Search, SearchFilter, SearchRecord
from auditor.reports.sections.traces.answer import describe_result, label_outcome, tag_answer
from auditor.reports.sections.traces.cell_page import identify_model_section
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
            title=(model, *filter(None, reversed(cell_traces.cell)), f"answer {trace.sample + 1}"),
            detail=describe_result(trace),
            tags=tag_answer(trace),
            text=trace.error or "" if trace.text is None else trace.text,
            choices=(
                models.index(model),
                *place_choices,
                outcomes.index(label_outcome(trace.outcome)),
                verdicts.index(_label_verdicts(trace)),
            ),
            page=f"{page}#{identify_model_section(position)}",
        )
        for position, (model, traces) in enumerate(groupby(cell_traces.traces, key=lambda trace: trace.model), 1)
        for trace in traces
    ]


def _label_verdicts(trace: TraceReport) -> str:
    """Whether the judges who voted on an answer agree."""
    votes = {verdict.valid for verdict in trace.verdicts if verdict.valid is not None}
    if len(votes) != 1:
        return VERDICT_LABELS[1] if votes else VERDICT_LABELS[3]
    return VERDICT_LABELS[0] if True in votes else VERDICT_LABELS[2]
