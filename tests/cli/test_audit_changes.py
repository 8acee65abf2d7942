"""`auditor rename` and `auditor delete`: what changes, what stays, and that the records still verify."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.domain import Decision, RatingAction
from auditor.run import run_audit
from auditor.storage import audits
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import open_database, run_lock
from auditor.storage.hash_chain import contains_head, verify_chain
from auditor.storage.rating_log import RatingChange, append_rating
from auditor.storage.review_queue import ConflictQueue
from tests.cli.test_app import SMALL
from tests.support.audit_configs import config
from tests.support.cli_runner import auditor, fail, succeed
from tests.support.fake_server import FakeServer


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


@pytest.fixture(scope="module")
def template(server: FakeServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the audit `scripted`, one of whose conflicts a person has decided."""
    path = tmp_path_factory.mktemp("decided") / "audits.db"
    run_audit(config(server.url, **SMALL), storage=f"sqlite:///{path}")
    with open_database(f"sqlite:///{path}") as db:
        audit = audits.get_audit(db, "scripted")
        [(key, _)] = ConflictQueue(db, audit.id, rater="ada").keys(QueueFilter(), limit=1)
        append_rating(db, audit.id, key, "ada", RatingChange(RatingAction.DECIDE, decision=Decision.LEFT))
    return path


@pytest.fixture
def decided(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a copy of the database."""
    storage = f"sqlite:///{shutil.copy(template, tmp_path)}"
    monkeypatch.setenv("AUDITOR_STORAGE", storage)
    return storage


def chain_head(storage: str) -> str:
    """Head of the hash chain, which must hold."""
    with open_database(storage, create=False) as db:
        check = verify_chain(db)
    assert check.breaks == []
    return check.head


def test_a_deleted_audit_is_gone_and_the_records_still_verify(decided: str, server: FakeServer) -> None:
    head, n_requests = chain_head(decided), len(server.requests)
    run_audit(config(server.url, name="other", **SMALL), storage=decided)
    deleted = succeed("delete", "scripted", "--yes")
    assert "This deletes from 'scripted': the configuration, 8 samples, 8 verdicts," in deleted.stderr
    assert "This keeps the recorded answers of models" in deleted.stderr
    assert "1 human decision, because the hash chain covers them" in deleted.stderr
    assert [row["audit"] for row in json.loads(auditor("status", "--json").stdout)] == ["other"]
    assert "has no audit 'scripted'" in auditor("report", "scripted").stderr
    assert json.loads(auditor("verify", "other", "--json").stdout)["holds"]
    with open_database(decided, create=False) as db:
        assert contains_head(db, head)
        assert verify_chain(db).breaks == []
    assert len(server.requests) == n_requests  # the other audit asks the same questions


def test_a_run_after_a_deletion_reuses_the_answers(decided: str, server: FakeServer) -> None:
    n_requests = len(server.requests)
    assert auditor("delete", "scripted", "--yes").returncode == 0
    run_audit(config(server.url, **SMALL), storage=decided)
    assert len(server.requests) == n_requests
    assert json.loads(auditor("verify", "--json").stdout)["holds"]
    [row] = json.loads(auditor("status", "--json").stdout)
    assert row["traces_ok"] == 8


def test_delete_asks_first(decided: str) -> None:
    refused = auditor("delete", "scripted")
    assert refused.returncode == 2
    assert "delete asks for confirmation, but there is no terminal. Add --yes to delete." in refused.stderr
    assert json.loads(auditor("status", "--json").stdout)


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_the_answer_decides(decided: str, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    monkeypatch.setattr("auditor.cli.audit_changes.can_ask", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda text, err: answer == "y")
    assert auditor("delete", "scripted").returncode == code
    assert len(json.loads(auditor("status", "--json").stdout)) == code


def test_neither_command_guesses_an_audit(decided: str) -> None:
    for command in ("rename", "delete"):
        assert auditor(command).returncode == 2


def test_a_renamed_audit_keeps_its_results_and_is_not_rebuilt(decided: str, server: FakeServer) -> None:
    head, n_requests = chain_head(decided), len(server.requests)
    renamed = succeed("rename", "scripted", "fresh")
    assert 'set name = "fresh" in its configuration' in renamed.stderr
    assert "draws of the review depend on the audit's name" in renamed.stderr
    with open_database(decided, create=False) as db:
        assert contains_head(db, head)
        [act] = verify_chain(db).acts
        assert (act["act"], act["audit"], act["to"]) == ("rename", "scripted", "fresh")
    assert chain_head(decided) != head
    assert json.loads(auditor("report", "fresh", "-f", "json").stdout)["audit"]["name"] == "fresh"
    assert "fresh" in auditor("export", "ratings", "fresh").stdout
    with open_database(decided, create=False) as db:
        before = audits.get_audit(db, "fresh")
    run_audit(config(server.url, name="fresh", **SMALL), storage=decided)
    with open_database(decided, create=False) as db:
        after = audits.get_audit(db, "fresh")
        assert (after.id, after.config, after.config_hash) == (before.id, before.config, before.config_hash)
    assert len(server.requests) == n_requests
    assert len(json.loads(auditor("status", "--json").stdout)) == 1


@pytest.mark.parametrize(
    ("new_name", "message"),
    [("scripted", "an audit named 'scripted' already exists"), ("a/b", "'a/b' is not a valid audit name")],
)
def test_a_name_that_cannot_be_given_is_refused(decided: str, new_name: str, message: str) -> None:
    fail("rename", "scripted", new_name, code=2, message=message)


def test_an_audit_that_is_being_run_is_left_alone(decided: str) -> None:
    with open_database(decided, create=False) as db, run_lock(db, "scripted"):
        for arguments in (["delete", "scripted", "--yes"], ["rename", "scripted", "fresh"]):
            fail(*arguments, code=1, message="is already being run by process")


def test_an_imported_audit_can_be_renamed_and_deleted(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("model,country,topic,method,score\nm,Germany,divorce,direct,0.5\n")
    command = ("import", "scores", "scores.csv", "--survey", "wvs7-sample", "--audit", "mine")
    assert auditor(*command, cwd=tmp_path).returncode == 0
    assert auditor("rename", "mine", "theirs", cwd=tmp_path).returncode == 0
    assert auditor("delete", "theirs", "--yes", cwd=tmp_path).returncode == 0
    assert json.loads(auditor("status", "--json", cwd=tmp_path).stdout) == []


def test_an_audit_of_simulated_models_keeps_a_name_that_says_so(tmp_path: Path) -> None:
    """Under another one its configuration would be refused, and no command could open the database again."""
    (tmp_path / "audit.toml").write_text(
        'name = "simulated-a"\njudges = []\n'
        'survey = { source = "wvs7-sample", countries = ["Japan"], topics = ["divorce"] }\n'
        '[[models]]\nname = "west"\nmodel = "simulated/western-everywhere"\n[probes]\ndirect = { samples = 1 }\n'
    )
    assert auditor("run", "audit.toml", cwd=tmp_path).returncode == 0
    fail("rename", "simulated-a", "mine", cwd=tmp_path, code=2, message="Name it simulated-mine")
    assert auditor("rename", "simulated-a", "simulated-mine", cwd=tmp_path).returncode == 0
    assert json.loads(auditor("status", "--json", cwd=tmp_path).stdout)[0]["audit"] == "simulated-mine"
