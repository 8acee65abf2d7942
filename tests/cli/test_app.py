"""The command line as a user meets it: exit codes, what goes to which stream, one line for each mistake."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from auditor.run import open_audit
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.cli_runner import auditor, run
from tests.support.fake_server import FakeServer


def write_config(server: FakeServer, folder: Path, **changes: Any) -> Path:
    path = folder / "audit.yaml"
    path.write_text(json.dumps(config(server.url, **changes).model_dump(mode="json", exclude_none=True)))
    return path


COMMANDS = [
    ["run"], ["status"], ["report"], ["review"], ["graph"], ["init"], ["doctor"], ["trust"], ["verify"],
    ["models", "list"], ["models", "pull"], ["surveys", "list"], ["import", "scores"],
    ["import", "traces"], ["import", "verdicts"], ["export", "ratings"],
    ["export", "weights"], ["surveys", "import"], ["surveys", "show"], ["surveys", "check"],
    ["experiment", "nonresponse"], ["compare"], ["check"], ["estimate"], ["export", "tables"], ["export", "paper"],
    ["export", "plots"], ["experiment", "samples"], ["experiment", "temperature"],
    ["experiment", "direct-temperature"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    done = auditor(*command, "--help")
    assert done.returncode == 0
    assert f"Example: auditor {' '.join(command)}" in " ".join(done.stdout.split())


def test_the_help_names_every_command() -> None:
    done = auditor("--help")
    assert all(command[0] in done.stdout for command in COMMANDS)
    assert auditor("--version").stdout.strip()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "none.toml"], 2, "none.toml: there is no such file. `auditor init` writes one"),
        (["report", "x"], 1, "there is no database at auditor.db"),
        (["status", "--storage", "nonsense"], 2, "'nonsense' is not a database URL"),
        (["import", "scores", "none.csv", "--survey", "wvs7-sample", "--audit", "a"], 1, "none.csv"),
        (["import", "scores", "none.csv", "--survey", "wvs8", "--audit", "a"], 1, "wvs"),
        (["report", "x", "-o", "x.pdf"], 2, "is no report format"),
        (["models", "pull", "nothing"], 1, "no weights called 'nothing'"),
    ],
)
def test_each_mistake_is_one_line(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    done = auditor(*words, cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert "Traceback" in auditor("--debug", *words, cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"survey": {"source": "wvs7-sampel"}}, "wvs7-sample"),
        ({"survey": {"source": "wvs7-sample", "countries": ["Germny"]}}, "Germany"),
        ({"survey": {"source": "wvs7-sample", "topics": ["divorse"]}}, "divorce"),
    ],
)
def test_a_wrong_survey_names_the_nearest(
    server: FakeServer, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    done = auditor("run", write_config(server, tmp_path, **change), cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not server.requests


def test_a_missing_key_is_said_before_the_first_call(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    done = auditor("run", write_config(server, tmp_path), cwd=tmp_path)
    assert done.returncode == 2
    assert f"the environment has no {KEY_VARIABLE}" in done.stderr
    assert "model 'model-a'" in done.stderr
    assert not server.requests


def test_it_is_a_program_of_its_own(tmp_path: Path) -> None:
    """What the other tests run in this process, as a process: its streams, its exit code, its last words."""
    for words, code in ((["--version"], 0), (["report", "x"], 1), (["--debug", "report", "x"], 1)):
        command = [sys.executable, "-m", "auditor", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
        assert done.returncode == code, done.stderr
        assert bool(done.stdout) is (code == 0)
        assert bool(done.stderr) is (code != 0)
        assert ("Traceback" in done.stderr) is ("--debug" in words)


def test_a_run_status_and_report(server: FakeServer, tmp_path: Path) -> None:
    file = write_config(server, tmp_path)
    done = auditor("run", file, "--report", "out.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "243 calls" in done.stderr
    assert str(tmp_path / "out.html") in done.stderr
    assert (tmp_path / "out.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    [row] = json.loads(auditor("status", "--json", cwd=tmp_path).stdout)
    assert (row["audit"], row["stage"]) == ("scripted", "person")
    assert "scripted" in auditor("status", cwd=tmp_path).stdout
    report = json.loads(auditor("report", "scripted", "--format", "json", cwd=tmp_path).stdout)
    assert [a["n"] for a in report["alignment"]] == [9, 9, 9]
    markdown = auditor("report", "scripted", "--format", "markdown", cwd=tmp_path).stdout
    assert "| model-a" in markdown
    assert auditor("report", "other", cwd=tmp_path).stderr.startswith("auditor: the database")


def test_a_review_in_plain_text_and_its_export(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_config(server, tmp_path)
    assert auditor("run", file, cwd=tmp_path).returncode == 0
    done = run(["review", "scripted", "--rater", "ada"], given="next\nleft\nquit\n")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(auditor("export", "ratings", "scripted", cwd=tmp_path).stdout.splitlines()))
    assert [r["rater"] for r in rows] == ["ada"]
    assert rows[0]["decision"] in ("left", "right")  # sides are shown in drawn order
    assert auditor("export", "ratings", "scripted", "-o", "r.jsonl", "-f", "jsonl", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "r.jsonl").read_text())["rater"] == "ada"


def test_init_writes_a_config_that_loads(tmp_path: Path) -> None:
    done = auditor("init", "my.toml", cwd=tmp_path)
    assert done.returncode == 0
    assert "auditor doctor my.toml" in done.stderr
    checks = json.loads(auditor("doctor", "my.toml", "--json", cwd=tmp_path).stdout)
    assert {"config"} <= {c["name"] for c in checks if c["state"] == "ok"}
    again = auditor("init", "my.toml", cwd=tmp_path)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)


def test_doctor_fails_when_something_is_missing(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    file = write_config(server, tmp_path)
    done = auditor("doctor", file, "--json", cwd=tmp_path)
    assert done.returncode == 1
    states = {c["name"]: c for c in json.loads(done.stdout)}
    assert states["key of model-a"]["state"] == "FAIL"
    assert f"export {KEY_VARIABLE}" in states["key of model-a"]["mend"]
    assert states["server of model-a"]["state"] == "ok"
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert auditor("doctor", file, cwd=tmp_path).returncode == 0


def test_doctor_looks_at_what_the_run_would(server: FakeServer, tmp_path: Path) -> None:
    probes = {"direct": {"samples": 1}, "semantic": {"encoder": "/nowhere/encoder"}}
    file = write_config(server, tmp_path, storage="sqlite:///missing/auditor.db", probes=probes)
    done = auditor("doctor", file, "--json", cwd=tmp_path)
    checks = {c["name"]: c for c in json.loads(done.stdout)}
    assert checks["storage"]["state"] == "FAIL"
    assert checks["encoder of moral answers"]["state"] == "FAIL"
    assert checks["encoder"]["found"].startswith("none is needed")


def test_the_graph_is_printed(tmp_path: Path) -> None:
    done = auditor("graph", cwd=tmp_path)
    assert done.returncode == 0
    for stage in ("plan", "elicit", "measure", "review", "detect", "resolve", "report"):
        assert stage in done.stdout


def test_surveys_and_models_are_listed(tmp_path: Path) -> None:
    surveys = {s["name"]: s for s in json.loads(auditor("surveys", "list", "--json").stdout)}
    assert (surveys["wvs7-sample"]["countries"], surveys["wvs7-sample"]["topics"]) == (14, 19)
    assert (surveys["pew2013-sample"]["countries"], surveys["pew2013-sample"]["topics"]) == (16, 8)
    assert "smollm2-135m" in auditor("models", "list").stdout


def test_imported_scores_give_the_r_of_scipy(tmp_path: Path) -> None:
    rng = random.Random(3)
    truth = {(f"Country {i}", f"topic {j}"): rng.uniform(-1, 1) for i in range(25) for j in range(20)}
    with (tmp_path / "survey.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["country", "topic", "score"])
        writer.writerows([*cell, repr(score)] for cell, score in truth.items())
    scores = {
        model: {cell: max(-1.0, min(1.0, 0.6 * t + rng.gauss(0, 0.4))) for cell, t in truth.items()}
        for model in ("alpha", "beta")
    }
    with (tmp_path / "scores.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "country", "topic", "method", "score"])
        writer.writerows([m, *cell, "direct", repr(s)] for m, cells in scores.items() for cell, s in cells.items())
    done = auditor("import", "scores", "scores.csv", "--survey", "survey.csv", "--audit", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1000 rows" in done.stderr
    report = json.loads(auditor("report", "mine", "--format", "json", cwd=tmp_path).stdout)
    rows = {a["model"]: a for a in report["alignment"]}
    for model, cells in scores.items():
        expected = stats.pearsonr([cells[c] for c in truth], list(truth.values()))
        low, high = expected.confidence_interval(0.95)
        row = rows[model]
        assert row["n"] == 500
        assert row["pearson_r"] == pytest.approx(expected.statistic, abs=1e-9)
        assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-6)
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high), abs=1e-9)
    handle = open_audit("mine", storage=f"sqlite:///{tmp_path / 'auditor.db'}")
    assert handle.scores()["alpha", "Country 0", "topic 0", "direct"] == scores["alpha"]["Country 0", "topic 0"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("model,country,topic,method\na,Germany,divorce,direct\n", "score"),
        ("model,country,topic,method,score\na,Germany,divorce,direct,1.2\n", "1.2"),
        ("model,country,topic,method,score\na,Germany,divorce,direct,x\n", "line 2"),
        ("model,country,topic,method,score\na,Germany,divorce,direct,0\na,Germany,divorce,direct,0\n", "there twice"),
        ("model,country,topic,method,score\na,,divorce,direct,0\n", "country"),
        ("model,country,topic,method,score\n", "has no rows"),
        ("", "scores.csv"),
    ],
)
def test_a_bad_file_of_scores_is_named_and_nothing_is_stored(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "scores.csv").write_text(rows)
    done = auditor("import", "scores", "scores.csv", "--survey", "wvs7-sample", "--audit", "a", cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "auditor.db").exists()


def test_other_spellings_of_a_country_meet_the_survey(tmp_path: Path) -> None:
    (tmp_path / "scores.jsonl").write_text(
        '{"model": "a", "country": "DE", "topic": "divorce", "method": "direct", "score": 0.4}\n'
        '{"model": "a", "country": "USA", "topic": "divorce", "method": "direct", "score": null}\n'
        '{"model": "a", "country": "Atlantis", "topic": "divorce", "method": "direct", "score": 0.1}\n'
    )
    done = auditor("import", "scores", "scores.jsonl", "--survey", "wvs7-sample", "--audit", "a", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 row about cells that the survey does not have" in done.stderr
    report = json.loads(auditor("report", "a", "--format", "json", cwd=tmp_path).stdout)
    [row] = report["alignment"]
    assert (row["n"], row["pearson_r"]) == (1, None)
    assert row["reason"]


def test_an_import_says_what_it_replaces_and_what_failed(tmp_path: Path) -> None:
    header = "model,country,topic,method,score\n"
    (tmp_path / "a.csv").write_text(header + "m,Germany,divorce,direct,0.5\nm,Japan,divorce,direct,\n")
    words = ["import", "scores", "a.csv", "--survey", "wvs7-sample", "--audit"]
    done = auditor(*words, "mine", cwd=tmp_path)
    assert "2 rows: 1 score of 1 model in audit 'mine'.\n  1 row without a score: counted as failed" in done.stderr
    assert "which replaces what it held" in auditor(*words, "mine", cwd=tmp_path).stderr
    assert "no calls" in auditor("status", cwd=tmp_path).stdout
    refused = auditor(*words, "no/name", cwd=tmp_path)
    assert (refused.returncode, "'no/name' cannot name an audit" in refused.stderr) == (2, True)


def test_what_would_fail_at_the_end_is_said_at_the_start(server: FakeServer, tmp_path: Path) -> None:
    path = write_config(server, tmp_path)
    done = auditor("run", path, "--report", "none/report.html", cwd=tmp_path)
    assert (done.returncode, server.requests) == (2, [])
    assert "none/report.html lies in a folder that does not exist" in done.stderr


def test_a_budget_that_cannot_hold_is_refused(server: FakeServer, tmp_path: Path) -> None:
    path = write_config(server, tmp_path, limits={"budget_usd": 1.0})
    done = auditor("run", path, cwd=tmp_path)
    assert (done.returncode, server.requests) == (2, [])
    assert "limits.budget_usd cannot hold: the price of 'model-a', 'model-b', 'model-c' is not known" in done.stderr
    told = auditor("doctor", path, cwd=tmp_path)
    assert told.returncode == 1
    assert "budget_usd cannot hold" in " ".join(told.stdout.split())


def test_a_changed_config_says_what_becomes_of_the_records(server: FakeServer, tmp_path: Path) -> None:
    auditor("run", write_config(server, tmp_path), cwd=tmp_path)
    asked = len(server.requests)
    again = auditor("run", write_config(server, tmp_path), cwd=tmp_path)
    assert "changed since" not in again.stderr
    changed = write_config(server, tmp_path, conflicts={"threshold": 0.5})
    done = auditor("run", changed, cwd=tmp_path)
    assert "changed since it was run last: conflicts.threshold. Its scores, verdicts and conflicts" in done.stderr
    assert len(server.requests) == asked
