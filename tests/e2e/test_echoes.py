"""Providers that echo the API key: no stored, printed or forwarded text holds it, in any encoding."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.audit_configs import KEY_VARIABLE, config
from tests.support.cli_runner import CommandOutput, auditor
from tests.support.fake_batches import FakeBatches
from tests.support.fake_server import FakeServer, Reply, Request, answer
from tests.support.secret_encodings import encodings, secret_fragments

SECRET = "sk-canary/0+123456789-canary/0+12345"
JUDGES = "sk-judge/0+987654321-judge/0+98765432"
CODES = list(encodings(SECRET).values()) + list(encodings(JUDGES).values())


def echoing(request: Request) -> Reply:
    """Reply with an answer or error that echoes one encoding of a key in each field that is stored."""
    echoed_key = CODES[request.number % len(CODES)]
    if request.number % 5 == 3:
        return Reply(
            500, {"error": {"message": f"the key {echoed_key} is out of order", "type": echoed_key, "code": echoed_key}}
        )
    if request.number % 5 == 4:
        return Reply(502, raw=b"x" * (65_536 - len(echoed_key) // 2) + echoed_key.encode() + b"y" * 1000)
    reply = answer(request)
    body = json.loads(json.dumps(reply.body))
    message = body["choices"][0]["message"]
    judgement = json.loads(message["content"])
    judgement["reasoning"] = f"The key is {echoed_key} here. {judgement['reasoning']}"
    message["content"] = json.dumps(judgement)
    named = {"model": f"m-{echoed_key}", "system_fingerprint": f"{'f' * 180} {echoed_key}"}
    return replace(reply, body=body | named, headers={"x-request-id": echoed_key.replace("\\", "")})


@pytest.fixture
def judge() -> Iterator[FakeServer]:
    with FakeServer(answer) as server:
        yield server


def key_traces(content: bytes) -> list[bytes]:
    """Traces of either key in some bytes (`traces_of` gives the encodings to look for)."""
    return [trace for key in (SECRET, JUDGES) for trace in secret_fragments(key) if trace in content]


def stored_values(path: Path) -> Iterator[bytes]:
    """Every value of every table, as stored and, if it is compressed, decompressed too."""
    with sqlite3.connect(path) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in db.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    packed = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
                    yield packed
                    with suppress(zlib.error):
                        yield zlib.decompress(packed)


def audit_of(server: FakeServer, judge: FakeServer, **changes: Any) -> dict[str, Any]:
    """Config of two audited models on one server and a judge with its own key on another."""
    judges = [{"name": "judge", "model": "openai/j", "api_base": judge.url, "api_key": "os.environ/JUDGE_KEY"}]
    survey = {"source": "wvs7-sample", "countries": ["Germany", "Japan"], "topics": ["divorce", "abortion"]}
    audit = config(server.url, 2, judges=judges, survey=survey, limits={"max_attempts": 3}, **changes)
    return audit.model_dump(mode="json", exclude_none=True)


def commands(folder: Path, environment: dict[str, str]) -> Iterator[CommandOutput]:
    """Run an audit, then all commands that write or print its results."""
    for words in (
        *(["doctor", "audit.yaml"], ["run", "audit.yaml"], ["status", "scripted"], ["verify", "scripted"]),
        *(["report", "scripted", "-o", "report.html"], ["export", "tables", "scripted", "-o", "tables"]),
    ):
        yield auditor(*words, cwd=folder, **environment)


@pytest.mark.parametrize("batch", [False, True], ids=["calls", "batches"])
def test_an_echoed_key_is_not_stored_shown_or_sent_on(
    server: FakeServer, judge: FakeServer, tmp_path: Path, batch: bool
) -> None:
    with FakeServer(echoing, FakeBatches() if batch else None) as echoing_server:
        batch_section = {"batch": {"poll_s": 0.01, "quiet_s": 0.05, "least": 1}} if batch else {}
        (tmp_path / "audit.yaml").write_text(json.dumps(audit_of(echoing_server, judge, **batch_section)))
        trusted = f"{KEY_VARIABLE}@127.0.0.1,JUDGE_KEY@127.0.0.1"
        environment = {KEY_VARIABLE: SECRET, "JUDGE_KEY": JUDGES, "AUDITOR_TRUST": trusted}
        completed_commands = list(commands(tmp_path, environment))
        assert [completed.returncode for completed in completed_commands[1:]] == [0] * 5, completed_commands
        assert echoing_server.requests or batch
    assert len(judge.requests) >= 8
    judge_requests = [json.dumps([r.body, r.path]) for r in judge.requests]
    assert any("[key removed]" in text for text in judge_requests)
    for text in [*judge_requests, *(completed.stdout + completed.stderr for completed in completed_commands)]:
        assert not key_traces(text.encode())
    values = list(stored_values(tmp_path / "auditor.db"))
    assert sum(b"[key removed]" in value for value in values) > 20
    assert not [value for value in values if key_traces(value)]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"report.html", "auditor.db"} < {path.name for path in files}
    assert not [path for path in files if key_traces(path.read_bytes())]


def test_a_short_key_is_named_in_a_warning_and_no_word_is_cut(server: FakeServer, tmp_path: Path) -> None:
    (tmp_path / "audit.yaml").write_text(json.dumps(config(server.url, 2).model_dump(mode="json", exclude_none=True)))
    doctor, run = (auditor(word, "audit.yaml", cwd=tmp_path, **{KEY_VARIABLE: "x"}) for word in ("doctor", "run"))
    for completed in (doctor, run):
        assert f"{KEY_VARIABLE} is shorter than 8 characters" in " ".join((completed.stdout + completed.stderr).split())
        assert completed.returncode == 0, completed.stderr
    values = list(stored_values(tmp_path / "auditor.db"))
    assert not [value for value in values if b"[key removed]" in value]
