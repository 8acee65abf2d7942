"""`auditor run`: changed settings, some of the cells, and what a run would send."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from auditor.run import open_audit
from tests.cli.test_app import write_config
from tests.support.cli_runner import auditor, fail, succeed
from tests.support.fake_server import FakeServer

DIRECT_ONLY = {"probes": {"direct": {"samples": 1}}, "judges": []}


def test_a_limited_run_asks_fewer_cells_and_a_full_run_reuses_their_answers(server: FakeServer, tmp_path: Path) -> None:
    path = write_config(server, tmp_path, **DIRECT_ONLY)
    limited = succeed("run", path, "--limit", "4", "--no-preflight", cwd=tmp_path)
    assert "12 calls in" in limited.stderr
    assert "Not planned: 5 cells beyond --limit (limits.max_cells)." in limited.stderr
    storage = f"sqlite:///{tmp_path / 'auditor.db'}"
    report = open_audit("scripted", storage=storage).report()
    assert [(row.planned, row.ok, row.missing) for row in report.coverage.total] == [(12, 12, 0)]
    assert report.coverage.unplanned_cells == 5
    assert json.loads(auditor("verify", "--json", cwd=tmp_path).stdout)["holds"]
    complete = auditor("run", path, "--no-preflight", cwd=tmp_path)
    assert "15 calls in" in complete.stderr
    assert ", 12 already recorded;" in complete.stderr
    report = open_audit("scripted", storage=storage).report()
    assert [(row.planned, row.ok, row.missing) for row in report.coverage.total] == [(27, 27, 0)]
    assert report.coverage.unplanned_cells == 0


def test_set_changes_settings_of_run_estimate_and_doctor(server: FakeServer, tmp_path: Path) -> None:
    path = write_config(server, tmp_path, **DIRECT_ONLY)
    forecast = auditor("estimate", path, "--set", "probes.direct.samples=2", "--limit", "3", "--json", cwd=tmp_path)
    assert json.loads(forecast.stdout)["cells"] == 3
    assert json.loads(forecast.stdout)["calls"]["low"] == 18
    checks = json.loads(auditor("doctor", path, "--set", "name=other", "--json", cwd=tmp_path).stdout)
    assert any(check["found"].startswith("other: 3 models, 9 cells") for check in checks)
    succeed("run", path, "--set", "name=other", "--limit", "1", cwd=tmp_path)
    assert [row["audit"] for row in json.loads(auditor("status", "--json", cwd=tmp_path).stdout)] == ["other"]


@pytest.mark.parametrize("model", ["sap/x", "nosuch/model", "custom_openai/x"])
def test_what_would_be_sent_to_an_unsupported_provider_is_not_estimated(tmp_path: Path, model: str) -> None:
    (tmp_path / "audit.toml").write_text(
        'name = "a"\nsurvey = { source = "wvs7-sample", countries = ["Germany"], topics = ["divorce"] }\njudges = []\n'
        f'[[models]]\nname = "gpt"\nmodel = "{model}"\napi_key = "os.environ/UNSET_KEY"\n[probes]\ndirect = {{}}\n'
    )
    commands = [("run", "audit.toml"), ("run", "audit.toml", "--dry-run"), ("estimate", "audit.toml")]
    messages = {
        (result.returncode, result.stderr) for result in (auditor(*command, cwd=tmp_path) for command in commands)
    }
    assert len(messages) == 1
    ((exit_code, message),) = messages
    assert exit_code == 2
    assert f"the provider '{model.split('/')[0]}'" in message


def test_an_estimate_and_a_dry_run_need_no_key(tmp_path: Path) -> None:
    (tmp_path / "audit.toml").write_text(
        'name = "a"\nsurvey = { source = "wvs7-sample", countries = ["Germany"], topics = ["divorce"] }\njudges = []\n'
        '[[models]]\nname = "gpt"\nmodel = "openai/gpt-4o"\napi_key = "os.environ/UNSET_KEY"\n[probes]\ndirect = {}\n'
    )
    for command in (("run", "audit.toml", "--dry-run"), ("estimate", "audit.toml")):
        succeed(*command, cwd=tmp_path)
    assert "UNSET_KEY is not set" in auditor("run", "audit.toml", cwd=tmp_path).stderr


@pytest.mark.parametrize("command", ["run", "estimate"])
def test_a_wrong_setting_is_a_usage_error_in_three_parts(server: FakeServer, tmp_path: Path, command: str) -> None:
    path = write_config(server, tmp_path, **DIRECT_ONLY)
    failed = auditor(command, path, "--set", "limits.budget_usd=cheap", cwd=tmp_path)
    assert failed.returncode == 2
    assert (
        "audit.yaml with --set limits.budget_usd: 'limits.budget_usd' must be a number greater than 0" in failed.stderr
    )
    assert "How to fix: Correct that value, for example budget_usd: 1.0" in failed.stderr
    assert not server.requests


def test_a_dry_run_shows_calls_cost_and_the_first_request_and_leaves_no_trace(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRIPTED_KEY")  # nothing is sent, so no key is needed
    path = write_config(server, tmp_path)
    dry_run = succeed("run", path, "--limit", "2", "--dry-run", cwd=tmp_path)
    assert "Dry run: nothing was sent or written." in dry_run.stderr
    request = json.loads(dry_run.stdout[dry_run.stdout.index("\n{") :])
    assert request["model"] == "openai/scripted-a"
    assert request["purpose"] == "direct"
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    tables = dry_run.stdout
    assert "model-a" in tables
    assert "review" in tables
    assert "unknown" in tables  # the price
    assert not server.requests
    assert [file.name for file in tmp_path.iterdir()] == ["audit.yaml"]


def test_a_dry_run_does_not_change_a_database(server: FakeServer, tmp_path: Path) -> None:
    path = write_config(server, tmp_path, **DIRECT_ONLY)
    succeed("run", path, "--limit", "1", cwd=tmp_path)
    contents, n_requests = (tmp_path / "auditor.db").read_bytes(), len(server.requests)
    dry_run = auditor("run", path, "--dry-run", cwd=tmp_path)
    assert "3 direct calls will not be repeated" in dry_run.stdout
    for words, problem in (
        (("run", path, "--dry-run", "--ask-again", "refused"), "--dry-run does not count the answers that --ask-again"),
        (("run", path, "--ask-again", "refused", "--models", ""), "--models names no model"),
        (("estimate", "--compare", path, "--limit", "9"), "--set and --limit change a config"),
    ):
        fail(*words, cwd=tmp_path, code=2, message=problem)
    assert (tmp_path / "auditor.db").read_bytes() == contents
    assert len(server.requests) == n_requests


def test_unknown_countries_of_a_survey_file_are_named_before_anything_is_paid(
    server: FakeServer, tmp_path: Path
) -> None:
    rows = [f"{country},divorce,0.1" for country in ("Germny", "Atlantis", "Japan")]
    (tmp_path / "own.csv").write_text("\n".join(["country,topic,score", *rows]), encoding="utf-8")
    path = write_config(server, tmp_path, survey={"source": str(tmp_path / "own.csv")}, **DIRECT_ONLY)
    message = "Unknown countries in the survey: 'Germny' (did you mean Germany?), 'Atlantis'."
    for command in (("estimate", path), ("run", path, "--dry-run"), ("run", path, "--no-preflight")):
        assert message in auditor(*command, cwd=tmp_path).stderr, command
    checks = json.loads(auditor("doctor", path, "--json", cwd=tmp_path).stdout)
    [check] = [check for check in checks if check["name"] == "countries"]
    assert check["state"] == "warn"
    assert check["found"].startswith(message)
    known = write_config(server, tmp_path, **DIRECT_ONLY)
    assert "Unknown" not in auditor("estimate", known, cwd=tmp_path).stderr


def test_a_run_whose_budget_ends_says_so_and_leaves_the_audit_incomplete(server: FakeServer, tmp_path: Path) -> None:
    probes = {"direct": {"samples": 3}}
    path = write_config(server, tmp_path, models=1, judges=[], probes=probes, limits={"budget_usd": 0.1})
    settings = json.loads(path.read_text())
    for model in settings["models"]:
        model["price"] = {"input": 10.0, "output": 100.0}
    path.write_text(json.dumps(settings))
    ended = succeed("run", path, "--no-preflight", cwd=tmp_path)
    message = " ".join(ended.stderr.split())
    [(n_sent, n_unsent)] = [
        (int(sent), int(unsent)) for sent, unsent in re.findall(r"(\d+) calls? in [\d.]+ s, (\d+) not sent", message)
    ]
    assert (n_sent, n_sent + n_unsent) == (len(server.requests), 27)
    assert f"{n_unsent} over_budget" in message
    assert "of $0.1000 are spent. Before a request is sent" in message
    assert "The audit is not complete" in message
    assert "the budget is spent" not in message
    check = auditor("check", "--min-coverage", "0.95", "--json", cwd=tmp_path)
    assert (check.returncode, json.loads(check.stdout)["complete"]) == (4, False)
    assert f"{n_unsent} were never asked for" in auditor("status", cwd=tmp_path).stderr
    raised = auditor("run", path, "--set", "limits.budget_usd=9", cwd=tmp_path)
    assert "27 calls" not in raised.stderr
    succeed("check", "--min-coverage", "0.95", cwd=tmp_path)
