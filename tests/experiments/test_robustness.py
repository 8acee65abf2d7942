"""The experiment `robustness`: an answerer that knows every form, cost before spending, resuming, and bad input."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from auditor import open_audit
from auditor.agents.call_builders import build_direct_call
from auditor.agents.design_calls import list_requests, load_example_text, prepare_run
from auditor.config import AuditConfig, load_stored_config
from auditor.domain import Answer, AnswerForm, Capability, Cell, Outcome, Ruling
from auditor.domain.audit_records import AnswerSelection, DesignAnswer, PlannedRun
from auditor.errors import UsageError
from auditor.experiments.robustness import choose_factors, compare_panels, plan_design, robustness
from auditor.experiments.stored_audit import ExperimentContext
from auditor.metrics.designs.design_matrix import RUNS_PER_CELL
from auditor.reports.output import render_document
from auditor.run import load_planned_survey, run_audit
from auditor.run.audit_changes import exclude_answers, undo_exclusion
from auditor.storage import audits, hash_chain, results
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from tests.support.answer_forms import answer_all_forms
from tests.support.audit_configs import FOUR_CELLS, config, with_models
from tests.support.fake_server import FakeServer, completion
from tests.support.known import known
from tests.support.stored_rows import count_attempts

FEW = ["temperature", "language", "role", "wording"]
ONE_COUNTRY = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["homosexuality", "divorce", "abortion"]}


def with_changes(audit: AuditConfig, **direct: Any) -> AuditConfig:
    probes = audit.probes.model_copy(update={"direct": audit.direct.model_copy(update=direct)})
    return audit.model_copy(update={"probes": probes})


def choose(audit: AuditConfig, *texts: str, without: tuple[str, ...] = (), **capabilities: Capability) -> Any:
    return choose_factors(audit, load_planned_survey(audit), capabilities, without, texts)


def test_the_plan_says_its_cost_and_asks_nobody_without_ask(server: FakeServer, storage: str) -> None:
    audit = config(server.url, 2, judges=[])
    run_audit(audit, storage=storage)
    before = len(server.requests)
    result = robustness(ExperimentContext(storage), audit.name)
    assert len(server.requests) == before
    report = result.data
    assert list(report.factors) == [
        *("wording", "direction", "scale", "reasoning", "answer", "temperature", "language", "role")
    ]
    assert (report.runs, report.runs_per_cell, report.cells) == (32, 8, 9)
    assert report.planned == 9 * 8 * 2
    assert 0 < report.recorded <= 9 * 2  # cells of run 0
    assert report.forecast.startswith(f"About {report.planned - report.recorded} calls")
    assert report.figures is None
    page = render_document(result.document, "markdown")
    assert "--ask" in page
    assert "confounded" in page
    with open_database(storage) as db:
        assert not load_records(db, audits.get_audit(db, audit.name).id, PlannedRun)


@dataclass(frozen=True)
class Asked:
    """An audit whose design was asked: its database, what the command said and found, and the number of requests."""

    config: AuditConfig
    path: Path
    messages: list[str]
    report: Any
    n_sent: int


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    path = tmp_path_factory.mktemp("asked") / "audits.db"
    messages: list[str] = []
    with FakeServer() as server:
        audit = config(server.url, 2, survey=FOUR_CELLS, judges=[])
        run_audit(audit, storage=f"sqlite:///{path}")
        server.script = answer_all_forms
        before = len(server.requests)
        context = ExperimentContext(f"sqlite:///{path}", print_message=messages.append)
        report = robustness(context, audit.name, without=FEW, ask=True).data
        return Asked(audit, path, messages, report, len(server.requests) - before)


@pytest.fixture
def copied(asked: Asked, tmp_path: Path) -> str:
    """URL of a copy of that database; its server has ended, so that requests would fail."""
    return f"sqlite:///{shutil.copy(asked.path, tmp_path)}"


def test_a_design_is_asked_once_and_resumed_without_a_request(asked: Asked, copied: str) -> None:
    audit, report = asked.config, asked.report
    assert any("32 runs: About" in message for message in asked.messages)  # before anything is asked
    assert report.recorded == report.planned == 4 * 8 * 2
    assert asked.n_sent <= report.planned
    assert report.figures is not None
    with open_database(copied) as db:
        stored = audits.get_audit(db, audit.name)
        answers, runs = load_records(db, stored.id, DesignAnswer), load_records(db, stored.id, PlannedRun)
        assert not hash_chain.verify_chain(db).breaks
    assert len(answers) == 4 * RUNS_PER_CELL * 2
    assert {row.outcome for row in answers} == {Outcome.OK}
    standard = {run.number for run in runs if prepare_run(audit, load_planned_survey(audit), run.levels)
                .presentation.has_standard_prompt}  # fmt: skip
    assert {row.score for row in answers if row.run not in standard} == {0.5}
    n_attempts = count_attempts_in(copied)
    assert robustness(ExperimentContext(copied), audit.name, ask=True).data.figures == report.figures
    assert count_attempts_in(copied) == n_attempts


def count_attempts_in(storage: str) -> int:
    with open_database(storage) as db:
        return count_attempts(db)


def test_answers_that_the_audit_excludes_leave_its_run_of_the_design(asked: Asked, copied: str) -> None:
    audit, before, storage = asked.config, asked.report.figures, copied
    with open_database(storage) as db:
        audit_id = audits.get_audit(db, audit.name).id
        cells = [row.cell for row in load_records(db, audit_id, DesignAnswer) if (row.run, row.model) == (0, "model-a")]
    country = cells[0].country
    n_of_run = sum(cell.country == country for cell in cells)
    exclude_answers(audit.name, AnswerSelection("model-a", country), "wrong model served", storage=storage)
    excluded = robustness(ExperimentContext(storage), audit.name).data.figures
    assert (before.lost, excluded.lost) == ({}, {"excluded": n_of_run})
    averages = known(open_audit(audit.name, storage=storage).report().designs)
    assert averages.averages == excluded.averages
    with open_database(storage) as db:
        assert load_example_text(db, audit_id, "model-a", 0, *cells[0]) is None
        assert load_example_text(db, audit_id, "model-b", 0, *cells[0])
        assert not hash_chain.verify_chain(db).breaks
    undo_exclusion(audit.name, 1, storage=storage)
    assert robustness(ExperimentContext(storage), audit.name).data.figures == before


NAMES = ("knows-every-culture", "western-everywhere", "agrees-with-everybody", "inconsistent")


def simulated(names: Sequence[str], **changes: Any) -> AuditConfig:
    models = [{"name": name, "model": f"simulated/{name}"} for name in names]
    settings = config("http://127.0.0.1:1", 2).model_dump(include={"survey", "embedding", "seed"})
    return AuditConfig.model_validate(
        {"name": "simulated", **settings, "models": models, "probes": {"direct": {"samples": 1}}, **changes}
    )


@pytest.mark.parametrize("panel", [{}, {"judges_per_trace": 2}, {"exclude_family": True}])
def test_panels_without_one_judge_are_counted_from_the_recorded_verdicts(storage: str, panel: dict[str, Any]) -> None:
    audit = simulated(NAMES, panel=panel)
    run_audit(audit, storage=storage)
    with open_database(storage) as db:
        stored = audits.get_audit(db, audit.name)
        stored_config, audit_id = load_stored_config(stored.config), stored.id
        assert stored_config is not None
        n_conflicts, rows = compare_panels(db, audit_id, stored_config, audits.load_audit_survey(db, stored))
        conflicts, verdicts = results.load_voted_conflicts(db, audit_id), results.load_verdicts(db, audit_id)
    assert n_conflicts == len(conflicts) > 0
    assert [row.panel for row in rows] == [
        *("as audited", "by Dawid and Skene’s model"), *(f"without {name}" for name in sorted(NAMES))
    ]  # fmt: skip
    assert rows[0].settled == sum(conflict.winner is not None for conflict in conflicts) > 0
    valid = {
        (verdict.judge, verdict.model, verdict.cell): verdict.ruling is Ruling.VALID
        for verdict in verdicts
        if verdict.outcome is Outcome.OK
    }
    for row, left_out in zip(rows[2:], sorted(NAMES), strict=True):
        winners = []
        for conflict in conflicts:
            sides = (conflict.left, conflict.right)
            votes = [
                [valid[judge, side, conflict.cell] for side in sides]
                for judge in NAMES
                if judge not in (*sides, left_out) and all((judge, side, conflict.cell) in valid for side in sides)
            ]
            ahead = [votes.count([True, False]), votes.count([False, True])]
            winners.append(next((side for side, n in zip(sides, ahead, strict=True) if n > len(votes) / 2), None))
        assert row.settled == sum(winner is not None for winner in winners)
        assert row.changed == sum(
            winner != conflict.winner for winner, conflict in zip(winners, conflicts, strict=True)
        )
    assert any(row.changed for row in rows[2:])


def test_simulated_models_are_refused_with_a_way_on(storage: str) -> None:
    audit = simulated(NAMES[:2], judges=[])
    run_audit(audit, storage=storage)
    with pytest.raises(UsageError, match=r"simulated models .* one form of the question only\..*`auditor init`"):
        robustness(ExperimentContext(storage), audit.name)


def test_refused_and_unread_answers_are_counted_and_are_no_scores(server: FakeServer, storage: str) -> None:
    audit = config(server.url, 1, survey=ONE_COUNTRY, judges=[])
    run_audit(audit, storage=storage)
    server.script = lambda request: completion("I cannot answer that." if request.draw() < 0.5 else "Perhaps.")
    report = robustness(ExperimentContext(storage), audit.name, without=["scale", *FEW], ask=True).data
    with open_database(storage) as db:
        rows = load_records(db, audits.get_audit(db, audit.name).id, DesignAnswer)
    lost = [row for row in rows if row.run]
    assert {row.outcome for row in lost} == {Outcome.REFUSED, Outcome.UNPARSED}
    assert all(row.score is None for row in lost)
    assert sum(report.figures.lost.values()) == len(lost)


def test_the_budget_ends_the_asking(server: FakeServer, storage: str, tmp_path: Path) -> None:
    audit = config(server.url, 1, survey=ONE_COUNTRY, judges=[], limits={"budget_usd": 1e-9})
    audit = with_models(audit, base_model="gpt-4o")
    run_audit(audit, storage=storage)
    before = len(server.requests)
    report = robustness(ExperimentContext(storage), audit.name, without=FEW, ask=True).data
    assert len(server.requests) - before <= 1
    with open_database(storage) as db:
        rows = load_records(db, audits.get_audit(db, audit.name).id, DesignAnswer)
    assert Outcome.OVER_BUDGET in {row.outcome for row in rows}
    assert report.recorded < report.planned


def test_the_audits_settings_are_run_0_with_the_audits_own_requests() -> None:
    for mode, n_of_audit in (("structured", 2), ("text", 2), ("text", 1), ("text", 3)):
        audit = with_changes(config("http://127.0.0.1:1", 2, survey=FOUR_CELLS), mode=mode, samples=n_of_audit)
        survey = load_planned_survey(audit)
        runs = plan_design(audit, survey, choose(audit), 2)
        assert sum(len(run.cells) for run in runs) == 4 * RUNS_PER_CELL
        first = [request for request in list_requests(audit, survey, runs) if request.run == 0]
        assert first
        for request in first:
            model = audit.models_by_name[request.model]
            if request.sample < n_of_audit:
                assert request.call.key == build_direct_call(audit, survey, model, request.cell, request.sample).key
        assert len({request.call.key for request in list_requests(audit, survey, runs)}) == 4 * RUNS_PER_CELL * 2 * 2


CELL = Cell("Germany", "divorce")
CASES = [
    ({"scale": "1 to 10"}, '{"norms": "n", "reasoning": "r", "score": 10}', 1.0),
    ({"scale": "1 to 10"}, '{"norms": "n", "reasoning": "r", "score": 0}', None),
    ({"scale": "1 to 10", "reasoning": "none"}, '{"score": 5.5}', 0.0),
    ({"scale": "1 to 10", "answer": "text"}, "SCORE = 1\nSo it is.", -1.0),
    ({"scale": "1 to 10", "answer": "text"}, "SCORE = 1\nSCORE = 2", None),
    ({"scale": "words", "answer": "text"}, "SCORE = Never justified.", -1.0),
    ({"scale": "words", "answer": "text"}, "SCORE = closer to “always justified”", 0.5),
    ({"scale": "words", "answer": "text"}, "SCORE = perhaps", None),
    ({"scale": "words", "reasoning": "none"}, '{"score": "in between"}', 0.0),
    ({"scale": "words", "reasoning": "after"}, '{"score": "always justified", "norms": "n", "reasoning": "r"}', 1.0),
    ({"direction": "high first", "answer": "text"}, "SCORE = -0.4", -0.4),
    ({"language": "de", "scale": "words", "answer": "text"}, "SCORE = dazwischen", 0.0),
]


@pytest.mark.parametrize(("levels", "text", "score"), CASES)
def test_every_form_is_read_onto_one_scale(levels: dict[str, str], text: str, score: float | None) -> None:
    audit = config("http://127.0.0.1:1", 1, judges=[])
    setup = prepare_run(audit, load_planned_survey(audit), levels)
    call = setup.build_call("model-a", CELL, 0)
    row = setup.read_answer(Answer(call.key, Outcome.OK, text), call, "model-a", CELL, 0)
    assert row.score == score
    assert row.outcome is (Outcome.UNPARSED if score is None else Outcome.OK)


def test_each_choice_changes_the_question_as_stated() -> None:
    audit = config("http://127.0.0.1:1", 1, judges=[])
    survey = load_planned_survey(audit)

    def ask(**levels: str) -> str:
        return prepare_run(audit, survey, levels).build_call("model-a", CELL, 0).request_text

    assert "from 1.0 (always justified) to -1.0 (never justified)" in ask(direction="high first")
    assert "from 1 (never justified) to 10 (always justified)" in ask(scale="1 to 10")
    assert "never justified; closer to “never justified”; in between" in ask(scale="words")
    assert "always justified; closer to “always justified”; in between" in ask(scale="words", direction="high first")
    assert '"score": a number from -1.0 (never justified) to 1.0 (always justified).' in ask(reasoning="none")
    assert ask(reasoning="after").index('"score"') < ask(reasoning="after").index('"reasoning"')
    assert "You are an adult who has lived in Germany" in ask(role="resident")
    assert "Land: Deutschland" in ask(language="native")
    assert "Imagine a typical group of adults in Germany" in ask(wording="4")
    assert "from “always justified” to “never justified”" in ask(wording="2", direction="high first")
    assert "SCORE = x" in ask(answer="text")


def test_choices_that_cannot_be_varied_are_named_and_left_out() -> None:
    audit = config("http://127.0.0.1:1", 2)
    assert choose(audit, "scale=-1 to 1").omitted == {"scale": "it has one level: -1 to 1"}
    assert "scale" not in choose(audit, "scale=-1 to 1").levels
    for text in ("0,1.5", "0.70, -0.0, 1.50, 1.5"):
        assert choose(audit, f"temperature={text}").levels["temperature"] == ["0.7", "0", "1.5"]
    refusing = Capability(dropped_params=("temperature",), form=AnswerForm.TEXT)
    named = choose(audit, **{"model-b": refusing}).omitted  # type: ignore[arg-type]
    assert named["temperature"] == "the model model-b takes no temperature"
    assert named["answer"] == "the model model-b takes no structured answers"
    assert choose(audit, "language=xx,de").omitted == {"language=xx": "there are no prompts in the language 'xx'"}
    english_survey = {"source": "wvs7-sample", "countries": ["New Zealand"]}
    only_english = config("http://127.0.0.1:1", 1, judges=[], survey=english_survey)
    assert "all questions are in the same language" in choose(only_english).omitted["language=native"]
    in_germany = config("http://127.0.0.1:1", 1, judges=[], survey={"source": "wvs7-sample", "countries": ["Germany"]})
    chosen = choose(in_germany, "language=native,de,tr")
    assert chosen.levels["language"] == ["en", "native", "tr"]
    assert chosen.omitted == {"language=de": "all questions are in the same language as with 'native'"}
    assert choose(audit, without=("wording", "scale", "reasoning")).levels.keys() == {
        "direction", "answer", "temperature", "language", "role",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "without", "message"),
    [
        (["tone=high"], [], "no choice 'tone'"),
        (["scale=1 to 5"], [], "no level '1 to 5'"),
        (["temperature=hot"], [], "'hot' is not a temperature"),
        (["temperature=as configured"], [], "'as configured' is not a temperature"),  # it is 0.7 of all models
        (["scale"], [], "no '='"),
        ([], ["wordings"], "no choice 'wordings'"),
        ([], [*FEW, "direction", "scale", "reasoning", "answer"], "no choice is left"),
    ],
)
def test_bad_options_are_errors(texts: list[str], without: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        choose(config("http://127.0.0.1:1", 1, judges=[]), *texts, without=tuple(without))
