"""Answers are selected, and shown as they are stored; judges are named only when no conflict is open."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.config import AuditConfig, DirectProbe, ModelSection, Probes, SurveySection
from auditor.domain import Cell, ConflictState, Outcome, Ruling, SentencePairScore, Survey, SurveyCell, Verdict
from auditor.errors import SurveyError, UsageError
from auditor.exports.traces import (
    TraceFilter,
    TraceReader,
    TraceSelection,
    describe_anonymous_verdicts,
    make_name_mask,
    select_traces,
    write_trace_pages,
)
from auditor.reports.data.traces import TraceReport
from auditor.storage import results
from auditor.storage.count_queries import OutcomeCount
from auditor.storage.database import Database, open_database
from auditor.storage.ledger import load_transcripts
from auditor.storage.records import save_records
from tests.support.inspect_logs import SyntheticDatabase
from tests.support.synthetic_audit import populate


@pytest.fixture
def settled(tmp_path: Path) -> Iterator[Database]:
    """An audit without open conflicts."""
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        audit = populate(db, models=3, countries=3, topics=3)
        conflicts = results.load_conflicts(db, audit.id)
        closed = [replace(conflict, state=ConflictState.MAJORITY, winner=conflict.left) for conflict in conflicts]
        results.replace_conflicts(db, audit.id, closed)
        yield db


def read_all(reader: TraceReader) -> list[TraceReport]:
    return [trace for cell_traces in reader.iterate_cells(reader.select()) for trace in cell_traces.traces]


def test_every_answer_is_shown_as_it_is_stored(made_audit: SyntheticDatabase) -> None:
    db = made_audit.db
    reader = TraceReader(db, "population")
    stored = {(t.model, *t.cell, t.sample): t for t in results.load_traces(db, reader.audit.id)}
    shown = read_all(reader)
    assert len(shown) == len(stored) == reader.n_traces
    transcripts = load_transcripts(db, [trace.key for trace in stored.values() if trace.key])
    for trace in shown:
        original = stored[trace.trace.model, *trace.trace.cell, trace.trace.sample]
        call, shown_call = transcripts[original.key or ""], trace.transcript
        assert (trace.trace, shown_call.text) == (original, original.text)
        assert trace.survey == reader.survey.scores[original.cell]
        assert shown_call.messages == call.messages
        assert (shown_call.cost_usd, shown_call.attempts) == (call.cost_usd, call.attempts)
        assert shown_call.error == call.error
    assert {trace.trace.outcome for trace in shown} == set(Outcome)
    assert any(trace.transcript.cost_usd for trace in shown)


def test_judges_are_named_when_no_conflict_is_open(settled: Database) -> None:
    reader = TraceReader(settled, "population")
    assert reader.n_open_conflicts == 0
    stored = results.load_verdicts(settled, reader.audit.id)
    for trace in read_all(reader):
        answer = trace.trace
        expected = [
            (verdict.judge, verdict.outcome.value, verdict.ruling and verdict.ruling == "VALID", verdict.justification)
            for verdict in stored
            if (verdict.model, verdict.cell, verdict.sample) == (answer.model, answer.cell, answer.sample)
        ]
        shown = [
            (row.verdict.judge, row.verdict.outcome, row.verdict.is_valid, row.verdict.justification)
            for row in trace.verdicts
        ]
        assert shown == expected


def test_judges_are_numbered_while_a_conflict_is_open(made_audit: SyntheticDatabase) -> None:
    reader = TraceReader(made_audit.db, "population")
    assert reader.n_open_conflicts > 0
    stored = results.load_verdicts(made_audit.db, reader.audit.id)
    verdicts = [row.verdict for trace in read_all(reader) for row in trace.verdicts]
    assert len(verdicts) == len(stored) > 100
    assert {verdict.judge for verdict in verdicts} == {"judge 1", "judge 2"}
    assert sum(verdict.is_valid is True for verdict in verdicts) == sum(v.ruling == "VALID" for v in stored)


def test_answers_are_filtered(made_audit: SyntheticDatabase) -> None:
    reader = TraceReader(made_audit.db, "population")
    everything = read_all(reader)
    selection = reader.select(TraceFilter(["BIRCH"], ["br", "Egypt"], ["Divorce"], ["ok", "timeout"]))
    selected = [trace for cell_traces in reader.iterate_cells(selection) for trace in cell_traces.traces]
    assert selected == [
        trace
        for trace in everything
        if trace.trace.model == "birch"
        and trace.trace.cell in (("Brazil", "divorce"), ("Egypt", "divorce"))
        and trace.trace.outcome in ("ok", "timeout")
    ]
    assert selection.n_traces == len(selected) > 0
    for outcome in Outcome:
        selection = reader.select(TraceFilter(outcomes=[outcome.value]))
        expected = [trace for trace in everything if trace.trace.outcome == outcome]
        assert [t for cell in reader.iterate_cells(selection) for t in cell.traces] == expected


def make_comparison(model: str, cell: Cell, number: int) -> SentencePairScore:
    """A comparison without a recorded call."""
    return SentencePairScore(model, cell, number, "right", "wrong", Outcome.OK, 0.5 + number)


def test_comparisons_of_sentences_stand_on_the_page_of_their_cell(settled: Database) -> None:
    reader = TraceReader(settled, "population")
    cell, model = reader.select().cells[0], reader.models[1]
    rows = [make_comparison(model, cell, number) for number in (1, 0)]
    save_records(settled, reader.audit.id, [*rows, make_comparison("gone", cell, 0)])
    first, second, *_ = reader.iterate_cells(reader.select())
    assert [row.score for row in first.sentence_pairs] == rows[::-1]
    assert [row.prompt for row in first.sentence_pairs] == ["", ""]
    assert not second.sentence_pairs


def test_an_audit_by_log_probabilities_alone_has_pages(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        audit = populate(db, models=3, countries=3, topics=3)
        traces = results.load_traces(db, audit.id)
        results.delete_traces(db, audit.id, [(trace.model, trace.cell, trace.sample) for trace in traces])
        save_records(db, audit.id, [make_comparison(traces[0].model, traces[0].cell, 0)])
        reader = TraceReader(db, "population")
        [cell_traces] = reader.iterate_cells(reader.select())
        assert (cell_traces.cell, len(cell_traces.sentence_pairs), len(cell_traces.traces)) == (traces[0].cell, 1, 0)
        assert write_trace_pages(db, "population", tmp_path / "pages").links.by_cell


# --- which answers are selected

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


# --- judges whose names are hidden


def verdict(judge: str, ruling: Ruling | None, justification: str | None) -> Verdict:
    """A judge's verdict on one answer."""
    outcome = Outcome.REFUSED if ruling is None else Outcome.OK
    return Verdict(judge, "author", CELLS[0], 0, outcome, ruling, justification, aspects={"score_fit": True})


def test_other_names_of_the_judges_change_nothing() -> None:
    contents = [(Ruling.INVALID, "b"), (Ruling.VALID, "z"), (None, None), (Ruling.VALID, "a")]
    shown = [
        describe_anonymous_verdicts(
            [verdict(judge, *content) for judge, content in zip(names, contents, strict=True)], str
        )
        for names in itertools.permutations(("oak", "elm", "fir", "ash"))
    ]
    shown += [describe_anonymous_verdicts([verdict("x", *content) for content in reversed(contents)], str)]
    assert all(verdicts == shown[0] for verdicts in shown)
    assert [(row.verdict.judge, row.verdict.justification) for row in shown[0]] == [
        ("judge 1", "a"),
        ("judge 2", "z"),
        ("judge 3", "b"),
        ("judge 4", None),
    ]


def test_a_judge_that_names_itself_or_its_maker_is_masked() -> None:
    config = AuditConfig(
        name="x",
        survey=SurveySection(source="x"),
        models=[ModelSection(name="oak", model="openai/gpt-4o"), ModelSection(name="b", model="x/my-tuned-9b")],
        probes=Probes(direct=DirectProbe(samples=1)),
    )
    mask = make_name_mask(config, ["oak", "b"])
    text = mask("As oak, known as GPT-4o, made by OpenAI, unlike Claude and my-tuned-9b, I disagree.")
    for name in ("oak", "GPT", "OpenAI", "Claude", "tuned"):
        assert name not in text
    assert mask("The oaken door follows.") == "The oaken door follows."
    assert make_name_mask(None, [])("The score fits.") == "The score fits."
