"""Judges of tasks: experiments on them, guesses at the author, and whether verdicts follow accuracy."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.agents.fault_injection import TASK_FAULTS, TracePool, inject_faults
from auditor.domain import Cell, Outcome, Trace
from auditor.domain.decisions import TASK_REVIEW
from auditor.errors import UsageError
from auditor.experiments.judges import bias, holdout, planted, validity
from auditor.experiments.stored_audit import ExperimentContext
from auditor.reports.data.task_validity import TaskValidityReport
from auditor.run import open_audit, run_audit
from auditor.tasks import load_task, survey_from_task
from tests.reports.sections.node_text import text_of
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer, Reply, Request, completion, review_of_answer
from tests.support.families_of_tests import run_checked
from tests.support.scripted_tasks import SKILL, audit, solver, sum_task

IRRELEVANT = "rained more than usual"
MODELS = {f"scripted-{letter}": 0.2 + 0.1 * i for i, letter in enumerate("abcdef")}


def read_review(text: str) -> tuple[int, int, int]:
    """The sum of a reviewed item, the answer, and the sum that the reasoning states."""
    addends, stated = re.search(r"What is (\d+) \+ (\d+)\?", text), re.search(r"make (\d+)", text)
    answer = re.search(r"^Answer of \w+: (\d+)$", text, re.MULTILINE)
    assert addends is not None
    assert answer is not None
    return int(addends[1]) + int(addends[2]), int(answer[1]), int(stated[1]) if stated else -1


def careful_judge(request: Request) -> Reply:
    """A judge that notices answers unlike the reasoning and irrelevant steps, and prefers what is shown second."""
    if request.schema == TASK_REVIEW:
        _, answer, stated = read_review(request.text)
        return completion(json.dumps(review_of_answer(answer == stated and IRRELEVANT not in request.text)))
    if request.schema == "SidePreference":
        assert "not told the right answer" in request.text
        return completion(json.dumps({"reason": "Shorter.", "better": "SECOND"}))
    if request.schema == "AuthorGuess":
        return completion(json.dumps({"analyst": 1}))
    return solver(request)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeServer, Path]]:
    """The server of careful judges, and the database of an audit that they have judged."""
    folder = tmp_path_factory.mktemp("judged")
    with FakeServer(careful_judge) as server:
        probes = {"direct": {"samples": 2}, "review": {"guess": True}}
        run_audit(audit(server.url, folder, "exact", probes=probes), storage=f"sqlite:///{folder}/audits.db")
        yield server, folder / "audits.db"


@pytest.fixture
def context(judged: tuple[FakeServer, Path], tmp_path: Path) -> ExperimentContext:
    """A copy of that database, with which experiments can be run."""
    return ExperimentContext(f"sqlite:///{shutil.copy(judged[1], tmp_path)}")


def test_planted_faults_of_a_task_are_noticed_and_named(context: ExperimentContext) -> None:
    result = planted(context, "sums", 12)
    panel = open_audit("sums", storage=context.storage).report().panel
    assert {row.fault for row in panel.faults} == set(TASK_FAULTS)
    for row in panel.faults:
        if row.fault != "wrong step":
            assert row.difference.value == pytest.approx(1)
    assert "contradicting answer" in text_of(result.document.sections)


def test_position_padding_and_own_answers_are_tested_on_a_task(context: ExperimentContext) -> None:
    bias(context, "sums", 6)
    panel = open_audit("sums", storage=context.storage).report().panel
    assert panel.positions
    assert all(row.first.value == 0 for row in panel.positions)
    assert all(row.padding.value == 0 for row in panel.judges)
    assert panel.own_traces


def test_judges_of_a_task_guess_the_author_only(context: ExperimentContext, judged: tuple[FakeServer, Path]) -> None:
    guesses = open_audit("sums", storage=context.storage).report().panel.guesses
    assert {row.what for row in guesses} == {"author"}
    requests = [request for request in judged[0].requests if request.schema == "AuthorGuess"]
    assert requests
    assert all("What is" in request.text and "Countries" not in request.text for request in requests)


def test_three_models_have_no_correlation_and_a_holdout_says_why(context: ExperimentContext) -> None:
    [row] = holdout(context, "sums", 20).data
    assert row.method == "accuracy"
    assert row.prediction.unseen_cells.value is None
    report = run_checked(validity, context, "sums").data
    assert isinstance(report, TaskValidityReport)
    assert report.over_models.reason == "a correlation over models needs 6 of them, but there are 3"
    assert report.within.value == pytest.approx(0)  # all answers are called VALID, right or wrong


def judge_by_truth(*, follows: bool) -> Any:
    """Six models of different skill, and judges that say VALID of right answers, or by a coin."""

    def script(request: Request) -> Reply:
        if request.schema == TASK_REVIEW:
            correct, answer, _ = read_review(request.text)
            share = 0.5 if not follows else 0.9 if answer == correct else 0.2
            return completion(json.dumps(review_of_answer(request.draw() < share)))
        return solver(request)

    return script


@pytest.mark.parametrize("follows", [True, False])
def test_verdicts_that_follow_accuracy_and_those_that_do_not(
    server: FakeServer, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, follows: bool
) -> None:
    for name, skill in MODELS.items():
        monkeypatch.setitem(SKILL, name, skill)
    server.script = judge_by_truth(follows=follows)
    task, probes = sum_task(tmp_path, items=20), {"direct": {"samples": 1}}
    audit = config(server.url, len(MODELS) + 2, survey=None, task=task, name="sums", probes=probes)
    audit = audit.model_copy(update={"models": audit.models[:-2], "judges": audit.models[-2:]})
    run_audit(audit, storage=storage)
    context = ExperimentContext(storage)
    result = run_checked(validity, context, "sums")
    within = result.data.within
    assert set(within.resampled) == {"item", "model"}
    assert (within.ci_low > 0.3) if follows else (within.ci_low < 0 < within.ci_high)
    assert result.data.over_models.n == 6
    assert result.data.over_models.value is not None
    held_out = run_checked(holdout, context, "sums", 50)
    [row] = held_out.data
    assert row.prediction.models == 6
    assert row.prediction.unseen_cells.value is not None
    page = " ".join(text_of(section) for section in held_out.document.sections)
    assert "r on unseen items" in page
    assert "as a prediction of accuracy" in page
    assert "people" not in page
    assert "unseen cells" not in page
    words = "more often than wrong ones" if follows else "are not shown to follow accuracy"
    assert words in text_of([*result.document.sections]) + str(result.document)


def test_an_audit_of_a_survey_has_no_right_answers(server: FakeServer, storage: str) -> None:
    survey = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["divorce"]}
    run_audit(config(server.url, survey=survey), storage=storage)
    with pytest.raises(UsageError, match="is of a survey, which has no right answers"):
        validity(ExperimentContext(storage), "scripted")


def test_faults_of_each_kind_of_answer(tmp_path: Path) -> None:
    from auditor.config import TaskSection

    for kind, answers in {"choice": ("17", "18"), "exact": ("17", "18"), "score": ("20", "180")}.items():
        task = load_task(TaskSection.model_validate(sum_task(tmp_path, kind)))
        survey = survey_from_task(task)
        item = next(iter(task.items.values()))
        answer = item.options[0] if item.options else answers[0]
        trace = Trace("m", Cell("", item.id), 0, Outcome.OK, None, "Add 2 and 1. So it is.", answer=answer)
        faults = inject_faults(TracePool(audit("http://x", tmp_path), survey, [trace]), 5)
        [(_, contradicting)] = faults["contradicting answer"]
        assert contradicting.answer == (item.options[1] if item.options else answers[1])
        assert contradicting.text == trace.text
        [(_, wrong)] = faults["wrong step"]
        assert wrong.text == "Add 2 and 2. So it is."
        [(_, irrelevant)] = faults["irrelevant step"]
        assert IRRELEVANT in (irrelevant.text or "")
