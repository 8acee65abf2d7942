"""Full or damaged disks, power failures, clock jumps and double interrupts lose no answer and are reported."""

from __future__ import annotations

import contextlib
import random
import re
import shutil
import signal
import sqlite3
import time
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from auditor.agents.run_context import SilentProgress
from auditor.config import LimitsSection
from auditor.domain import Answer, Outcome
from auditor.models.gateway import Gateway
from auditor.reports.data.verification import verify_audit
from auditor.run import run_audit
from auditor.storage.database import open_database
from tests.e2e.test_run import CALLS, JAPAN, config_file, holding, patient, stored, wait_for
from tests.models.test_gateway import call
from tests.support.audit_configs import config
from tests.support.cli_runner import auditor, succeed
from tests.support.fake_server import NEVER, FakeServer, Reply, Request, answer, completion
from tests.support.forked_commands import RunningCommand, start
from tests.support.gateway_calls import model_section
from tests.support.killed_runs import run_until
from tests.support.patience import PATIENCE_S


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def test_a_run_recovers_from_a_truncated_write_ahead_log(server: FakeServer, tmp_path: Path) -> None:
    """The write-ahead log is cut at random bytes, as if its last pages had not reached the disk at a power failure."""
    audit = config(server.url)
    run_audit(audit, storage=url(tmp_path / "whole.db"))
    unbroken_results = stored(url(tmp_path / "whole.db"))
    assert run_until(audit, url(tmp_path / "cut.db"), "*:160")[0] == -9
    log = tmp_path / "cut.db-wal"
    assert log.stat().st_size > 10_000
    rng = random.Random(5)
    for i in range(2):
        copy = tmp_path / f"copy{i}.db"
        shutil.copy(tmp_path / "cut.db", copy)
        copy.with_name(copy.name + "-wal").write_bytes(log.read_bytes()[: rng.randrange(log.stat().st_size)])
        connection = sqlite3.connect(copy)
        assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        connection.close()
        run_audit(audit, storage=url(copy))
        assert stored(url(copy)) == unbroken_results
        with open_database(url(copy)) as db:
            assert verify_audit(db, "scripted").is_consistent


def test_a_full_disk_stops_the_run_and_loses_nothing(server: FakeServer, tmp_path: Path) -> None:
    file = config_file(tmp_path, config(server.url))
    arguments = ("run", file, "--storage", url(tmp_path / "audits.db"))
    limited_run = start(*arguments, largest_file=800 * 1024)
    _, stderr = limited_run.communicate(timeout=PATIENCE_S)
    assert limited_run.returncode == 1, stderr
    assert "cannot be" in stderr
    assert "run the same command again. Recorded answers are kept." in stderr
    assert "Traceback" not in stderr
    request_count = len(server.requests)
    assert 0 < request_count < CALLS
    succeed(*arguments)
    run_audit(config(server.url), storage=url(tmp_path / "whole.db"))
    assert stored(url(tmp_path / "audits.db")) == stored(url(tmp_path / "whole.db"))
    assert len(server.requests) - 2 * CALLS <= 3 * 8  # only calls in flight when the disk was full


def test_a_damaged_database_is_reported_in_one_line(server: FakeServer, tmp_path: Path) -> None:
    path = tmp_path / "audits.db"
    run_audit(config(server.url, 1, judges=[]), storage=url(path))
    content = bytearray(path.read_bytes())
    for page in range(8192, len(content), 4096):
        content[page : page + 2000] = b"\xff" * 2000
    path.write_bytes(content)
    report_command = auditor("report", "scripted", "--format", "json", "--storage", url(path))
    assert report_command.returncode == 1
    assert "malformed" in report_command.stderr
    assert "Traceback" not in report_command.stderr


def test_a_second_interrupt_loses_only_calls_in_flight(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = holding(20, NEVER)
    running = start("run", config_file(tmp_path, patient(config(server.url))), "--storage", storage)
    wait_for(server, 21)
    stderr = interrupt_repeatedly(running)
    assert running.returncode == 130, stderr
    assert "Traceback" not in stderr
    server.script = answer
    run_audit(config(server.url), storage=storage)
    with open_database(storage) as db:
        assert verify_audit(db, "scripted").is_consistent


def interrupt_repeatedly(running: RunningCommand) -> str:
    """Interrupt a process until it ends and return its stderr. A busy machine may merge two signals into one."""
    for patience in (1, 60, 60, 120):
        running.send_signal(signal.SIGINT)
        with contextlib.suppress(TimeoutExpired):
            return running.communicate(timeout=patience)[1]
    running.kill()
    raise AssertionError("who interrupts twice waits")


async def test_a_clock_that_jumps_changes_no_deadline(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = iter(range(10**6))
    monkeypatch.setattr(time, "time", lambda: 1.7e9 + (-1) ** next(jumps) * 3600)
    gateway = Gateway([model_section(server)], LimitsSection(deadline_s=100))
    try:
        answers = [await gateway.complete(call(i)) for i in range(3)]
    finally:
        await gateway.close()
    assert [a.outcome for a in answers] == [Outcome.OK] * 3
    assert all(0 <= attempt.latency_s < 100 for a in answers for attempt in a.attempts)


class BrokenProgress(SilentProgress):
    """A progress display that raises on every answer."""

    def on_answer(self, stage: str, answer: Answer) -> None:
        """Raise RuntimeError."""
        raise RuntimeError("the watcher is broken")


def test_a_watcher_that_raises_loses_no_answer(server: FakeServer, storage: str) -> None:
    with pytest.raises(RuntimeError, match="the watcher is broken"):
        run_audit(config(server.url), storage=storage, progress=BrokenProgress())
    request_count = len(server.requests)
    with open_database(storage) as db, db.read() as connection:
        recorded = connection.exec_driver_sql("SELECT count(*) FROM answer").scalar_one()
    assert recorded > 0
    run_audit(config(server.url), storage=storage)
    assert len(server.requests) == CALLS + request_count - recorded


def test_unusual_characters_are_stored_and_escaped_in_reports(server: FakeServer, storage: str, tmp_path: Path) -> None:
    nasty = (
        "a\0b \ud800 \U0001f600 \u202egnp.exe \x1b]0;title\x07 \x1b[2J [/INST] <script>alert(1)</script> =1+1 {{7*7}}"
    )

    def script(request: object) -> object:
        reply = answer(request)  # type: ignore[arg-type]
        text = reply.body["choices"][0]["message"]["content"]
        return completion(text.replace("People there", f"People there {nasty}".replace("\0", "\\u0000")))

    server.script = script  # type: ignore[assignment]
    run_audit(config(server.url, survey=JAPAN, probes={"direct": {"samples": 1, "mode": "text"}}), storage=storage)
    texts = [t.text or "" for t in stored(storage)["traces"]]
    assert all("\U0001f600" in t and "<script>" in t and "{{7*7}}" in t for t in texts)
    for format_ in ("html", "markdown", "json"):
        succeed("report", "scripted", "-f", format_, "--storage", storage, "-o", tmp_path / "out")
        page = (tmp_path / "out").read_text(encoding="utf-8")
        assert "\x1b" not in page
        assert format_ == "json" or not re.search(r"(?<!\\)<script>alert", page)
        assert "49" not in page.split("People there", 1)[-1][:40]


@pytest.mark.parametrize("kind", ["file", "server"])
def test_characters_that_no_database_accepts_may_be_escaped_in_structured_answers(
    server: FakeServer, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    def script(question: Request) -> Reply:
        text = answer(question).body["choices"][0]["message"]["content"]
        return completion(re.sub("People there|The steps|The score", r"\g<0> \\u0000 \\ud83d", text))

    server.script = script
    storage = url(tmp_path / "audits.db") if kind == "file" else request.getfixturevalue("postgres").schema()
    run_audit(config(server.url, survey=JAPAN), storage=storage)
    traces = stored(storage)["traces"]
    assert {trace.outcome for trace in traces} == {Outcome.OK}
    assert all("People there \\x00 \\ud83d hold" in trace.text for trace in traces)
