"""The command line: exit codes, output streams, one line for each user error, and groups of commands in the help."""

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
from typer.main import get_command

from auditor.cli.app import GROUPS, build_app
from auditor.run import open_audit
from auditor.storage.database import open_database
from tests.support.audit_configs import FOUR_CELLS, KEY, KEY_VARIABLE, config
from tests.support.cli_runner import auditor, fail, run, succeed
from tests.support.fake_server import FakeServer
from tests.support.patience import PATIENCE_S
from tests.support.review_audit import save_review_audit

ROOT: Any = get_command(build_app())
GROUPS_OF_COMMANDS = ["", *(name for name, command in ROOT.commands.items() if hasattr(command, "commands"))]


def write_config(server: FakeServer, folder: Path, **changes: Any) -> Path:
    """Write a test audit's config to `audit.yaml` (JSON is valid YAML) and return the path."""
    path = folder / "audit.yaml"
    path.write_text(json.dumps(config(server.url, **changes).model_dump(mode="json", exclude_none=True)))
    return path


SMALL: dict[str, Any] = {"models": 2, "survey": FOUR_CELLS}
"""Changes to the test audit after which it has 8 answers and 8 verdicts."""


def list_commands(group: Any = None, path: tuple[str, ...] = ()) -> list[list[str]]:
    """The words of every command of the program, in groups or not."""
    commands = getattr(group or get_command(build_app()), "commands", None)
    if commands is None:
        return [list(path)]
    return [words for name, command in commands.items() for words in list_commands(command, (*path, name))]


COMMANDS = list_commands()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    help_command = succeed(*command, "--help")
    assert f"Example: auditor {' '.join(command)}" in " ".join(help_command.stdout.split())


def test_the_help_names_every_command() -> None:
    help_command = auditor("--help")
    assert all(command[0] in help_command.stdout for command in COMMANDS)
    assert auditor("--version").stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["run", "none.toml"], 2, "none.toml: there is no such file. Check the path, or create"),
        (["report", "x"], 1, "there is no database at auditor.db"),
        (["status", "--storage", "nonsense"], 2, "'nonsense' is not a database URL"),
        (["status", "--storage", "sqlite:///file:a.db?mode=memory&uri=true"], 2, "does not name a file"),
        (["import", "scores", "none.csv", "--survey", "wvs7-sample", "--audit", "a"], 1, "none.csv"),
        (["import", "scores", "none.csv", "--survey", "wvs8", "--audit", "a"], 1, "wvs"),
        (["report", "x", "-o", "x.pdf"], 2, "is not a report format"),
        (["models", "pull", "nothing"], 1, "'nothing' is not a model that auditor can download"),
    ],
)
def test_each_user_error_is_one_line(tmp_path: Path, arguments: list[str], exit_code: int, message: str) -> None:
    failed_command = fail(*arguments, cwd=tmp_path, code=exit_code, message=message)
    assert failed_command.stderr.count("\n") == 1
    assert failed_command.stdout == ""
    assert "Traceback" in auditor("--debug", *arguments, cwd=tmp_path).stderr


def test_a_missing_file_names_the_nearest_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "audit.toml").touch()
    message = "audti.toml: there is no such file. Did you mean 'audit.toml'? Check the path"
    fail("run", "audti.toml", cwd=tmp_path, code=2, message=message)


def test_each_problem_of_a_configuration_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "audit.toml").write_text("samples = 5\nbudget = 5\n")
    failed_run = fail("run", "audit.toml", cwd=tmp_path, code=2, message="the key 'name' is missing")
    first, *others = failed_run.stderr.splitlines()
    assert first.startswith("auditor: audit.toml: the key 'name' is missing. How to fix: Add ")
    assert [line.split(" How to fix:")[0] for line in others] == [
        "  also: the key 'models' is missing.",
        "  also: unknown key 'samples'.",
        "  also: unknown key 'budget'.",
    ]


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
    failed_run = auditor("run", write_config(server, tmp_path, **change), cwd=tmp_path)
    assert failed_run.returncode in (1, 2)
    assert message in failed_run.stderr
    assert "Traceback" not in failed_run.stderr
    assert not server.requests


def test_a_missing_key_is_reported_before_the_first_call(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    failed_run = auditor("run", write_config(server, tmp_path), cwd=tmp_path)
    assert failed_run.returncode == 2
    assert f"the environment variable {KEY_VARIABLE} is not set." in failed_run.stderr
    assert "model 'model-a'" in failed_run.stderr
    assert not server.requests


def test_the_module_runs_as_a_separate_process(tmp_path: Path) -> None:
    """The other tests run commands in this process; here a subprocess shows streams, exit code and traceback."""
    for arguments, exit_code in ((["--version"], 0), (["--debug", "report", "x"], 1)):
        command = [sys.executable, "-m", "auditor", *arguments]
        process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE_S)
        assert process.returncode == exit_code, process.stderr
        assert bool(process.stdout) is (exit_code == 0)
        assert bool(process.stderr) is (exit_code != 0)
        assert ("Traceback" in process.stderr) is ("--debug" in arguments)


def test_a_run_status_and_report(server: FakeServer, tmp_path: Path) -> None:
    config_path = write_config(server, tmp_path, **SMALL)
    run_command = succeed("run", config_path, "--report", "out.html", cwd=tmp_path)
    assert run_command.stdout == ""
    assert "16 calls" in run_command.stderr
    assert str(tmp_path / "out.html") in run_command.stderr
    assert (tmp_path / "out.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    [row] = json.loads(auditor("status", "--json", cwd=tmp_path).stdout)
    assert (row["audit"], row["stage"]) == ("scripted", "person")
    assert row["conflicts_looked_for"] is True
    assert "scripted" in auditor("status", cwd=tmp_path).stdout
    report = json.loads(auditor("report", "scripted", "--format", "json", cwd=tmp_path).stdout)
    assert [a["n"] for a in report["alignment"]] == [4, 4]
    markdown = auditor("report", "scripted", "--format", "markdown", cwd=tmp_path).stdout
    assert "| model-a" in markdown
    brief = auditor("report", "scripted", "--brief", "--format", "markdown", cwd=tmp_path).stdout
    assert "What to do next" in brief
    assert len(brief.split()) < min(1000, len(markdown.split()))
    succeed("report", "scripted", "--brief", cwd=tmp_path)
    assert (tmp_path / "scripted-brief.html").is_file()
    no_json = auditor("report", "scripted", "--brief", "--format", "json", cwd=tmp_path)
    assert (no_json.returncode, "the brief report has no JSON form" in no_json.stderr) == (2, True)
    assert auditor("report", "other", cwd=tmp_path).stderr.startswith("auditor: the database")


def test_a_review_in_plain_text_and_its_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_database("sqlite:///auditor.db") as db:
        save_review_audit(db, conflicts=2)
    review_command = run(["review", "moral", "--rater", "ada"], stdin_text="next\nleft\nquit\n")
    assert review_command.returncode == 0, review_command.stderr
    rows = list(csv.DictReader(auditor("export", "ratings", "moral").stdout.splitlines()))
    assert [r["rater"] for r in rows] == ["ada"]
    assert rows[0]["decision"] in ("left", "right")  # the order of the sides is random
    succeed("export", "ratings", "moral", "-o", "r.jsonl", "-f", "jsonl")
    assert json.loads((tmp_path / "r.jsonl").read_text())["rater"] == "ada"


def test_init_writes_a_config_that_loads(tmp_path: Path) -> None:
    init_command = succeed("init", "my.toml", cwd=tmp_path)
    assert "auditor doctor my.toml" in init_command.stderr
    checks = json.loads(auditor("doctor", "my.toml", "--json", cwd=tmp_path).stdout)
    assert {"config"} <= {c["name"] for c in checks if c["state"] == "ok"}
    fail("init", "my.toml", cwd=tmp_path, code=2, message="exists already")


def test_doctor_fails_when_something_is_missing(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    config_path = write_config(server, tmp_path)
    doctor_command = auditor("doctor", config_path, "--json", cwd=tmp_path)
    assert doctor_command.returncode == 1
    checks_by_name = {c["name"]: c for c in json.loads(doctor_command.stdout)}
    assert checks_by_name["key of model-a"]["state"] == "FAIL"
    assert f"export {KEY_VARIABLE}" in checks_by_name["key of model-a"]["mend"]
    assert checks_by_name["server of model-a"]["state"] == "ok"
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    succeed("doctor", config_path, cwd=tmp_path)


def test_doctor_checks_the_storage_and_encoder_of_the_run(server: FakeServer, tmp_path: Path) -> None:
    probes = {"direct": {"samples": 1}, "semantic": {"encoder": "/nowhere/encoder"}}
    config_path = write_config(server, tmp_path, storage="sqlite:///missing/auditor.db", probes=probes)
    doctor_command = auditor("doctor", config_path, "--json", cwd=tmp_path)
    checks = {c["name"]: c for c in json.loads(doctor_command.stdout)}
    assert checks["storage"]["state"] == "FAIL"
    assert checks["encoder of free-text answers"]["state"] == "FAIL"
    assert checks["encoder"]["found"].startswith("not needed")


def test_doctor_and_run_say_what_needs_an_encoder_that_cannot_be_loaded(server: FakeServer, tmp_path: Path) -> None:
    config_path = write_config(
        server, tmp_path, embedding={"model": "/nowhere/encoder"}, probes={"direct": {"samples": 2}}
    )
    checks = {c["name"]: c for c in json.loads(auditor("doctor", config_path, "--json", cwd=tmp_path).stdout)}
    assert checks["encoder"]["state"] == "FAIL"
    advice = 'Only self-consistency needs this encoder. To leave it out: embedding = { model = "none" }'
    assert checks["encoder"]["mend"].endswith(advice)
    assert " ".join(auditor("run", config_path, cwd=tmp_path).stderr.split()).endswith(advice)


def test_the_graph_is_printed(tmp_path: Path) -> None:
    graph_command = succeed("graph", cwd=tmp_path)
    for stage in ("plan", "cells", "measure", "detect", "resolve", "report"):
        assert stage in graph_command.stdout
    expanded = auditor("graph", "--xray", cwd=tmp_path)
    assert "check_precision" not in graph_command.stdout
    assert "check_precision" in expanded.stdout
    assert "subgraph cells" in expanded.stdout


def test_surveys_and_models_are_listed(tmp_path: Path) -> None:
    surveys = {s["name"]: s for s in json.loads(auditor("surveys", "list", "--json").stdout)}
    assert (surveys["wvs7-sample"]["countries"], surveys["wvs7-sample"]["topics"]) == (17, 19)
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
    import_command = succeed(
        "import", "scores", "scores.csv", "--survey", "survey.csv", "--audit", "mine", cwd=tmp_path
    )
    assert "1\u202f000 rows" in import_command.stderr
    report = json.loads(auditor("report", "mine", "--format", "json", cwd=tmp_path).stdout)
    rows = {a["model"]: a for a in report["alignment"]}
    for model, cells in scores.items():
        expected = stats.pearsonr([cells[c] for c in truth], list(truth.values()))
        low, high = expected.confidence_interval(0.95)
        row = rows[model]
        assert row["n"] == 500
        assert row["pearson_r"] == pytest.approx(expected.statistic, abs=1e-9)
        assert 1 > row["p_value"] > expected.pvalue  # over countries and topics, not over cells
        assert (row["fisher_ci_low"], row["fisher_ci_high"]) == pytest.approx((low, high), abs=1e-9)
    handle = open_audit("mine", storage=f"sqlite:///{tmp_path / 'auditor.db'}")
    assert handle.scores()["alpha", "Country 0", "topic 0", "direct"] == scores["alpha"]["Country 0", "topic 0"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("model,country,topic,method\na,Germany,divorce,direct\n", "score"),
        ("model,country,topic,method,score\na,Germany,divorce,direct,1.2\n", "1.2"),
        ("model,country,topic,method,score\na,Germany,divorce,direct,x\n", "line 2"),
        ("model,country,topic,method,score\na,Germany,divorce,direct,0\na,Germany,divorce,direct,0\n",
         "two rows have the same model"),
        ("model,country,topic,method,score\na,,divorce,direct,0\n", "country"),
        ("model,country,topic,method,score\n", "has no rows"),
        ("", "scores.csv"),
    ],
)  # fmt: skip
def test_a_bad_file_of_scores_is_named_and_nothing_is_stored(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "scores.csv").write_text(rows)
    failed_import = auditor("import", "scores", "scores.csv", "--survey", "wvs7-sample", "--audit", "a", cwd=tmp_path)
    assert failed_import.returncode == 1
    assert message in failed_import.stderr
    assert failed_import.stderr.count("\n") == 1
    assert not (tmp_path / "auditor.db").exists()


def test_country_codes_are_matched_to_the_survey(tmp_path: Path) -> None:
    (tmp_path / "scores.jsonl").write_text(
        '{"model": "a", "country": "DE", "topic": "divorce", "method": "direct", "score": 0.4}\n'
        '{"model": "a", "country": "USA", "topic": "divorce", "method": "direct", "score": null}\n'
        '{"model": "a", "country": "Atlantis", "topic": "divorce", "method": "direct", "score": 0.1}\n'
    )
    import_command = succeed(
        "import", "scores", "scores.jsonl", "--survey", "wvs7-sample", "--audit", "a", cwd=tmp_path
    )
    assert "the survey does not have: Atlantis (1)" in import_command.stderr
    report = json.loads(auditor("report", "a", "--format", "json", cwd=tmp_path).stdout)
    [row] = report["alignment"]
    assert (row["n"], row["pearson_r"]) == (1, None)
    assert row["reason"]


def test_an_import_reports_replaced_audits_and_failed_rows(tmp_path: Path) -> None:
    header = "model,country,topic,method,score\n"
    (tmp_path / "a.csv").write_text(header + "m,Germany,divorce,direct,0.5\nm,Japan,divorce,direct,\n")
    arguments = ["import", "scores", "a.csv", "--survey", "wvs7-sample", "--audit"]
    import_command = auditor(*arguments, "mine", cwd=tmp_path)
    assert (
        "2 rows: 1 score of 1 model in audit 'mine'.\n  1 row without a score: counted as lost samples"
        in import_command.stderr
    )
    assert "which replaces its previous contents" in auditor(*arguments, "mine", cwd=tmp_path).stderr
    shown = auditor("status", cwd=tmp_path).stdout
    assert "no calls" in shown
    assert "not looked for" in shown
    [row] = json.loads(auditor("status", "--json", cwd=tmp_path).stdout)
    assert (row["conflicts"], row["open"], row["conflicts_looked_for"]) == (0, 0, False)
    report = json.loads(auditor("report", "--format", "json", cwd=tmp_path).stdout)
    assert (report["conflicts"]["total"], report["conflicts"]["looked_for"]) == (0, False)
    fail(*arguments, "no/name", cwd=tmp_path, code=2, message="'no/name' is not a valid audit name")


def test_a_report_path_that_cannot_be_written_is_reported_before_the_run(server: FakeServer, tmp_path: Path) -> None:
    path = write_config(server, tmp_path)
    failed_run = auditor("run", path, "--report", "none/report.html", cwd=tmp_path)
    assert (failed_run.returncode, server.requests) == (2, [])
    assert "none/report.html is in a folder that does not exist" in failed_run.stderr


def test_a_budget_without_known_prices_is_refused(server: FakeServer, tmp_path: Path) -> None:
    path = write_config(server, tmp_path, limits={"budget_usd": 1.0})
    failed_run = auditor("run", path, cwd=tmp_path)
    assert (failed_run.returncode, server.requests) == (2, [])
    assert (
        "limits.budget_usd: cannot be enforced: the price of 'model-a', 'model-b', 'model-c' is unknown"
        in failed_run.stderr
    )
    doctor_command = auditor("doctor", path, cwd=tmp_path)
    assert doctor_command.returncode == 1
    assert "budget_usd: cannot be enforced" in " ".join(doctor_command.stdout.split())


def test_a_run_reports_how_a_changed_config_affects_stored_results(server: FakeServer, tmp_path: Path) -> None:
    auditor("run", write_config(server, tmp_path, **SMALL), cwd=tmp_path)
    request_count = len(server.requests)
    second_run = auditor("run", write_config(server, tmp_path, **SMALL), cwd=tmp_path)
    assert "changed since" not in second_run.stderr
    changed_config = write_config(server, tmp_path, conflicts={"threshold": 0.5}, **SMALL)
    changed_run = auditor("run", changed_config, cwd=tmp_path)
    assert "changed since its last run: conflicts.threshold. Its scores, verdicts and conflicts" in changed_run.stderr
    assert len(server.requests) == request_count


def test_a_run_says_that_the_scores_of_people_have_changed(server: FakeServer, tmp_path: Path) -> None:
    path = write_config(server, tmp_path, survey={"source": str(tmp_path / "own.csv")}, judges=[])
    notices = []
    for score in (0.1, 0.1, 0.9):
        (tmp_path / "own.csv").write_text(f"country,topic,score\nJapan,divorce,{score}\n", encoding="utf-8")
        notices.append("reads a file that has changed" in succeed("run", path, cwd=tmp_path).stderr)
    assert notices == [False, False, True]


def subcommands(name: str) -> dict[str, Any]:
    """The commands of the program, or of one of its groups."""
    commands: dict[str, Any] = (ROOT.commands[name] if name else ROOT).commands
    return commands


@pytest.mark.parametrize("name", GROUPS_OF_COMMANDS)
def test_every_command_has_one_line_that_is_not_cut_off(name: str) -> None:
    help_command = auditor(*name.split(), "--help", COLUMNS="80")
    lines = help_command.stdout.splitlines()
    for command_name, command in subcommands(name).items():
        summary = command.get_short_help_str(1000).rstrip()
        assert any(line.split(None, 1) == [command_name, summary] for line in lines), (command_name, summary)
        assert summary.endswith(".")


def test_the_commands_are_in_groups() -> None:
    lines = auditor("--help").stdout.splitlines()
    headings = [line.rstrip(":") for line in lines if line.rstrip(":") in GROUPS]
    assert headings == list(GROUPS)
    assert lines.index("Get started:") < next(i for i, line in enumerate(lines) if line.startswith("  init "))
    assert all(command.rich_help_panel in GROUPS for command in subcommands("").values())
