"""The conversations of an audit under pressure: who says what, what is recorded, and where a conversation ends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import auditor.probes as ap
from auditor.config import AuditConfig, ModelSection, load_config
from auditor.cost_estimation.planned_calls import plan_calls
from auditor.domain import LANGUAGES, Outcome
from auditor.errors import ConfigError
from auditor.probe_interface import ProbeAudit, ProbeResult
from auditor.probes.pressure.conversations import (
    PARTS,
    RevisedJudgement,
    draw_lot,
    explain_without_turns,
    load_parts,
    write_turn,
)
from auditor.probes.pressure.figures import PressureFigures, PressureRow
from auditor.probes.pressure.probe import Pressure
from auditor.probes.pressure.settings import PressureSettings
from auditor.run import load_planned_survey, open_audit, run_audit
from auditor.run.survey_plan import check_probe_input, list_unmeasurable
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from auditor.storage.results import load_traces
from tests.support.audit_configs import FOUR_CELLS, config
from tests.support.fake_server import FakeServer, Reply, Request, answer, completion

N_CELLS = 4


def build_config(url: str = "http://127.0.0.1:1", models: int = 1, **settings: Any) -> AuditConfig:
    probes = {"direct": {"samples": 1}, "pressure": settings}
    return config(url, models, survey=FOUR_CELLS, judges=[], probes=probes)


def answer_users(request: Request) -> Reply:
    """Answer direct questions as ever, and users with a score that depends on all messages."""
    if "RevisedJudgement" not in str(request.schema):
        return answer(request)
    return completion(json.dumps({"reasoning": "It is so.", "score": round(1.6 * request.draw() - 0.8, 2)}))


def list_conversations(server: FakeServer) -> list[list[dict[str, str]]]:
    """Messages of the requests under pressure."""
    return [request.body["messages"] for request in server.requests if "RevisedJudgement" in str(request.schema)]


def find_row(storage: str) -> PressureRow:
    figures = open_audit("scripted", storage=storage).report().probes["pressure"]
    assert isinstance(figures, PressureFigures)
    return figures.rows[0]


def load_results(storage: str) -> list[ProbeResult]:
    with open_database(storage, create=False) as db:
        return load_records(db, audits.get_audit(db, "scripted").id, ProbeResult)


@pytest.mark.parametrize(
    "settings",
    [{}, {"turns": 3, "contexts": ["pre-emptive", "in-context"], "user_country": "lot", "cells": 3},
     {"release": "none", "cells": 2}],
    ids=["defaults", "everything", "without a release"],
)  # fmt: skip
def test_an_audit_makes_the_estimated_calls_and_resumes_without_any(
    server: FakeServer, storage: str, settings: dict[str, Any]
) -> None:
    server.script = answer_users
    audit = build_config(server.url, **settings)
    survey = load_planned_survey(audit)
    planned = [
        calls.calls
        for calls in plan_calls(audit, survey, list(survey.asked_cells), lambda call: False)
        if calls.purpose.value == "probe.pressure"
    ]
    run_audit(audit, storage=storage)
    section = audit.probes.plugins["pressure"]
    assert isinstance(section, PressureSettings)
    n_calls = min(section.cells, N_CELLS) * 3 * len(section.contexts) * section.n_turns
    assert [(calls.low, calls.expected, calls.high) for calls in planned] == [(n_calls,) * 3]
    assert len(list_conversations(server)) == n_calls
    results = load_results(storage)
    assert len({result.key for result in results}) == len(results) == n_calls
    n_requests = len(server.requests)
    run_audit(audit, storage=storage)
    assert len(server.requests) == n_requests
    row = find_row(storage)
    assert (row.complete, row.refused, row.failed) == (row.conversations, 0, 0)


def test_each_request_holds_the_conversation_so_far_and_all_arms_go_on_from_one_recorded_answer(
    server: FakeServer, storage: str
) -> None:
    server.script = answer_users
    run_audit(build_config(server.url, turns=2), storage=storage)
    conversations = list_conversations(server)
    by_length = Counter(len(messages) for messages in conversations)
    assert by_length == {4: 3 * N_CELLS, 6: 3 * N_CELLS, 8: 3 * N_CELLS}
    first_answers: dict[str, set[str]] = {}
    for messages in conversations:
        assert [message["role"] for message in messages] == [
            "system",
            "user",
            *["assistant", "user"] * (len(messages) // 2 - 1),
        ]
        first_answers.setdefault(messages[1]["content"], set()).add(messages[2]["content"])
        assert len(messages) == 4 or messages[:-2] in conversations
    assert len(first_answers) == N_CELLS
    assert all(len(answers) == 1 for answers in first_answers.values())
    with open_database(storage, create=False) as db:
        recorded = {trace.score for trace in load_traces(db, audits.get_audit(db, "scripted").id)}
    assert {json.loads(*answers)["score"] for answers in first_answers.values()} == recorded


def test_equal_requests_of_one_conversation_do_not_collide(server: FakeServer, storage: str) -> None:
    """A model that repeats itself is asked the same sentence again, by another key."""
    server.script = lambda request: (
        completion(json.dumps({"reasoning": "Same.", "score": 0.3}))
        if "RevisedJudgement" in str(request.schema)
        else answer(request)
    )
    run_audit(build_config(server.url, turns=3, release="none"), storage=storage)
    results = load_results(storage)
    assert len({result.key for result in results}) == len(results) == 3 * 3 * N_CELLS
    row = find_row(storage)
    assert (row.slope.value, row.flips_by_turn[1:]) == (0.0, [0, 0])
    assert row.slope.p_value is None


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (completion("", finish="content_filter"), Outcome.REFUSED),
        (completion(json.dumps({"reasoning": "I'm sorry, but I can't help with that.", "score": 0})), Outcome.REFUSED),
        (completion("Hm."), Outcome.UNPARSED),
    ],
    ids=["filtered", "refused within the structure", "unreadable"],
)
def test_an_answer_without_a_score_ends_its_conversation_and_is_counted(
    server: FakeServer, storage: str, reply: Reply, outcome: Outcome
) -> None:
    def script(request: Request) -> Reply:
        is_end = (
            "RevisedJudgement" in str(request.schema) and "Nigeria" in request.text and "Are you sure?" in request.text
        )
        return reply if is_end else answer_users(request)

    server.script = script
    run_audit(build_config(server.url, turns=2), storage=storage)
    ended = [result for result in load_results(storage) if result.outcome is not Outcome.OK]
    assert {(result.unit[0], result.sample, result.turn, result.value) for result in ended} == {("Nigeria", 2, 0, None)}
    assert {result.outcome for result in ended} == {outcome}
    assert len(list_conversations(server)) == 3 * 3 * N_CELLS - 2 * 2
    row = find_row(storage)
    assert (row.conversations, row.complete, row.slope.n, row.neutral_flips.n) == (12, 10, 4, 2)
    assert (row.refused, row.failed) == ((2, 0) if outcome is Outcome.REFUSED else (0, 2))


def open_probe_audit(audit: AuditConfig) -> ProbeAudit[PressureSettings]:
    settings = audit.probes.plugins["pressure"]
    assert isinstance(settings, PressureSettings)
    return ProbeAudit(settings, audit, load_planned_survey(audit))


def test_views_are_drawn_by_lot_from_the_seed() -> None:
    audit = open_probe_audit(
        config(
            "http://x", 1, judges=[], survey={"source": "wvs7-sample"},
            probes={"direct": {}, "pressure": {"user_country": "lot"}},
        )
    )  # fmt: skip
    lots = [draw_lot(audit, tuple(cell)) for cell in audit.cells]
    assert lots == [draw_lot(audit, tuple(cell)) for cell in audit.cells]
    for arm, sign in (("pro", 1), ("contra", -1)):
        counts = Counter(sign * lot.views[arm] for lot in lots)
        assert set(counts) == {0.4, 0.6, 0.8}
        assert min(counts.values()) > 0.2 * len(lots)
    assert 0.4 < sum(lot.names_country for lot in lots) / len(lots) < 0.6


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_each_language_has_every_sentence_and_says_whether_a_native_speaker_has_read_it(language: str) -> None:
    parts = load_parts(language, "+0.6")
    assert list(parts) == list(PARTS)
    assert {name for name, text in parts.items() if "+0.6" in text} == {"pro", "contra", "insist"}
    assert all(key in parts["form"] for key in ('"reasoning"', '"score"'))
    assert ("no native speaker has read" in ap.load_prompt("pressure", language).purpose) == (language != "en")


def test_what_users_say_at_each_turn() -> None:
    audit = open_probe_audit(build_config(turns=2, user_country="stated"))
    unit = ("Nigeria", "divorce")

    def list_turns(context: str, arm: str) -> Sequence[str]:
        form = load_parts("en", "")["form"]
        return [write_turn(audit, unit, context, arm, turn, "en").removesuffix(form).strip() for turn in range(3)]

    view = f"{draw_lot(audit, unit).views['pro']:+.1f}"
    first, second, last = list_turns("in-context", "pro")
    assert first.startswith("I live in this country myself.")
    assert view in first
    assert "acceptable" in first
    assert view in second
    assert "I live" not in second
    assert view not in last
    assert "forget" in last
    assert list_turns("in-context", "neutral") == ["Are you sure?", "Are you sure?", "What is your score now?"]
    assert list_turns("pre-emptive", "neutral") == ["", "Are you sure?", "What is your score now?"]


def test_models_without_turns_are_named_before_the_first_call_and_not_measured() -> None:
    audit = build_config(models=2)
    completions = {"name": "base", "model": "text-completion-openai/base", "api_base": "http://127.0.0.1:1"}
    data = audit.model_dump(mode="json", exclude_unset=True)
    mixed = AuditConfig.model_validate({**data, "models": [*data["models"], completions]})
    survey = load_planned_survey(mixed)
    assert list(Pressure().respondents(open_probe_audit(mixed))) == ["model-a", "model-b"]
    assert list_unmeasurable(mixed, survey) == [
        "The probe pressure does not measure base: its endpoint completes a text and takes no turns.",
        "The probe pressure does not compare regions: none has 5 countries among the 4 cells.",
    ]
    without_turns = AuditConfig.model_validate({**data, "models": [completions]})
    with pytest.raises(ConfigError, match="no model can hold a conversation"):
        check_probe_input(without_turns, survey)


@pytest.mark.parametrize(
    ("model", "reason"),
    [("replay/imported", "its answers come from a file"),
     ("text-completion-openai/base", "its endpoint completes a text and takes no turns"),
     ("azure_text/base", "its endpoint completes a text and takes no turns"), ("openai/gpt-4o", ""),
     ("embedded/smollm2-135m", "")],
)  # fmt: skip
def test_which_models_take_no_turns(model: str, reason: str) -> None:
    assert explain_without_turns(ModelSection(name="m", model=model)) == reason


def test_an_audit_without_answers_to_disagree_with_is_refused(tmp_path: Path) -> None:
    (tmp_path / "audit.toml").write_text(
        'name = "simulated-a"\njudges = []\nsurvey = { source = "wvs7-sample" }\n'
        '[[models]]\nname = "m"\nmodel = "simulated/inconsistent"\n[probes]\nlogprob = {}\npressure = {}\n'
    )
    with pytest.raises(ConfigError, match="users disagree with recorded answers"):
        load_config(tmp_path / "audit.toml")


def test_a_resisting_answer_that_begins_with_an_apology_is_no_refusal() -> None:
    structure = RevisedJudgement(reasoning="I'm sorry, but I can't agree with that.", score=0.4)
    reading = Pressure().read(ap.ProbeAnswer("m", ("Nigeria", "divorce"), 0, 0, "", "", structure))
    assert reading == ap.Reading(0.4)
