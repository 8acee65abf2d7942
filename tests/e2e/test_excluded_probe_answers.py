"""Answers of probes that a person declares invalid: one test for each kind, and their undo."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain import Outcome, SentencePairScore
from auditor.domain.audit_records import AnswerSelection
from auditor.probes.distribution.figures.schema import DistributionReport
from auditor.probes.distribution.opinions import Opinion
from auditor.probes.logic.comparisons import Comparison
from auditor.probes.logic.figures.schema import LogicReport
from auditor.probes.semantic.answer_imports import import_answers
from auditor.probes.semantic.records import MoralAnswerRecord, PairVerdict, QuestionScore
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from auditor.run.audit_changes import exclude_answers, undo_exclusion
from auditor.run.rederivation import derive_again
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from tests.e2e.test_consistency_score import judge_sums
from tests.e2e.test_logprob import with_echo
from tests.support.audit_configs import config, semantic_audit
from tests.support.comparison_judge import TOPICS, scripted
from tests.support.fake_server import FakeServer, Reply, Request, answer, completion
from tests.support.fixed_address import word_encoder
from tests.support.known import known
from tests.support.opinion_surveys import COUNTRIES, TOPICS as OPINION_TOPICS, write_opinion_survey
from tests.support.scripted_tasks import audit as task_audit, sum_task
from tests.support.stored_rows import find_part

REASON = "The server ran with a wrong system prompt."
MODEL_A = AnswerSelection(model="model-a")


@pytest.fixture(autouse=True)
def encoder_without_weights() -> Iterator[None]:
    with word_encoder():
        yield


def load(storage: str, *record_classes: type, name: str = "scripted") -> dict[type, list[Any]]:
    """The stored records of some classes."""
    with open_database(storage, create=False) as db:
        audit_id = audits.get_audit(db, name).id
        return {record_class: load_records(db, audit_id, record_class) for record_class in record_classes}


def report_of(storage: str, name: str = "scripted") -> Report:
    return open_audit(name, storage=storage).report()


def to_json(report: Report) -> str:
    return re.sub(r'"[^"]*_at": "[^"]*"', "", render_report(report, "json"))


def losses(report: Report, stage: str, method: str | None = None) -> tuple[int, int, Mapping[str, int]]:
    """Planned, usable and lost answers of a stage."""
    [row] = [row for row in report.coverage.total if (row.stage, row.method) == (stage, method)]
    return row.planned, row.ok, row.losses


def assert_undone(server: FakeServer | None, audit: AuditConfig | None, storage: str, before: Any, text: str) -> None:
    """An undo restores all records and the report; neither it nor a run before it asks anything.

    Records of a run after the exclusion are those that follow from the answers.
    """
    n_requests = len(server.requests) if server is not None else 0
    name = "scripted" if audit is None else audit.name
    if audit is not None:
        excluded = load(storage, *before, name=name)
        run_audit(audit, storage=storage)
        assert load(storage, *before, name=name) == excluded
        with open_database(storage, create=False) as db:
            check = derive_again(db, audits.get_audit(db, name)).check
        assert not known(check).changed
    undo_exclusion(name, 1, storage=storage)
    assert load(storage, *before, name=name) == before
    assert to_json(report_of(storage, name)) == text
    if server is not None:
        assert len(server.requests) == n_requests


def test_log_probabilities(server: FakeServer, storage: str) -> None:
    server.script = with_echo
    audit = config(server.url, 2, judges=[], probes={"logprob": {}})
    run_audit(audit, storage=storage)
    before, text = load(storage, SentencePairScore), to_json(report_of(storage))
    exclude_answers("scripted", AnswerSelection(model="model-a", country="Japan"), REASON, storage=storage)
    excluded = [x for x in load(storage, SentencePairScore)[SentencePairScore] if x.outcome is Outcome.EXCLUDED]
    assert {(x.model, x.cell.country, x.difference) for x in excluded} == {("model-a", "Japan", None)}
    report = report_of(storage)
    assert losses(report, "direct", "logprob") == (180, 150, {"excluded": 30})
    assert [row.n for row in report.alignment if row.method == "logprob"] == [6, 9]
    assert_undone(server, audit, storage, before, text)


def test_distributions(storage: str, tmp_path: Path) -> None:
    section = {
        "source": str(write_opinion_survey(tmp_path)), "countries": COUNTRIES[:3], "topics": OPINION_TOPICS[:2],
    }  # fmt: skip
    names = ("one-opinion", "equal-opinions")
    audit = AuditConfig.model_validate(
        {
            "name": "simulated-opinions", "survey": section, "judges": [], "seed": 3,
            "models": [{"name": name, "model": f"simulated/{name}"} for name in names],
            "probes": {"distribution": {"modes": ["verbalized"]}},
        }
    )  # fmt: skip
    run_audit(audit, storage=storage)
    before, text = load(storage, Opinion, name=audit.name), to_json(report_of(storage, audit.name))
    n = len(before[Opinion])
    exclude_answers(audit.name, AnswerSelection("one-opinion", COUNTRIES[0]), REASON, storage=storage)
    excluded = [x for x in load(storage, Opinion, name=audit.name)[Opinion] if x.outcome is Outcome.EXCLUDED]
    assert {(x.model, x.cell.country, x.shares) for x in excluded} == {("one-opinion", COUNTRIES[0], None)}
    report = report_of(storage, audit.name)
    assert losses(report, "distribution", "verbalized") == (n, n - len(excluded), {"excluded": len(excluded)})
    distribution = find_part(report, DistributionReport)
    assert {row.model: row.n_cells for row in distribution.models} == {"one-opinion": 4, "equal-opinions": 6}
    assert_undone(None, audit, storage, before, text)


def test_comparisons(server: FakeServer, storage: str) -> None:
    server.script = scripted(TOPICS.index)
    survey = {"source": "wvs7-sample", "countries": ["Germany", "Japan"], "topics": TOPICS[:3]}
    audit = config(server.url, 2, survey=survey, judges=[], probes={"logic": {"samples": 0, "countries": "all"}})
    run_audit(audit, storage=storage)
    before, text = load(storage, Comparison), to_json(report_of(storage))
    assert len(before[Comparison]) == 48
    for selection, n in (
        (MODEL_A, 24),
        (AnswerSelection(country="Japan"), 24),
        (AnswerSelection("model-a", "Japan", TOPICS[0]), 8),
        (AnswerSelection("model-a", probe="logic"), 24),
    ):
        exclusion = exclude_answers("scripted", selection, REASON, storage=storage)
        assert exclusion.n_answers == n
        assert sum(x.outcome is Outcome.EXCLUDED for x in load(storage, Comparison)[Comparison]) == n
        if n < 24:
            assert losses(report_of(storage), "logic") == (48, 48 - n, {"excluded": n})
            excluded = [x for x in load(storage, Comparison)[Comparison] if x.outcome is Outcome.EXCLUDED]
            details = {(x.judge, x.context, TOPICS[0] in (x.item_a, x.item_b), x.decision) for x in excluded}
            assert details == {("model-a", "Japan", True, None)}
        undo_exclusion("scripted", exclusion.id, storage=storage)
        assert load(storage, Comparison) == before
    exclusion = exclude_answers("scripted", MODEL_A, REASON, storage=storage)
    logic = find_part(report_of(storage), LogicReport)
    assert [row.commutativity.value for row in logic.judges] == [None, 1.0]
    run_audit(audit, storage=storage)
    undo_exclusion("scripted", exclusion.id, storage=storage)
    assert to_json(report_of(storage)) == text


def test_comparisons_of_direct_answers_leave_with_these(server: FakeServer, storage: str) -> None:
    server.script = lambda request: completion('{"answer": "A"}') if request.schema == "Preference" else answer(request)
    survey = {"source": "wvs7-sample", "countries": ["Germany"], "topics": TOPICS[:2]}
    probes = {"direct": {"samples": 1}, "logic": {"samples": 0, "items": "traces", "relation": "preference"}}
    audit = config(server.url, 3, survey=survey, judges=[], probes=probes)
    run_audit(audit, storage=storage)
    before, text = load(storage, Comparison), to_json(report_of(storage))
    exclude_answers("scripted", AnswerSelection("model-a", probe="direct"), REASON, storage=storage)
    comparisons = load(storage, Comparison)[Comparison]
    assert {x.outcome is Outcome.EXCLUDED for x in comparisons if "model-a #0" in (x.item_a, x.item_b)} == {True}
    assert {x.outcome is Outcome.EXCLUDED for x in comparisons if "model-a #0" not in (x.item_a, x.item_b)} == {False}
    assert_undone(server, audit, storage, before, text)


def answer_question(request: Request) -> Reply:
    """Answers to questions that depend on the wording, rules of thumb, and verdicts of a judge."""
    texts = {
        "MoralAnswer": {"answer": f"It depends on {int(1000 * request.draw())} things."},
        "RuleOfThumb": {"rule": f"You should think of {int(1000 * request.draw())} things."},
        "Support": {"reason": "It follows.", "supported": request.draw() < 0.5},
        "Contradiction": {"reason": "They differ.", "contradict": request.draw() < 0.5},
    }
    return completion(json.dumps(texts[request.schema or ""]))


def test_answers_to_questions_with_their_rules_and_verdicts(server: FakeServer, storage: str) -> None:
    server.script = answer_question
    consistency = {"judge": "model-c", "samples": 3}
    audit = semantic_audit(server.url, 3, limit=3, consistency=consistency, contradiction="model-c", encoder="words")
    run_audit(audit, storage=storage)
    classes = (MoralAnswerRecord, PairVerdict, QuestionScore)
    before, text = load(storage, *classes), to_json(report_of(storage))
    question = before[MoralAnswerRecord][0].question
    n = sum(x.model == "model-a" and x.question == question for x in before[MoralAnswerRecord])
    assert (
        exclude_answers("scripted", AnswerSelection("model-a", topic=question), REASON, storage=storage).n_answers == n
    )

    after = load(storage, *classes)
    excluded = [x for x in after[MoralAnswerRecord] if x.outcome is Outcome.EXCLUDED]
    assert {(x.model, x.question, x.text, x.rot) for x in excluded} == {("model-a", question, None, None)}
    assert {x.rot_outcome for x in excluded} == {None, Outcome.EXCLUDED}
    assert not [x for x in after[PairVerdict] if (x.model, x.question) == ("model-a", question)]
    assert len(after[PairVerdict]) < len(before[PairVerdict])
    values = [x.value for x in after[QuestionScore] if (x.model, x.question) == ("model-a", question)]
    assert values == [None] * len(values)
    for method in ("answers", "rules"):  # 5 wordings
        assert losses(report_of(storage), "semantic", method) == (45, 40, {"excluded": 5})
    undo_exclusion("scripted", 1, storage=storage)
    assert load(storage, *classes) == before
    assert to_json(report_of(storage)) == text
    n_requests = len(server.requests)
    exclusion = exclude_answers("scripted", MODEL_A, REASON, storage=storage)
    run_audit(audit, storage=storage)
    undo_exclusion("scripted", exclusion.id, storage=storage)
    run_audit(audit, storage=storage)
    assert load(storage, *classes) == before
    assert len(server.requests) == n_requests


def test_no_other_pair_takes_the_place_of_an_excluded_one_of_the_worst(server: FakeServer, storage: str) -> None:
    """It would count beside the excluded pair after an undo."""
    server.script = answer_question
    audit = semantic_audit(server.url, 3, limit=6, worst=2, contradiction="model-c", encoder="words")
    run_audit(audit, storage=storage)
    before, text = load(storage, PairVerdict), to_json(report_of(storage))
    verdict = before[PairVerdict][0]
    exclude_answers("scripted", AnswerSelection(verdict.model, topic=verdict.question), REASON, storage=storage)
    assert load(storage, PairVerdict)[PairVerdict] == before[PairVerdict][1:]
    assert_undone(server, audit, storage, before, text)


@pytest.mark.parametrize(("sample", "pairs"), [(0, [(0, 1), (0, 2)]), (1, [(0, 1)])])
def test_answers_to_a_task_leave_with_the_direct_answers(
    server: FakeServer, storage: str, tmp_path: Path, sample: int, pairs: list[tuple[int, int]]
) -> None:
    server.script = judge_sums
    semantic = {"questions": "task", "paraphrases": 0, "consistency": {"judge": "model-c"}}
    probes = {"direct": {"samples": 3, "temperature": 1.0}, "semantic": semantic}
    audit = task_audit(server.url, tmp_path, task=sum_task(tmp_path, items=2), probes=probes, judges=[])
    run_audit(audit, storage=storage)
    before, text = load(storage, MoralAnswerRecord, PairVerdict, name="sums"), to_json(report_of(storage, "sums"))
    exclude_answers("sums", AnswerSelection("model-a", topic="sum00", sample=sample), REASON, storage=storage)
    after = load(storage, MoralAnswerRecord, PairVerdict, name="sums")
    excluded = [x for x in after[MoralAnswerRecord] if x.outcome is Outcome.EXCLUDED]
    assert [(x.model, x.question, x.sample, x.text) for x in excluded] == [("model-a", "sum00", sample, None)]
    lost = [x for x in before[PairVerdict] if x not in after[PairVerdict]]
    assert [(x.model, x.question, x.left, x.right) for x in lost] == [("model-a", "sum00", *pair) for pair in pairs]
    assert_undone(server, audit, storage, before, text)


def test_imported_answers_to_questions(storage: str, tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    rows = [f"{m},{q},{w},It depends on {m} and {w}." for m in "ab" for q in ("q1", "q2") for w in (1, 2, 3)]
    file.write_text("\n".join(["model,question_id,paraphrase,answer", *rows]))
    import_answers(file, audit="scripted", storage=storage)
    before, text = load(storage, MoralAnswerRecord, QuestionScore), to_json(report_of(storage))
    exclude_answers("scripted", AnswerSelection("a", topic="q1"), REASON, storage=storage)
    for _ in range(2):
        scores = load(storage, QuestionScore)[QuestionScore]
        values = {(x.model, x.question): x.value for x in scores if x.metric == "sage"}
        assert values["a", "q1"] is None
        assert values["b", "q1"] is not None
        assert losses(report_of(storage), "semantic", "answers") == (12, 9, {"excluded": 3})
        import_answers(file, audit="scripted", storage=storage)
    undo_exclusion("scripted", 1, storage=storage)
    assert load(storage, MoralAnswerRecord, QuestionScore) == before
    assert to_json(report_of(storage)) == text
