"""Names that the audit does not have are reported with a similar one; the choice of cells is the same each time."""

from __future__ import annotations

import pytest

from auditor.domain import Cell, Survey, SurveyCell
from auditor.errors import SurveyError, UsageError
from auditor.exports.traces import TraceFilter, TraceSelection, select_traces
from auditor.storage.count_queries import OutcomeCount

CELLS = [Cell(country, topic) for country in ("Egypt", "Japan", "Peru") for topic in ("divorce", "abortion", "x")]
SURVEY = Survey("s", "", "", "", ("", ""), tuple(SurveyCell(cell, 0.0) for cell in CELLS))
COUNTS = [OutcomeCount(model, *cell, "ok", 2) for model in ("a", "b") for cell in [*CELLS, Cell("Chad", "divorce")]]


def select(trace_filter: TraceFilter | None = None) -> TraceSelection:
    """Select answers of two models."""
    return select_traces(COUNTS, SURVEY, ["b", "a"], trace_filter or TraceFilter())


def test_cells_are_in_the_order_of_the_survey_and_others_follow() -> None:
    selection = select()
    assert list(selection.cells) == [*CELLS, Cell("Chad", "divorce")]
    assert selection.models_by_cell()[CELLS[0]] == ["b", "a"]
    assert selection.n_traces == 40


@pytest.mark.parametrize(
    ("trace_filter", "message"),
    [
        (TraceFilter(models=["c"]), "no model 'c'"),
        (TraceFilter(outcomes=["refusd"]), "no answers with the outcome 'refusd'.*Did you mean 'refused'"),
        (TraceFilter(countries=["Japn"]), "no country 'Japn'.*Did you mean 'Japan'"),
        (TraceFilter(topics=["divorces"]), "no topic 'divorces'.*Did you mean 'divorce'"),
    ],
)
def test_unknown_names_are_reported(trace_filter: TraceFilter, message: str) -> None:
    with pytest.raises((UsageError, SurveyError), match=message):
        select(trace_filter)


def test_too_many_cells_are_spread_over_countries_and_topics() -> None:
    limited = select(TraceFilter(countries=["Egypt", "Japan", "Peru"])).limit(3, seed=5)
    assert limited.n_omitted_cells == 6
    assert len({cell.country for cell in limited.cells}) == len({cell.topic for cell in limited.cells}) == 3
    assert limited.n_traces == 12
    assert limited == select(TraceFilter(countries=["Egypt", "Japan", "Peru"])).limit(3, seed=5)
    assert select().limit(10, seed=0) == select()
