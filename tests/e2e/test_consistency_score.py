"""The consistency score of recorded, asked and task answers, by a scripted judge: exact values, failures, calls."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from auditor.cli.status import report_run_failures
from auditor.config import AuditConfig
from auditor.cost_estimation.audit_estimate import estimate_audit
from auditor.errors import ConfigError, ImportFileError, NoUsableAnswerError
from auditor.probes.semantic.figures.schema import JudgedConsistencyRow, SemanticReport
from auditor.reports.output import render_report
from auditor.reports.sections.report import build_report_document
from auditor.run import load_planned_survey, open_audit, run_audit
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.results import load_traces
from tests.reports.sections.node_text import text_of
from tests.support.audit_configs import KEY_VARIABLE
from tests.support.document_figures import assert_report_shows_figures
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.scripted_tasks import audit as task_audit, solver
from tests.support.stored_rows import find_part

DUCK = ["The duck crossed the road.", "The duck did not cross the road.", "The animal crossed the road."]
PLANTED: dict[str, list[bool | None]] = {
    "sky": [True, False],
    "sea": [True, True, None, True, False],
    "sun": [False],
    "ice": [None, None],
}
"""By question, the judge's verdict on the first answer with each other one; None for a failure."""


def write_answers(folder: Path, texts: dict[str, list[str]]) -> Path:
    """Write a file of recorded answers, numbered from 1 for each question."""
    rows = [
        {"question_id": question, "question": f"What of the {question}?", "sample": number, "answer": text}
        for question, answers in texts.items()
        for number, text in enumerate(answers, 1)
    ]
    file = folder / "answers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def planted_texts() -> dict[str, list[str]]:
    """Answers to the planted questions; each names its number."""
    return {question: [f"{question} {i}" for i in range(len(verdicts) + 1)] for question, verdicts in PLANTED.items()}


def config(url: str, file: Path, score: dict[str, Any] | None = None, **probe: Any) -> AuditConfig:
    judge = {"name": "judge", "model": "openai/judge", "api_base": url, "api_key": f"os.environ/{KEY_VARIABLE}"}
    consistency = {"judge": "judge", "form": "paper", **(score or {})}
    semantic = {"questions": str(file), "subject": "any", "paraphrases": 0, "consistency": consistency}
    return AuditConfig.model_validate(
        {
            "name": "recorded",
            "models": [{"name": "sampled", "model": "replay/sampled", "answers": str(file)}],
            "judges": [judge],
            "probes": {"semantic": semantic | probe},
        }
    )


def judge_planted(request: Request) -> Reply:
    """Give the planted verdict on a pair of the planted answers: as a word, or a failure that is none."""
    context, sentence = request.body["messages"][-1]["content"].removeprefix("Context: ").split("\n\nSentence: ")
    assert context.endswith(" 0")
    question, number = sentence.split()
    verdict = PLANTED[question][int(number) - 1]
    if verdict is None:
        return completion("No context was sent.") if question == "sea" else completion(None, refusal="I will not say.")
    return completion("Yes." if verdict else "no, it does not")


def judged_row(storage: str) -> JudgedConsistencyRow:
    semantic = find_part(open_audit("recorded", storage=storage).report(), SemanticReport)
    [row] = semantic.judged
    return row


def test_the_worked_example_gives_one_half(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = lambda request: completion("no" if "not cross" in request.text else "yes")
    run_audit(config(server.url, write_answers(tmp_path, {"duck": DUCK})), storage=storage)
    row = judged_row(storage)
    assert (row.instances.value, row.score.value, row.consistent, row.asked, row.failed) == (0.5, 0.5, 1, 2, 0)
    for request, sentence in zip(server.requests, DUCK[1:], strict=True):
        messages = request.body["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant", "user"]
        assert messages[-1]["content"] == f"Context: {DUCK[0]}\n\nSentence: {sentence}"
        assert (request.body["temperature"], request.body["max_tokens"], request.schema) == (0.5, 50, None)
    document = build_report_document(open_audit("recorded", storage=storage).report())
    assert document.kind == "Audit of answers"
    text = text_of(document.sections)
    assert "Several answers to 1 question, all in the original wording." in text
    assert "(1 question, no 95% CI: an interval needs at least 5 questions, but there is 1 question)" in text
    assert "auditor check recorded --min-coverage YOURS" in text


def test_recorded_answers_that_are_all_empty_cannot_be_requested_again(server: FakeServer, tmp_path: Path) -> None:
    """The advice for a run without a usable answer is to correct the file."""
    audit = config(server.url, write_answers(tmp_path, {"duck": ["", ""]}))
    handle = run_audit(audit, storage=f"sqlite:///{tmp_path}/empty.db")
    with pytest.raises(NoUsableAnswerError) as error:
        report_run_failures(handle, audit)
    assert "Recorded answers cannot be requested again: correct their file." in error.value.how_to_fix


def test_planted_verdicts_give_both_means_without_an_encoder_and_failures_are_no_verdict(
    server: FakeServer, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run asks nothing, and a changed file is read once more."""

    def never(*args: object) -> None:
        raise AssertionError("an encoder was looked for")

    monkeypatch.setattr("auditor.models.embeddings.check_encoder", never)
    server.script = judge_planted
    texts = planted_texts()
    audit = config(server.url, write_answers(tmp_path, texts))
    run_audit(audit, storage=storage)
    valid = [[verdict for verdict in verdicts if verdict is not None] for verdicts in PLANTED.values()]
    row = judged_row(storage)
    assert row.score.value == pytest.approx(mean(verdict for verdicts in valid for verdict in verdicts))
    assert row.instances.value == pytest.approx(mean(mean(verdicts) for verdicts in valid if verdicts))
    assert row.instances.value != pytest.approx(row.score.value)
    assert (row.score.n, row.instances.n, row.questions) == (7, 3, 4)
    assert (row.asked, row.consistent, row.failed) == (10, 4, 3)
    report = open_audit("recorded", storage=storage).report()
    assert_report_shows_figures(report, "semantic")
    text = render_report(report, "markdown")
    assert "sampled has the consistency score" in text.replace("**", "")
    for nonsense in ("moral", "SaGE", "0 wordings", "Nothing has been measured"):
        assert nonsense not in text
    rows = [(row.method, row.planned, row.ok, row.losses, row.missing) for row in report.coverage.total]
    assert rows == [("answers", 14, 14, {}, 0), ("judgements", 10, 7, {"unparsed": 1, "refused": 2}, 0)]
    requests_before = len(server.requests)
    run_audit(audit, storage=storage)
    assert len(server.requests) == requests_before
    assert (report.cost.total.sums.calls, judged_row(storage).asked) == (10, 10)
    write_answers(tmp_path, {"sky": texts["sky"][:2], "sun": ["sun 0", "sun 1", ""]})
    run_audit(audit, storage=storage)
    assert len(server.requests) == requests_before
    assert (judged_row(storage).asked, judged_row(storage).consistent) == (2, 1)


def test_the_estimate_counts_the_pairs_of_the_file(server: FakeServer, tmp_path: Path) -> None:
    audit = config(server.url, write_answers(tmp_path, planted_texts() | {"empty": ["", "a"]}))
    [row] = estimate_audit(audit, load_planned_survey(audit), ()).rows
    assert (row.name, row.stage, row.calls.low, row.calls.high) == ("judge", "consistency", 10, 10)


def test_only_the_rows_of_the_named_model_are_compared(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = lambda request: completion("yes")
    rows = [f"{model},duck,What happened?,{i},{model} {i}" for model in ("sampled", "other") for i in range(3)]
    file = tmp_path / "two.csv"
    file.write_text("model,question_id,question,sample,answer\n" + "\n".join(rows) + "\n", encoding="utf-8")
    run_audit(config(server.url, file), storage=storage)
    assert judged_row(storage).asked == len(server.requests) == 2
    assert not any("other" in request.text for request in server.requests)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["duck,What?,1,a", "duck,What?,1,b"], "two rows of 'sampled' have the same question_id and sample"),
        (["duck,What?,one,a"], "'one' is not a whole number"),
        ([], "has no rows"),
    ],
)
def test_an_unusable_file_is_refused_before_the_first_call(
    server: FakeServer, storage: str, tmp_path: Path, rows: list[str], problem: str
) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("\n".join(["question_id,question,sample,answer", *rows]) + "\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match=problem):
        run_audit(config(server.url, file), storage=storage)
    assert server.requests == []


def test_answers_to_unknown_questions_are_refused(server: FakeServer, storage: str, tmp_path: Path) -> None:
    file = write_answers(tmp_path, {"duck": DUCK})
    with pytest.raises(ImportFileError, match=r"there is no question 'duck' in built-in"):
        run_audit(config(server.url, file, questions="built-in"), storage=storage)


@pytest.mark.parametrize(
    ("probe", "problem"),
    [
        ({"paraphrases": 5, "rot": False}, "the answers of 'sampled' are given"),
        ({"paraphrases": 1}, "one wording cannot be compared"),
        ({"consistency": None}, 'Add consistency = \\{ judge = "NAME" \\}'),
        ({"contradiction": "judge"}, "Remove contradiction"),
        ({"rivals": ["bleu"]}, "Remove rivals"),
        ({"questions": "task"}, '"task" needs a task'),
        ({"questions": "task", "paraphrases": 5}, '"task" needs a task'),
    ],
)
def test_settings_that_measure_nothing_are_refused(
    server: FakeServer, tmp_path: Path, probe: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        config(server.url, tmp_path / "answers.jsonl", **probe)


def test_a_missing_file_is_named(server: FakeServer, storage: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file '.*nowhere.csv'"):
        run_audit(config(server.url, tmp_path / "nowhere.csv"), storage=storage)


def judge_sums(request: Request) -> Reply:
    """Answer items of a task; as a judge, find answers consistent if their results are equal."""
    if request.schema != "Support":
        return solver(request)
    results = re.findall(r"^Answer: (\d+)$", request.text, re.MULTILINE)
    return completion(json.dumps({"reason": "Their results.", "supported": results[0] == results[1]}))


def test_task_answers_are_compared_without_further_questions(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = judge_sums
    semantic = {"questions": "task", "paraphrases": 0, "consistency": {"judge": "model-c"}}
    probes = {"direct": {"samples": 4, "temperature": 1.0}, "semantic": semantic}
    run_audit(task_audit(server.url, tmp_path, probes=probes, judges="peers"), storage=storage)
    schemas = Counter(request.schema for request in server.requests)
    assert schemas["TaskAnswer"] == 3 * 10 * 4  # three models, ten items
    assert schemas["Support"] == 2 * 10 * 3  # model-c does not judge its own answers
    assert not {"MoralAnswer", "OpenAnswer", "RuleOfThumb"} & set(schemas)
    semantic_report = find_part(open_audit("sums", storage=storage).report(), SemanticReport)
    results: dict[tuple[str, str], list[str | None]] = {}
    with open_database(storage, create=False) as db:
        traces = load_traces(db, audits.get_audit(db, "sums").id)
    for trace in sorted(traces, key=lambda trace: trace.sample):
        results.setdefault((trace.model, trace.cell.topic), []).append(trace.answer)
    for row in semantic_report.judged:
        same = [
            answer == answers[0] for (model, _), answers in results.items() if model == row.model
            for answer in answers[1:]
        ]  # fmt: skip
        assert row.instances.value == pytest.approx(mean(same))
        assert (row.asked, row.consistent, row.instances.n) == (30, sum(same), 10)
    assert [row.model for row in semantic_report.judged] == ["model-a", "model-b"]
    assert "moral" not in "".join(request.text for request in server.requests)


def test_questions_on_any_subject_lack_the_word_moral(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = lambda request: (
        completion(json.dumps({"answer": f"Water boils at {int(100 * request.draw())} degrees."}))
        if request.schema == "OpenAnswer"
        else completion(json.dumps({"reason": "None.", "supported": request.draw() < 0.5}))
    )
    file = tmp_path / "facts.csv"
    file.write_text("question_id,question\nboil,When does water boil?\nmelt,When does ice melt?\n", encoding="utf-8")
    audit = config(server.url, file, {"form": "standard", "samples": 3})
    live = audit.judge_models[0].model_copy(update={"name": "live", "model": "openai/live"})
    run_audit(audit.model_copy(update={"models": [live]}), storage=storage)
    assert Counter(request.schema for request in server.requests) == {"OpenAnswer": 6, "Support": 4}
    assert {request.body["temperature"] for request in server.requests} == {1.0, 0.0}
    assert "moral" not in json.dumps([request.body for request in server.requests]).lower()
    row = judged_row(storage)
    assert (row.model, row.asked, row.failed) == ("live", 4, 0)
    coverage = open_audit("recorded", storage=storage).report().coverage.total
    assert [(row.method, row.planned, row.ok) for row in coverage] == [("answers", 6, 6), ("judgements", 4, 4)]
