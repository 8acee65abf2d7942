"""Asking again for unusable answers: once each, with the first outcome kept in coverage and the number on page one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain import Outcome, SentencePairScore
from auditor.domain.audit_records import AnswerSelection
from auditor.errors import UsageError
from auditor.probe_interface import ProbeResult
from auditor.probes.distribution.opinions import Opinion
from auditor.probes.logic.comparisons import Comparison
from auditor.probes.semantic.records import MoralAnswerRecord, PairVerdict
from auditor.reports.data.coverage.counts import CoverageRow
from auditor.reports.data.report_schema import Report
from auditor.reports.data.verification import verify_audit
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from auditor.run.audit_changes import exclude_answers, undo_exclusion
from auditor.run.rederivation import derive_again
from auditor.storage import audits, results
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from tests.e2e.test_excluded_probe_answers import answer_question
from tests.e2e.test_logprob import with_letters
from tests.support.audit_configs import config, semantic_audit
from tests.support.comparison_judge import TOPICS, scripted
from tests.support.fake_server import FakeServer, Reply, Request, Script, answer, completion
from tests.support.fixed_address import word_encoder
from tests.support.known import known
from tests.support.opinion_surveys import COUNTRIES, TOPICS as OPINION_TOPICS, write_opinion_survey
from tests.support.probe_packages import install_package, use_packages
from tests.support.stored_rows import load_stored

CELLS = 9


class RefusesFirst:
    """A script: the first requests of each chosen kind of question are refused, further ones are answered."""

    def __init__(self, script: Script, is_chosen: Callable[[Request], bool], times: int = 1) -> None:
        self.script, self.is_chosen, self.times = script, is_chosen, times
        self.asked = Counter[str]()

    def __call__(self, request: Request) -> Reply:
        if request.body["model"].endswith("-a") and self.is_chosen(request):
            question = f"{request.body.get('messages')}{request.body.get('seed')}"
            self.asked[question] += 1
            if self.asked[question] <= self.times:
                return completion("", finish="content_filter")
        return self.script(request)


def is_about_japan(request: Request) -> bool:
    return "Japan" in request.text


def audit(server: FakeServer, **changes: Any) -> Any:
    return config(server.url, 2, **({"judges": [], "probes": {"direct": {"samples": 1}}} | changes))


def brief(report: Report) -> str:
    return " ".join(render_report(report, "text", is_brief=True).split())


def test_refusals_of_chosen_models_are_asked_again_once_and_stay_in_coverage(server: FakeServer, storage: str) -> None:
    server.script = RefusesFirst(answer, is_about_japan)
    run_audit(audit(server), storage=storage)
    run_audit(audit(server), storage=storage, ask_again=Outcome.REFUSED, ask_again_models=["model-b"])
    run_audit(audit(server), storage=storage, ask_again=Outcome.UNPARSED)
    with pytest.raises(UsageError, match="no model or judge named 'model-z'"):
        run_audit(audit(server), storage=storage, ask_again=Outcome.REFUSED, ask_again_models=["model-z"])
    with pytest.raises(UsageError, match="cannot be asked for again"):
        run_audit(audit(server), storage=storage, ask_again=Outcome.TIMEOUT)
    assert len(server.requests) == 2 * CELLS
    run_audit(audit(server), storage=storage, ask_again=Outcome.REFUSED)
    assert len(server.requests) == 2 * CELLS + 3
    repeated = [trace for trace in load_stored(storage, results.load_traces) if trace.first_outcome is not None]
    assert {(trace.model, trace.outcome, trace.first_outcome) for trace in repeated} == {
        ("model-a", Outcome.OK, Outcome.REFUSED)
    }
    assert all(trace.key != trace.repeat_key and trace.score is not None for trace in repeated)

    report = open_audit("scripted", storage=storage).report()
    [total] = [row for row in report.coverage.total if row.stage == "direct"]
    assert (total.planned, total.ok, total.losses, total.missing) == (18, 15, {"refused": 3}, 0)
    assert (total.asked_again, total.answered_again) == (3, 3)
    assert known(report.refusals).total.value == pytest.approx(3 / 18)
    [row] = [row for row in report.alignment if row.model == "model-a"]
    assert (row.n, row.lost_samples.lost) == (CELLS, 0)
    assert "3 of the planned answers had no usable answer and were asked for again" in brief(report)


def test_a_second_answer_is_final_and_used_by_later_runs(server: FakeServer, storage: str) -> None:
    server.script = RefusesFirst(answer, is_about_japan, times=2)
    for ask_again in (None, Outcome.REFUSED, Outcome.REFUSED, None):
        run_audit(audit(server), storage=storage, ask_again=ask_again)
    assert len(server.requests) == 2 * CELLS + 3
    refused = [trace for trace in load_stored(storage, results.load_traces) if trace.outcome is Outcome.REFUSED]
    assert len(refused) == 3
    assert all(trace.repeat_key for trace in refused)
    [total] = open_audit("scripted", storage=storage).report().coverage.total
    assert (total.losses, total.asked_again, total.answered_again) == ({"refused": 3}, 3, 0)


def test_judges_are_asked_again_too(server: FakeServer, storage: str) -> None:
    server.script = RefusesFirst(answer, lambda request: not request.is_direct_question)
    settings = {"judges": "peers"}
    run_audit(audit(server, **settings), storage=storage)
    n_requests = len(server.requests)
    [before] = [row for row in open_audit("scripted", storage=storage).report().coverage.total if row.stage == "review"]
    assert before.losses == {"refused": CELLS}
    run_audit(audit(server, **settings), storage=storage, ask_again=Outcome.REFUSED)
    assert len(server.requests) == n_requests + CELLS
    report = open_audit("scripted", storage=storage).report()
    [after] = [row for row in report.coverage.total if row.stage == "review"]
    assert (after.losses, after.asked_again, after.answered_again) == ({"refused": CELLS}, CELLS, CELLS)
    assert [row.asked_again for row in report.coverage.judges] == [CELLS, 0]
    assert all(row.agreement.value is not None for row in report.peer_agreement)


@pytest.fixture(autouse=True)
def encoder_without_weights() -> Iterator[None]:
    with word_encoder():
        yield


def load(storage: str, record_class: type[Any]) -> list[Any]:
    return load_stored(storage, load_records, record_class)


def coverage(storage: str) -> dict[tuple[str, str | None], CoverageRow]:
    """Coverage by stage and method."""
    report = open_audit("scripted", storage=storage).report()
    return {(row.stage, row.method): row for row in report.coverage.total}


def ask_again(
    server: FakeServer, audit: AuditConfig, storage: str, n_calls: int, rows: Sequence[tuple[str, str | None, int]]
) -> None:
    """Run, ask again twice and run once more: only one run asks, once each; coverage counts the first outcomes.

    Args:
        n_calls: number of calls that the run sends that asks again.
        rows: stage and method of coverage, and number of answers that are asked for again.
    """
    run_audit(audit, storage=storage)
    n_requests, before = len(server.requests), coverage(storage)
    run_audit(audit, storage=storage, ask_again=Outcome.REFUSED, ask_again_models=["model-b"])
    assert len(server.requests) == n_requests
    run_audit(audit, storage=storage, ask_again=Outcome.REFUSED)
    for outcome in (Outcome.REFUSED, None):
        assert len(server.requests) == n_requests + n_calls
        after = coverage(storage)
        for stage, method, n in rows:
            row = after[stage, method]
            assert (row.asked_again, row.answered_again, row.losses["refused"], row.missing) == (n, n, n, 0)
            assert n >= before[stage, method].losses["refused"]
        run_audit(audit, storage=storage, ask_again=outcome)
    assert len(server.requests) == n_requests + n_calls
    report = open_audit("scripted", storage=storage).report()
    assert "had no usable answer and were asked for again, once each" in brief(report)
    assert report.cost.total.sums.calls == len(server.requests)


def assert_repeated(records: Sequence[Any], n: int) -> None:
    """A number of records were asked for again, and are usable now."""
    repeated = [record for record in records if record.first_outcome is not None]
    assert {(record.first_outcome, record.outcome) for record in repeated} == {(Outcome.REFUSED, Outcome.OK)}
    assert len(repeated) == n
    assert all(record.repeat_key not in (None, record.key) for record in repeated)


def test_log_probabilities(server: FakeServer, storage: str) -> None:
    server.script = RefusesFirst(with_letters, lambda request: "Japan" in request.text and "logprobs" in request.body)
    survey = {"source": "wvs7-sample", "countries": ["Germany", "Japan"], "topics": ["divorce"]}
    audit = config(server.url, 2, survey=survey, judges=[], probes={"logprob": {}})
    ask_again(server, audit, storage, 2 * 10, [("direct", "logprob", 10)])
    pairs = load(storage, SentencePairScore)
    assert_repeated(pairs, 10)
    assert all(pair.swapped_repeat_key is not None for pair in pairs if pair.first_outcome is not None)
    report = open_audit("scripted", storage=storage).report()
    assert [row.n for row in report.alignment if row.method == "logprob"] == [2, 2]


def answer_opinion(request: Request) -> Reply:
    """State the same shares of every question, or the first answer of the scale."""
    schema = request.body["response_format"]["json_schema"]["schema"]
    n = schema["properties"]["counts"].get("minItems") or 4
    return completion(json.dumps({"counts": [100 - 10 * (n - 1), *[10] * (n - 1)]}))


def test_distributions(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = RefusesFirst(answer_opinion, lambda request: COUNTRIES[0] in request.text)
    section = {
        "source": str(write_opinion_survey(tmp_path)), "countries": COUNTRIES[:2], "topics": OPINION_TOPICS[:2],
    }  # fmt: skip
    probes = {"distribution": {"modes": ["verbalized"]}}
    audit = config(server.url, 2, survey=section, judges=[], probes=probes)
    ask_again(server, audit, storage, 4, [("distribution", "verbalized", 4)])
    assert_repeated(load(storage, Opinion), 4)


def test_comparisons(server: FakeServer, storage: str) -> None:
    server.script = RefusesFirst(scripted(TOPICS.index), lambda request: True)
    survey = {"source": "wvs7-sample", "countries": ["Germany"], "topics": TOPICS[:3]}
    audit = config(server.url, 2, survey=survey, judges=[], probes={"logic": {"samples": 0}})
    ask_again(server, audit, storage, 12, [("logic", None, 12)])
    assert_repeated(load(storage, Comparison), 12)


def require_derived(storage: str) -> None:
    """All stored results follow from the recorded answers, and all changes are in the hash chain."""
    with open_database(storage, create=False) as db:
        check = derive_again(db, audits.get_audit(db, "scripted")).check
        verification = verify_audit(db, "scripted")
    assert verification.is_consistent, verification
    assert not known(check).changed


def compare_first_answers(server: FakeServer, storage: str) -> AuditConfig:
    """Run an audit that compares traces, of which about half are refused at first."""

    def script(request: Request) -> Reply:
        return completion('{"answer": "A"}') if request.schema == "Preference" else answer(request)

    server.script = RefusesFirst(script, lambda request: request.is_direct_question and request.draw() < 0.5)
    survey = {"source": "wvs7-sample", "countries": ["Germany"], "topics": TOPICS[:3]}
    logic = {"items": "traces", "both_orders": False, "negated": False, "samples": 2, "sampled_pairs": 1}
    audit = config(server.url, 2, survey=survey, judges=[], probes={"direct": {"samples": 3}, "logic": logic})
    run_audit(audit, storage=storage)
    return audit


def test_comparisons_of_answers_that_came_later_take_the_place_of_others(server: FakeServer, storage: str) -> None:
    audit = compare_first_answers(server, storage)
    assert len(load(storage, Comparison)) < 2 * 3 * (15 + 2)
    run_audit(audit, storage=storage, ask_again=Outcome.REFUSED)
    comparisons = load(storage, Comparison)
    assert len(comparisons) == 2 * 3 * (15 + 2)  # six answers on each of three topics: 15 pairs, and one repeated twice
    shown = {(x.judge, x.context, x.item_a, x.item_b) for x in comparisons}
    assert not [x for x in comparisons if (x.judge, x.context, x.item_b, x.item_a) in shown]
    require_derived(storage)


def test_an_undo_restores_no_comparison_that_others_replaced_meanwhile(server: FakeServer, storage: str) -> None:
    """Else both orders of two items would be compared, where the plan has one."""
    audit = compare_first_answers(server, storage)
    exclude_answers("scripted", AnswerSelection("model-b", sample=1), "test", storage=storage)
    run_audit(audit, storage=storage, ask_again=Outcome.REFUSED)
    require_derived(storage)
    undo_exclusion("scripted", 1, storage=storage)
    require_derived(storage)
    run_audit(audit, storage=storage)
    assert len(load(storage, Comparison)) == 2 * 3 * (15 + 2)


def test_verdicts_on_answers_that_came_later_take_the_place_of_others(server: FakeServer, storage: str) -> None:
    server.script = RefusesFirst(
        answer_question, lambda request: request.schema == "MoralAnswer" and request.draw() < 0.5
    )
    consistency = {"judge": "model-b", "samples": 4}
    audit = semantic_audit(server.url, limit=6, paraphrases=0, consistency=consistency)
    run_audit(audit, storage=storage)
    assert {x.left for x in load(storage, PairVerdict)} > {0}
    run_audit(audit, storage=storage, ask_again=Outcome.REFUSED)
    assert Counter((x.left, x.right) for x in load(storage, PairVerdict)) == {(0, 1): 6, (0, 2): 6, (0, 3): 6}
    require_derived(storage)


def test_answers_to_questions_with_their_rules_and_verdicts(server: FakeServer, storage: str) -> None:
    server.script = RefusesFirst(answer_question, lambda request: True)
    audit = semantic_audit(server.url, limit=2, encoder="words")
    run_audit(audit, storage=storage)
    assert coverage(storage)["semantic", "answers"].losses == {"refused": 10}
    # The rules behind second answers are refused at first, so that a further run asks for them again.
    run_audit(audit, storage=storage, ask_again=Outcome.REFUSED)
    ask_again(server, audit, storage, 0, [("semantic", "answers", 10), ("semantic", "rules", 10)])
    answers = load(storage, MoralAnswerRecord)
    assert_repeated(answers, 10)
    assert {(x.rot_first_outcome, x.rot_outcome) for x in answers if x.model == "model-a"} == {
        (Outcome.REFUSED, Outcome.OK)
    }


def test_verdicts_on_answers(server: FakeServer, storage: str) -> None:
    server.script = RefusesFirst(answer_question, lambda request: request.schema == "Support")
    consistency = {"judge": "model-a", "samples": 3}
    audit = semantic_audit(server.url, limit=2, paraphrases=0, consistency=consistency)
    ask_again(server, audit, storage, 4, [("semantic", "judgements", 4)])
    assert_repeated(load(storage, PairVerdict), 4)


TALK = """
from auditor.probes import Message, Probe, ProbeSettings, Question, Reading

class TalkSettings(ProbeSettings):
    pass

class Talk(Probe):
    interface_version = 1
    settings = TalkSettings
    title = "Talk"
    reader_version = 1
    max_turns = 2

    def plan(self, audit):
        return audit.cells

    def ask(self, audit, model, units):
        return [Question(tuple(unit), (Message("user", f"What of {unit[1]} in {unit[0]}?"),)) for unit in units]

    def ask_next(self, audit, turns):
        last = turns[-1]
        question = Message("user", "Are you sure?")
        return Question(last.question.unit, (*last.messages, question)) if last.result.value else None

    def read(self, answer):
        return Reading(answer.text)

    def measure(self, audit, results):
        from pydantic import BaseModel

        class Figures(BaseModel):
            usable: int

        return Figures(usable=sum(result.outcome == "ok" for result in results))

    def section(self, figures):
        return None
"""


def test_probes_of_other_packages(
    server: FakeServer, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path / "site", "talk = talk:Talk", TALK, name="talk-probe", module_name="talk")
    use_packages(monkeypatch, tmp_path / "site")
    server.script = RefusesFirst(lambda request: completion("It depends."), is_about_japan)
    audit = config(server.url, 2, judges=[], probes={"talk": {}})
    run_audit(audit, storage=storage)
    # A question that follows a second answer is asked for the first time, and refused.
    n_requests = len(server.requests)
    run_audit(audit, storage=storage, ask_again=Outcome.REFUSED)
    assert len(server.requests) == n_requests + 3 * 3
    ask_again(server, audit, storage, 0, [("talk", None, 6)])
    results = load(storage, ProbeResult)
    assert len(results) == 2 * 9 * 2
    assert_repeated(results, 6)
    selection = AnswerSelection(model="model-a", country="Germany")
    for n in (36, 30):
        with open_database(storage, create=False) as db:
            comparison = derive_again(db, audits.get_audit(db, "scripted")).check
        assert known(comparison).by_probe["talk"] == {"read": n, "changed": 0}
        if n == 36:
            exclude_answers("scripted", selection, "Wrong.", storage=storage)
