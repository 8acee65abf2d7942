"""What a rater sees of a unit is what its judges see: their recorded request, or the one that they would get."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from auditor.domain import Outcome, Purpose, Verdict
from auditor.domain.decisions import aspect_questions
from auditor.domain.labels import LabelKind, LabelUnit
from auditor.probes.semantic import answer_rows
from auditor.review.label_sampling import NO_SUCH_UNIT, LabelItem, LabelItemLoader
from auditor.storage import audits, results
from auditor.storage.database import Database, open_database
from auditor.storage.ledger import load_transcripts
from auditor.storage.records import save_records
from auditor.storage.row_classes import table_of
from tests.support.known import known
from tests.support.label_audits import (
    COUNTRIES,
    JUDGES,
    MODELS,
    PAIR_AUDIT,
    SURVEY_AUDIT,
    TASK_AUDIT,
    TOPICS,
    run_pair_audit,
    run_survey_audit,
    run_task_audit,
)
from tests.support.review_audit import save_review_audit

PSEUDONYM_AND_FENCE = re.compile(r"=== [0-9a-f]{16} ===|(?<=Score of )[A-Z]{4}|(?<=Answer of )[A-Z]{4}")


@pytest.fixture(scope="module")
def shared_db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder: Path = tmp_path_factory.mktemp("label-items")
    url = f"sqlite:///{folder}/audits.db"
    run_survey_audit(url)
    run_task_audit(url, folder)
    run_pair_audit(url, folder)
    with open_database(url) as db:
        yield db


def load(db: Database, audit: str, unit: LabelUnit, rater: str = "ada") -> LabelItem:
    return LabelItemLoader(db, audits.get_audit(db, audit), rater).load(unit)


def trace_units(db: Database, audit: str) -> list[LabelUnit]:
    traces = results.load_traces(db, audits.get_audit(db, audit).id)
    return [LabelUnit(LabelKind.TRACE, (trace.model, *trace.cell, str(trace.sample))) for trace in traces]


def pair_units(db: Database, purpose: Purpose) -> list[LabelUnit]:
    verdicts = answer_rows.load_pair_verdicts(db, audits.get_audit(db, PAIR_AUDIT).id, purpose.value)
    return [
        LabelUnit(LabelKind("answer_pair"), (purpose.value, v.model, v.question, str(v.left), str(v.right)))
        for v in verdicts
    ]


@pytest.mark.parametrize("audit", [SURVEY_AUDIT, TASK_AUDIT])
def test_a_trace_is_shown_as_in_the_recorded_request_of_a_judge(shared_db: Database, audit: str) -> None:
    audit_id = audits.get_audit(shared_db, audit).id
    verdicts = results.load_verdicts(shared_db, audit_id)
    recorded = load_transcripts(shared_db, [v.key for v in verdicts if v.key])
    for unit in trace_units(shared_db, audit):
        item = load(shared_db, audit, unit)
        requests = [
            [message.content for message in recorded[v.key].messages]
            for v in verdicts
            if v.key and (v.model, *v.cell, str(v.sample)) == unit.parts
        ]
        assert [item.instructions, item.material] in requests
        assert list(item.aspects) == list(aspect_questions(for_task=audit == TASK_AUDIT))


def test_country_topic_models_and_verdicts_are_nowhere_in_a_trace(shared_db: Database) -> None:
    hidden = re.compile("|".join([*COUNTRIES, "german", "nigerian", *TOPICS, *MODELS, *JUDGES]), re.IGNORECASE)
    for unit in trace_units(shared_db, SURVEY_AUDIT):
        item = load(shared_db, SURVEY_AUDIT, unit)
        assert not hidden.search(item.question + item.material + item.instructions)
        assert not re.search("VALID|confiden", item.question + item.material)


@pytest.mark.parametrize("audit", [SURVEY_AUDIT, TASK_AUDIT])
def test_without_a_recorded_request_the_same_text_is_built(
    shared_db: Database, audit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = trace_units(shared_db, audit)[1]
    recorded = load(shared_db, audit, unit)
    monkeypatch.setattr("auditor.review.label_sampling.results.load_verdicts", lambda *args, **more: [])
    built = load(shared_db, audit, unit)
    assert PSEUDONYM_AND_FENCE.sub("", built.material) == PSEUDONYM_AND_FENCE.sub("", recorded.material)
    assert (built.instructions, built.aspects) == (recorded.instructions, recorded.aspects)


def test_an_imported_trace_is_masked_and_shown_like_others(db: Database) -> None:
    audit = save_review_audit(db, conflicts=1)
    text = "I am Alder 3 and say that divorce in Egypt is common. Egyptians accept it."
    [trace] = [replace(t, text=text) for t in results.load_traces(db, audit.id)[:1]]
    save_records(db, audit.id, [trace])
    loader = LabelItemLoader(db, replace(audit, config=None), "ada")
    item = loader.load(LabelUnit(LabelKind.TRACE, (trace.model, *trace.cell, "0")))
    assert not re.search("egypt|divorce|alder", item.material, re.IGNORECASE)
    assert '"verdict": "VALID"' in item.instructions


def test_imported_answers_in_words_are_shown_without_their_models(shared_db: Database) -> None:
    audit = replace(audits.get_audit(shared_db, TASK_AUDIT), config=None)
    loader = LabelItemLoader(shared_db, audit, "ada")
    [*units] = trace_units(shared_db, TASK_AUDIT)
    assert [trace.score for trace in results.load_traces(shared_db, audit.id)] == [None] * len(units)
    for unit in units:
        item = loader.load(unit)
        assert not item.missing
        assert not re.search("|".join(MODELS), item.material + item.instructions, re.IGNORECASE)


def test_a_trace_that_cannot_be_shown_says_why(db: Database) -> None:
    audit = save_review_audit(db, conflicts=1)
    [trace] = results.load_traces(db, audit.id)[:1]
    save_records(db, audit.id, [replace(trace, outcome=Outcome.TRUNCATED, score=None)])
    parts = (trace.model, *trace.cell)
    assert load(db, "moral", LabelUnit(LabelKind.TRACE, (*parts, "0"))).missing == (
        "It has no text to judge (outcome: truncated)."
    )
    assert load(db, "moral", LabelUnit(LabelKind.TRACE, (*parts, "9"))).missing == NO_SUCH_UNIT


def test_a_prompt_of_one_judge_alone_is_not_shown_to_people(shared_db: Database) -> None:
    """The request of a judge without a system text of its own is preferred, whatever the order of their names."""
    audit = audits.get_audit(shared_db, SURVEY_AUDIT)
    config = json.loads(audit.config or "")
    next(judge for judge in config["judges"] if judge["name"] == min(JUDGES))["system"] = "You are strict."
    loader = LabelItemLoader(shared_db, replace(audit, config=json.dumps(config)), "ada")
    unit = trace_units(shared_db, SURVEY_AUDIT)[0]
    verdicts = results.load_verdicts(shared_db, audit.id)
    [key] = [v.key for v in verdicts if v.judge == max(JUDGES) and (v.model, *v.cell, str(v.sample)) == unit.parts]
    assert loader.load(unit).material == load_transcripts(shared_db, [known(key)])[known(key)].messages[1].content


def test_a_judged_pair_is_shown_as_to_its_judge(shared_db: Database) -> None:
    audit_id = audits.get_audit(shared_db, PAIR_AUDIT).id
    for purpose in (Purpose.declare("consistency"), Purpose.declare("contradiction")):
        verdicts = answer_rows.load_pair_verdicts(shared_db, audit_id, purpose.value)
        recorded = load_transcripts(shared_db, [v.key for v in verdicts if v.key])
        items = [load(shared_db, PAIR_AUDIT, unit) for unit in pair_units(shared_db, purpose)]
        shown = [item.material for item in items]
        judged = [recorded[v.key].messages[1].content for v in verdicts if v.key]
        assert {item.instructions for item in items} == {m.messages[0].content for m in recorded.values()}
        if purpose is Purpose.declare("consistency"):
            assert shown == judged, "support has a direction, so the order stays"
        else:
            assert 0 < sum(a == b for a, b in zip(shown, judged, strict=True)) < len(judged)


def split_answers(item: LabelItem) -> list[str]:
    return re.split(r"\n=== [0-9a-f]+ ===\n?", item.material)[1::2]


def test_the_order_of_a_symmetric_pair_differs_between_raters_and_is_stable(shared_db: Database) -> None:
    units = pair_units(shared_db, Purpose.declare("contradiction"))
    orders = [
        [split_answers(load(shared_db, PAIR_AUDIT, unit, rater)) for unit in units]
        for rater in ("ada", "ada", "bob", "cyd", "dee", "eve")
    ]
    assert orders[0] == orders[1]
    assert any(order != orders[0] for order in orders)
    assert all([sorted(pair) for pair in order] == [sorted(pair) for pair in orders[0]] for order in orders)


def test_a_pair_whose_answers_are_gone_says_so(shared_db: Database) -> None:
    unit = LabelUnit(LabelKind("answer_pair"), ("contradiction", MODELS[0], "sofa", "1", "2"))
    assert load(shared_db, PAIR_AUDIT, unit).missing == NO_SUCH_UNIT
    unit = LabelUnit(LabelKind("answer_pair"), ("contradiction", MODELS[0], "book", "1", "99"))
    assert load(shared_db, PAIR_AUDIT, unit).missing == "An answer has no text."


def test_a_comparison_shows_two_items_and_the_question(shared_db: Database) -> None:
    unit = LabelUnit(LabelKind("comparison"), (COUNTRIES[0], "divorce", "abortion"))
    item = load(shared_db, SURVEY_AUDIT, unit)
    lines = item.material.splitlines()
    assert lines[0] == "Country: Germany"
    assert [line[:2] for line in lines[1:3]] == ["A:", "B:"]
    assert "more acceptable" in lines[3]
    assert load(shared_db, SURVEY_AUDIT, LabelUnit(LabelKind("comparison"), ("x", "a", "b"))).missing == NO_SUCH_UNIT


def test_the_hash_is_of_the_shown_text(shared_db: Database) -> None:
    items = [load(shared_db, SURVEY_AUDIT, unit) for unit in trace_units(shared_db, SURVEY_AUDIT)[:2]]
    assert items[0].text_hash != items[1].text_hash
    assert replace(items[0], material=items[1].material).text_hash == items[1].text_hash
    assert re.fullmatch("[0-9a-f]{64}", items[0].text_hash)


def test_verdicts_without_a_recorded_request_fall_back(shared_db: Database, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/copy.db"
    run_survey_audit(url, samples=1)
    with open_database(url) as db:
        db.write(lambda connection: connection.execute(update(table_of(Verdict)).values(key=None)))
        for unit in trace_units(db, SURVEY_AUDIT):
            assert "Score of" in load(db, SURVEY_AUDIT, unit).material
