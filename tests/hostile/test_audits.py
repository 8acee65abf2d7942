"""Complete audits of a normal model and a hostile one, run by the commands that users run."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain import Outcome
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.e2e.test_run import config_file
from tests.hostile.axes import AXES
from tests.hostile.corpus import EVERY
from tests.hostile.expectations import INTERNAL
from tests.hostile.keys import KEY, leaks_in, leaks_in_folder
from tests.hostile.runner import ATTEMPTS, MODELS
from tests.hostile.server import reply_of
from tests.support.audit_configs import KEY_VARIABLE, config
from tests.support.cli_runner import CommandOutput, auditor
from tests.support.fake_server import FakeServer, answer
from tests.support.refusals import end_repeated_refusals

ODD = "/odd"
"""Part of the URL path of all requests to the hostile model."""
TOKEN_PRICE = {"input": 0.0, "output": 1_000_000.0}
"""One US dollar for each completion token: a correct usage costs $20, an estimate $50."""
TOKENS = 50
HANG_S = 10.0
MAX_WAIT_S = 0.3


@dataclass(frozen=True)
class HostileAudit:
    """One line of `audits.tsv`.

    Attributes:
        budget: in US dollars, at one dollar for each completion token; empty for no budget.
        exit: code of `auditor run`.
        requests: number that reach the hostile model, which is asked about three cells.
        ok: number of these three cells with a score.
        words: texts that the commands must print.
    """

    id: str
    choice: dict[str, str]
    budget: str
    exit: int
    requests: int
    ok: int
    words: tuple[str, ...]


def load_audits() -> list[HostileAudit]:
    with Path(__file__).with_name("audits.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        HostileAudit(
            row["id"], {axis: row[axis] for axis in AXES}, row["budget"].strip("-"), int(row["exit"]),
            int(row["requests"]), int(row["ok"]), tuple(w for w in row["words"].split(";") if w != "-"),
        )
        for row in rows
    ]  # fmt: skip


AUDITS = load_audits()
CHOSEN = AUDITS if os.environ.get("AUDITOR_ALL_HOSTILE") else AUDITS[::EVERY]


def config_of(audit: HostileAudit, server: FakeServer) -> AuditConfig:
    """Config of an audit of three cells with a normal and a hostile model and a judge.

    With a budget, the hostile model is alone.
    """

    def model(name: str, model: str, base: str) -> dict[str, Any]:
        section = {"name": name, "model": model, "api_base": base, "api_key": f"os.environ/{KEY_VARIABLE}"}
        return section | ({"price": TOKEN_PRICE} if audit.budget else {})

    odd = model("odd", MODELS[audit.choice["protocol"]], server.url + ODD)
    if audit.choice["timing"] == "hang":
        odd["timeout_s"] = HANG_S
    models = [odd] if audit.budget else [model("good", "openai/good", server.url), odd]
    base_config = config(
        server.url,
        judges=[] if audit.budget else [model("judge", "openai/judge", server.url)],
        survey={"source": "wvs7-sample", "countries": ["Germany", "Japan", "Nigeria"], "topics": ["divorce"]},
        probes={"direct": {"samples": 1, "repair": False, "max_tokens": TOKENS}},
        limits={
            "max_attempts": 2,
            "max_retry_wait_s": MAX_WAIT_S,
            **({"budget_usd": float(audit.budget)} if audit.budget else {}),
        },
    )
    return AuditConfig.model_validate(base_config.model_dump(mode="json", exclude_none=True) | {"models": models})


@pytest.mark.parametrize("audit", CHOSEN, ids=lambda audit: audit.id)
def test_each_audit_is_as_expected(
    audit: HostileAudit, server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)

    server.script = lambda request: reply_of(audit.choice, request) if ODD in request.path else answer(request)
    config_path = config_file(tmp_path, config_of(audit, server))
    storage = f"sqlite:///{tmp_path / 'audits.db'}"
    with end_repeated_refusals(ATTEMPTS):
        run_command = auditor("run", config_path, "--storage", storage, "--report", tmp_path / "report.html")
    assert run_command.returncode == audit.exit, run_command.stderr
    commands = [run_command, auditor("verify", "scripted", "--storage", storage)]
    assert commands[-1].returncode == 0, commands[-1].stdout + commands[-1].stderr
    commands.append(auditor("report", "scripted", "--storage", storage, "--format", "markdown"))
    commands.append(auditor("export", "tables", "scripted", "--storage", storage, "-o", tmp_path / "tables"))
    check_outputs(audit, server, commands, tmp_path)
    assert count_usable(storage) == audit.ok


def check_outputs(audit: HostileAudit, server: FakeServer, commands: list[CommandOutput], folder: Path) -> None:
    """Check the number of requests, the printed texts, and that the key is only in request headers."""
    assert sum(ODD in request.path for request in server.requests) == audit.requests
    text = "\n".join(command.stdout + command.stderr for command in commands)
    assert not [word for word in audit.words if word not in text], text
    assert not INTERNAL.search(text), text
    assert not leaks_in(text.encode(errors="backslashreplace"))
    assert not leaks_in_folder(folder)
    assert not [r.path for r in server.requests if leaks_in(json.dumps(r.body).encode())]


def count_usable(storage: str) -> int:
    """Number of traces of the hostile model with a score."""
    with open_database(storage, create=False) as db:
        traces = results.load_traces(db, audits.get_audit(db, "scripted").id)
    return sum(trace.model == "odd" and trace.outcome is Outcome.OK for trace in traces)
