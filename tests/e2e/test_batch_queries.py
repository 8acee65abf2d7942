"""What runs for each batch reads the rows of this batch only: all queries grow as the number of calls."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from auditor.agents import derived_results, nodes
from auditor.config import AuditConfig
from auditor.domain.audit_records import AnswerSelection
from auditor.probes.distribution import stage as distribution
from auditor.probes.logic import stage as logic_graph
from auditor.probes.semantic import stage as semantic_graph
from auditor.run import run_audit
from auditor.run.audit_changes import exclude_answers
from auditor.surveys import load_survey
from tests.e2e.test_report_queries import LISTED_PARAMETERS
from tests.models.test_logprobs import echo
from tests.support import comparison_judge, scripted_tasks
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.opinion_surveys import COUNTRIES, TOPICS, write_opinion_survey
from tests.support.probe_packages import install_package, use_packages

GROWTH = 3
"""Ratio of the two sizes of an audit."""
MAX_GROWTH_RATIO = 1.25
"""Largest ratio of a query's growth to that of the number of calls; sorting and searching add a logarithm."""
STEPS_PER_COUNT = 20
MIN_PER_CALL = {"rows": 1, "characters": 100, "steps": 20}
"""What a query may read for each call of the large audit whatever it reads in the small one."""
MIN_REPEATS = 8
"""Number of times that a statement runs in the large audit if it runs for each batch."""
WHOLE_AUDIT = re.compile(r"SCAN (?P<scanned>\w+)|SEARCH (?P<searched>\w+) USING .*\((audit_id=\?)?\)$")
"""Line of a plan that reads a whole table, or all rows of an audit."""


PROBE_OF_CELLS = """
from auditor.probes import Message, Needs, Probe, ProbeSettings, Question, Reading

class Judgement(Probe):
    interface_version = 1
    needs = Needs.CELL_TRACES
    settings = ProbeSettings

    def plan(self, audit):
        return audit.cells

    def ask(self, audit, model, units):
        for trace in audit.load_traces(model, units):
            yield Question(tuple(trace.cell), (Message("user", f"Is this true? {trace.text}"),))

    def read(self, answer):
        return Reading(len(answer.text))
"""


class ReadLog:
    """What is read, by query without its lists of parameters, and every statement.

    Attributes:
        amounts: rows and characters fetched, and steps of SQLite's virtual machine.
        n_runs: how often a statement ran.
        examples: a full text of each statement, with its parameters.
    """

    def __init__(self) -> None:
        self.amounts = {kind: Counter[str]() for kind in MIN_PER_CALL}
        self.n_runs = Counter[str]()
        self.examples: dict[str, tuple[str, Any]] = {}
        self._lock = threading.Lock()

    def add_run(self, statement: str, parameters: Any) -> None:
        if statement.lstrip().startswith(("SELECT", "UPDATE", "DELETE", "WITH")):
            name = LISTED_PARAMETERS.sub("...", statement)
            with self._lock:
                self.n_runs[name] += 1
                self.examples[name] = (statement, parameters)

    def add(self, query: str, **amounts: int) -> None:
        with self._lock:
            for kind, amount in amounts.items():
                self.amounts[kind][query] += amount


class CountingConnection(sqlite3.Connection):
    """A connection whose cursors log what they read, and whether its transaction may write."""

    log: ReadLog
    is_writing = False

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or CountingCursor)


class CountingCursor(sqlite3.Cursor):
    """A cursor that logs what its queries read."""

    connection: CountingConnection
    query = ""

    def execute(self, query: str, *parameters: Any) -> Self:
        self.connection.log.add_run(query, parameters[0] if parameters else ())
        if query.startswith("BEGIN"):
            self.connection.is_writing = query == "BEGIN IMMEDIATE"
        self.query = query.split("IN (", 1)[0] if query.lstrip().startswith("SELECT") else ""
        # How many answers one transaction records depends on how busy the machine is.
        count = None if self.connection.is_writing else partial(self._count_steps, self.query)
        self.connection.set_progress_handler(count, STEPS_PER_COUNT)
        return super().execute(query, *parameters)

    def executemany(self, query: str, parameters: Any) -> Self:
        rows = list(parameters)
        self.connection.log.add_run(query, rows[0])
        return super().executemany(query, rows)

    def _count_steps(self, query: str) -> int:
        self.connection.log.add(query, steps=STEPS_PER_COUNT)
        return 0  # the query goes on

    def _count_rows(self, rows: list[Any]) -> list[Any]:
        n_characters = sum(len(value) for row in rows for value in row if isinstance(value, str))
        self.connection.log.add(self.query, rows=len(rows), characters=n_characters)
        return rows

    def fetchone(self) -> Any:
        row = super().fetchone()
        self._count_rows([] if row is None else [row])
        return row

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        return self._count_rows(super().fetchmany(size))

    def fetchall(self) -> list[Any]:
        return self._count_rows(super().fetchall())


@contextmanager
def logged_reads() -> Iterator[ReadLog]:
    """Log what all connections to SQLite that are opened meanwhile read."""
    log = ReadLog()
    connection_class = type("LoggedConnection", (CountingConnection,), {"log": log})

    def set_factory(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> None:
        options["factory"] = connection_class

    event.listen(Engine, "do_connect", set_factory)
    try:
        yield log
    finally:
        event.remove(Engine, "do_connect", set_factory)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few cells, so that small audits have many."""
    for module, name in (
        (nodes, "LOGPROB_CELLS_PER_BATCH"),
        (derived_results, "CELLS_PER_BATCH"),
        (nodes, "CONFLICTS_PER_BATCH"),
        (distribution, "SUBJECTS_PER_BATCH"),
        (logic_graph, "PAIRS_PER_BATCH"),
        (semantic_graph, "QUESTIONS_PER_BATCH"),
    ):
        monkeypatch.setattr(module, name, 2)


def run_logged(audit: AuditConfig, file: Path, excluded: AnswerSelection | None) -> tuple[list[ReadLog], int]:
    """What a run reads, and another one after some of its answers were excluded; and the number of the calls."""
    storage = f"sqlite:///{file}"
    logs = []
    for is_second in range(1 if excluded is None else 2):
        if is_second and excluded is not None:
            exclude_answers(audit.name, excluded, "an error", storage=storage)
        with logged_reads() as log:
            run_audit(audit, storage=storage)
        logs.append(log)
    with sqlite3.connect(file) as connection:
        return logs, connection.execute("SELECT count(*) FROM attempt").fetchone()[0]


def assert_reads_are_constant(
    make_audit: Callable[[int], AuditConfig], folder: Path, excluded: AnswerSelection | None = None
) -> None:
    """Run an audit of one size, and one of `GROWTH` times the size, and compare what each query reads for each call.

    Args:
        make_audit: takes the ratio to the size of the small audit.
        excluded: answers without which both are run again.
    """
    (small_logs, n_small), (large_logs, n_large) = (
        run_logged(make_audit(size), folder / f"{size}.db", excluded) for size in (1, GROWTH)
    )
    assert n_large > 0.9 * GROWTH * n_small > 0
    for small, large in zip(small_logs, large_logs, strict=True):
        for kind, minimum in MIN_PER_CALL.items():
            assert any(large.amounts[kind].values())
            for query, amount in large.amounts[kind].items():
                small_amount = small.amounts[kind][query]
                limit = max(MAX_GROWTH_RATIO * n_large / n_small * small_amount, minimum * n_large)
                assert amount <= limit, (kind, small_amount, amount, query)
        assert_plans_of_batches_read_no_audit(large, folder / f"{GROWTH}.db")


def assert_plans_of_batches_read_no_audit(log: ReadLog, file: Path) -> None:
    """By their plans, statements that run for each batch, also those that write, read neither a table nor an audit.

    Tables are left out that have a few rows for each audit only.
    """
    with sqlite3.connect(file) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        sizes = {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}
        readers = []
        for name, n_runs in log.n_runs.items():
            if n_runs < MIN_REPEATS or "LIMIT" in name:
                continue
            for *_, line in connection.execute(f"EXPLAIN QUERY PLAN {log.examples[name][0]}", log.examples[name][1]):
                if match := WHOLE_AUDIT.search(line):
                    table = match["scanned"] or match["searched"]
                    if sizes.get(table, 0) >= MIN_REPEATS:
                        readers.append((n_runs, line, name))
        assert not readers, json.dumps(readers, indent=1)


def answer_or_support(request: Request) -> Reply:
    """Answer items of a task, questions and comparisons; as a judge of pairs, find half of them consistent."""
    if request.schema == "Support":
        return completion(json.dumps({"reason": "Their results.", "supported": request.draw() < 0.5}))
    if request.schema == "OpenAnswer":
        return completion(json.dumps({"answer": f"It does at {int(100 * request.draw())} degrees."}))
    return comparison_judge.scripted(len)(request) if "What is " not in request.text else scripted_tasks.solver(request)


def survey_of(n_countries: int) -> dict[str, Any]:
    """Three topics in the first countries of a survey."""
    countries = list(load_survey("wvs7-sample").countries)[:n_countries]
    return {"source": "wvs7-sample", "countries": countries, "topics": comparison_judge.TOPICS[:3]}


@pytest.mark.parametrize("kind", ["exact", "score"])
def test_a_task(server: FakeServer, tmp_path: Path, kind: str) -> None:
    """Reviews, conflicts, votes of adaptive panels, and pairs of answers that are compared."""
    server.script = answer_or_support
    semantic = {"questions": "task", "paraphrases": 0, "consistency": {"judge": "model-c"}}

    def make_audit(size: int) -> AuditConfig:
        task = scripted_tasks.sum_task(tmp_path, kind, items=7 * size)
        probes = {"direct": {"samples": 2}, "semantic": semantic}
        return scripted_tasks.audit(server.url, tmp_path, task=task, probes=probes, panel={"adaptive": True})

    assert_reads_are_constant(make_audit, tmp_path)


def test_a_survey(server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reviews, guesses, restatements, conflicts, votes of adaptive panels, and the topics of each country compared.

    Batches of a probe of another package run beside them.
    """
    (tmp_path / "packages").mkdir()
    install_package(tmp_path / "packages", "judgement = judgement:Judgement", PROBE_OF_CELLS, module_name="judgement")
    use_packages(monkeypatch, tmp_path / "packages")
    server.script = answer_or_support
    review = {"guess": True, "rewrite": "neutral", "rewriter": "model-a"}
    logic = {"items": "topics", "countries": "all", "samples": 0}

    def make_audit(size: int) -> AuditConfig:
        probes = {"direct": {"samples": 1}, "review": review, "logic": logic, "judgement": {}}
        return config(server.url, survey=survey_of(2 * size), probes=probes, panel={"adaptive": True})

    assert_reads_are_constant(make_audit, tmp_path)


def test_a_survey_without_adaptive_panels(server: FakeServer, tmp_path: Path) -> None:
    """Answers, reviews of lanes, log-probabilities, and votes; and a second run with excluded answers."""
    server.script = lambda request: (
        echo(request) if request.path.endswith("/v1/completions") else answer_or_support(request)
    )

    def make_audit(size: int) -> AuditConfig:
        probes = {"direct": {"samples": 1}, "logprob": {}}
        audit = config(server.url, survey=survey_of(2 * size), probes=probes)
        return audit.model_copy(update={"judges": audit.models[-1:], "models": audit.models[:-1]})

    excluded = AnswerSelection(model="model-a", topic=comparison_judge.TOPICS[0])
    assert_reads_are_constant(make_audit, tmp_path, excluded)


@pytest.mark.parametrize("is_recorded", [False, True])
def test_questions(server: FakeServer, tmp_path: Path, is_recorded: bool) -> None:
    """Answers of a model that is asked, or of a file, are compared by a judge."""
    server.script = answer_or_support
    semantic = {"subject": "any", "paraphrases": 0, "consistency": {"judge": "model-b", "samples": 3}}

    def make_audit(size: int) -> AuditConfig:
        file = tmp_path / f"answers-{size}.csv"
        numbers = range(10 * size)
        rows = [f"q{i},When does number {i} melt?,{sample},At {i}." for i in numbers for sample in range(3)]
        file.write_text("\n".join(["question_id,question,sample,answer", *rows]), encoding="utf-8")
        audit = config(server.url, 2, survey=None, probes={"semantic": semantic | {"questions": str(file)}})
        recorded = {"name": "recorded", "model": "replay/recorded", "answers": str(file)}
        changes = {"models": [recorded], "judges": [audit.models[1]]} if is_recorded else {}
        return AuditConfig.model_validate(audit.model_dump(exclude_unset=True) | changes)

    assert_reads_are_constant(make_audit, tmp_path)


def test_opinions(tmp_path: Path) -> None:
    """The shares of people's answers, of everyone and by sex."""
    source = str(write_opinion_survey(tmp_path))

    def make_audit(size: int) -> AuditConfig:
        survey = {"source": source, "countries": COUNTRIES[: 2 * size], "topics": TOPICS[:4]}
        models = [{"name": name, "model": f"simulated/{name}"} for name in ("knows-every-culture", "one-opinion")]
        probes = {"distribution": {"groups": ["sex"], "samples": 4}}
        return AuditConfig.model_validate(
            {"name": "simulated-opinions", "survey": survey, "judges": [], "models": models, "probes": probes}
        )

    assert_reads_are_constant(make_audit, tmp_path)
