"""The example of a probe in a package of its own: built, installed, and used as a user would, until it is removed."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from auditor.cli.app import build_app
from auditor.config import AuditConfig, installed_probes, load_config
from auditor.cost_estimation.planned_calls import plan_probe_calls
from auditor.domain import Outcome
from auditor.domain.audit_records import AnswerSelection
from auditor.errors import ConfigError, ProbeError, UsageError
from auditor.exports.evidence import REPORT, check_evidence
from auditor.probe_interface import ProbeResult
from auditor.reports.output import render_report
from auditor.reports.sections.run_summary import build_run_summary
from auditor.run import load_planned_survey, open_audit, run_audit
from auditor.run.audit_changes import exclude_answers, undo_exclusion
from auditor.run.fingerprints import fingerprint
from auditor.storage.database import open_database
from auditor.storage.records import load_records, save_records
from tests.exports.test_evidence import edit
from tests.support.probe_packages import install_package, use_packages

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "probe-plugin"
NAME = "simulated-sure"
CONFIG = f"""name = "{NAME}"
survey = {{ source = "wvs7-sample", countries = ["Germany", "Japan"], topics = ["homosexuality", "divorce"] }}
judges = []
embedding = {{ model = "none" }}
[[models]]
name = "western"
model = "simulated/western-everywhere"
[[models]]
name = "inconsistent"
model = "simulated/inconsistent"
[probes.direct]
samples = 2
[probes.confidence]
[check.probes.confidence]
max_overconfidence = 1.0
min_confidence = 0.99
"""
MAX_LINES = 200
N_CALLS = 2 * 4  # models, cells


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the built package is installed into."""
    folder = tmp_path_factory.mktemp("plugin")
    return install(shutil.copytree(EXAMPLE, folder / "source"), folder / "site")


def install(source: Path, folder: Path) -> Path:
    """Build a package and install it into an empty folder, without a network."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(folder), str(source)], check=True, capture_output=True)
    return folder


@pytest.fixture
def config(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AuditConfig:
    use_packages(monkeypatch, installed)
    (tmp_path / "audit.toml").write_text(CONFIG)
    return load_config(tmp_path / "audit.toml")


@pytest.fixture(scope="module")
def database(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database with the audit, which was run under two names."""
    folder = tmp_path_factory.mktemp("database")
    (folder / "audit.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_packages(monkeypatch, installed)
        audit = load_config(folder / "audit.toml")
        for name in (NAME, "simulated-later"):
            run_audit(audit.model_copy(update={"name": name}), storage=f"sqlite:///{folder / 'audits.db'}")
    return folder / "audits.db"


@pytest.fixture
def storage(config: AuditConfig, database: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(database, tmp_path)}"


@pytest.fixture(autouse=True)
def forget_packages() -> Iterator[None]:
    yield
    installed_probes.list_probe_sources.cache_clear()


def call(*arguments: str, exit_code: int = 0) -> str:
    """Run a command; returns what it prints."""
    result = CliRunner().invoke(build_app(arguments[0]), [*arguments], catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return result.output


def test_the_example_is_short_and_its_own_test_passes(config: AuditConfig) -> None:
    module = EXAMPLE / "auditor_probe_confidence" / "__init__.py"
    assert len(module.read_text(encoding="utf-8").splitlines()) <= MAX_LINES
    tests = runpy.run_path(str(EXAMPLE / "tests" / "test_confidence.py"))
    [test] = [function for name, function in tests.items() if name.startswith("test_")]
    test()


def test_the_estimate_is_the_number_of_calls(config: AuditConfig, storage: str) -> None:
    survey = load_planned_survey(config)
    planned = list(plan_probe_calls(config, survey, "confidence"))
    assert [calls.calls.expected for calls in planned] == [N_CALLS / 2] * 2
    assert planned[0].calls.low == planned[0].calls.high
    results = open_audit(NAME, storage=storage).probe_results("confidence")
    assert len({result.key for result in results}) == N_CALLS


def test_a_second_run_sends_nothing(config: AuditConfig, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = installed_probes.load_probe("confidence").probe
    monkeypatch.setattr(type(probe), "simulate", lambda self, call: pytest.fail("a request was sent"))
    earlier = open_audit(NAME, storage=storage).probe_results("confidence")
    run_audit(config, storage=storage)
    assert open_audit(NAME, storage=storage).probe_results("confidence") == earlier


def test_every_format_of_the_report_has_the_figures(storage: str) -> None:
    report = json.loads(call("report", NAME, "--storage", storage, "--format", "json"))
    [western, inconsistent] = report["probes"]["confidence"]["models"]
    assert western["answers"] == inconsistent["answers"] == N_CALLS / 2
    assert 0 < western["confidence"]["value"] < 1
    [coverage] = [row for row in report["coverage"]["total"] if row["stage"] == "confidence"]
    assert (coverage["planned"], coverage["ok"]) == (N_CALLS, N_CALLS)
    stored_report = open_audit(NAME, storage=storage).report()
    assert [table.id for table in build_run_summary(stored_report)] == ["alignment", "confidence"]
    for output_format in ("html", "markdown", "text"):
        text = render_report(stored_report, output_format)
        assert "How sure are the models?" in text
        assert "is the most overconfident model" in text
        assert f"{western['confidence']['value']:.2f}" in text


def test_the_table_and_the_figures_are_exported(storage: str, tmp_path: Path) -> None:
    call("export", "tables", NAME, "--storage", storage, "-o", str(tmp_path / "tables"), "--format", "jsonl")
    rows = [json.loads(line) for line in (tmp_path / "tables" / "probe_result.jsonl").read_text().splitlines()]
    assert {row["probe"] for row in rows} == {"confidence"}
    assert len(rows) == N_CALLS
    assert (tmp_path / "tables" / "report_confidence_refusals.csv").exists()


def test_its_thresholds_are_gates(storage: str) -> None:
    result = open_audit(NAME, storage=storage).check()
    gates = {(gate.name, gate.subject): gate.verdict for gate in result.gates if gate.name.startswith("confidence.")}
    assert gates["confidence.max_overconfidence", "western"] == "passed"
    assert gates["confidence.min_confidence", "western"] == "failed"


def test_two_audits_are_compared(storage: str) -> None:
    text = call("compare", NAME, "simulated-later", "--storage", storage, "--full")
    assert "How sure are the models?" in text


def test_a_refused_answer_is_no_number(config: AuditConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = installed_probes.load_probe("confidence").probe
    monkeypatch.setattr(type(probe), "simulate", lambda self, call: "I'm sorry, but I can't help with that.")
    url = f"sqlite:///{tmp_path / 'refusals.db'}"
    run_audit(config, storage=url)
    results = open_audit(NAME, storage=url).probe_results("confidence")
    assert {(result.outcome, result.value) for result in results} == {(Outcome.REFUSED, None)}
    [row, _] = open_audit(NAME, storage=url).report().probes["confidence"].models
    assert (row.answers, row.refused, row.confidence.value) == (0, N_CALLS / 2, None)


def test_verify_reads_the_answers_again(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"confidence: {N_CALLS} answers were read again, and 0 say" in call("verify", NAME, "--storage", storage)
    with open_database(storage) as db:
        [first, *_] = load_records(db, 1, ProbeResult, probe="confidence")
        save_records(db, 1, [replace(first, value=0.123)], probe="confidence")
    assert "and 1 say something else" in call("verify", NAME, "--storage", storage, exit_code=1)
    with open_database(storage) as db:  # no other version of the reader has read this audit
        save_records(db, 1, [replace(first, value=0.123, reader_version=0)], probe="confidence")
    assert "and 1 say something else" in call("verify", NAME, "--storage", storage, exit_code=1)
    # Results of another version of the reader are not compared.
    monkeypatch.setattr(type(installed_probes.load_probe("confidence").probe), "reader_version", 2)
    assert f"{N_CALLS} of other reader versions were not read" in call("verify", NAME, "--storage", storage)


def test_its_commands_are_loaded_when_they_are_typed(storage: str) -> None:
    assert "Germany\tdivorce\tok" in call("probe", "confidence", "answers", NAME, "--storage", storage)
    assert "auditor-probe-confidence" in call("probe", "--help")
    assert "probe confidence" in call("doctor", "--storage", storage)


def test_the_fingerprint_holds_the_version_of_the_reader(config: AuditConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(config)
    monkeypatch.setattr(type(installed_probes.load_probe("confidence").probe), "reader_version", 2)
    assert fingerprint(config) != before


def test_evidence_is_checked_where_the_package_is_missing(
    storage: str, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain is checked; what the probe read and measured is a named difference."""
    call("export", "evidence", NAME, "-o", str(tmp_path / "evidence.zip"), "--storage", storage)
    assert check_evidence(tmp_path / "evidence.zip").exit_code == 0
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(installed)])
    use_packages(monkeypatch, tmp_path / "empty")
    check = check_evidence(tmp_path / "evidence.zip")
    assert (check.exit_code, check.is_damaged) == (4, False)
    assert any("confidence" in reason for reason in check.reasons)
    assert any("confidence" in difference.figure for difference in check.differences)

    def better(report: Any) -> Any:
        report["alignment"][0]["mae"] = 0.001
        return report

    changed = check_evidence(edit(tmp_path / "evidence.zip", tmp_path / "changed.zip", REPORT, better))
    assert (changed.exit_code, changed.differences[0].figure) == (1, "alignment.0.mae")


def test_the_audit_opens_after_the_package_was_removed(
    storage: str, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(installed)])
    use_packages(monkeypatch, tmp_path / "empty")
    sentence = "he probe 'confidence' is not installed."
    options = (NAME, "--storage", storage)
    assert sentence in call("status", *options)
    assert f"{sentence} Not derived again, and not checked: 8 results of confidence." in call(
        "verify", *options, exit_code=4
    )
    assert f"{sentence} Its results stay as they are." in call("reread", *options)
    assert sentence in call("export", "tables", *options, "-o", str(tmp_path / "tables"))
    assert sentence in call("export", "evidence", *options, "-o", str(tmp_path / "evidence.zip"))
    assert sentence in call("verify", str(tmp_path / "evidence.zip"), exit_code=4)
    for audit in (options, (str(tmp_path / "evidence.zip"),)):  # it was not shown that all results hold
        assert json.loads(call("verify", *audit, "--json", exit_code=4))["holds"] is False
    assert sentence in call("compare", NAME, "simulated-later", "--storage", storage)
    checked = open_audit(NAME, storage=storage).check()
    assert {gate.message for gate in checked.gates if gate.name.startswith("confidence.")} == {
        "not available: the probe 'confidence' is not installed; at most 1 allowed",
        "not available: the probe 'confidence' is not installed; at least 0.99 required",
    }
    for kind, *more in (
        *(["inspect", "-o", "inspect"], ["ratings", "-o", "r.csv"], ["labels", "-o", "l.csv"]),
        *(["paper", "-o", "paper"], ["plots", "-o", "plots"]),
    ):
        paths = [str(tmp_path / part) if i else part for i, part in enumerate(more)]
        call("export", kind, *options, *paths)
    # The path of the configuration names the audit, although its table of the probe is now unknown.
    assert sentence in call("status", str(tmp_path / "audit.toml"), "--storage", storage)
    with pytest.raises(ConfigError, match=r"unknown key 'probes\.confidence'"):
        load_config(tmp_path / "audit.toml")
    assert sentence in render_report(open_audit(NAME, storage=storage).report(), "markdown")
    report = json.loads(call("report", *options, "--format", "json"))
    assert report["probes"] == {"confidence": {"unavailable": f"T{sentence}"}}
    assert "8 confidence answers" in call("delete", *options, "--yes")


COUNTING_MODULE = """
import typer
from pydantic import BaseModel
import auditor.probes as ap

class Figures(BaseModel):
    n: int

class Alone(ap.Probe):
    interface_version = 1
    settings = ap.ProbeSettings
    gates = {"min_n": "Answers."}

    def ask(self, audit, model, units):
        for unit in units:
            yield ap.Question(unit, (ap.Message("user", "?"),))

    def read(self, answer):
        return ap.Reading(answer.text)

    def simulate(self, call):
        return "yes"

    def measure(self, audit, results):
        return Figures(n=len(results))

    def gate_figures(self, figures):
        yield ap.GateFigure("min_n", "audit", figures.n)

    def compare(self, first, second):
        return ap.Section("alone", "Alone", [ap.Paragraph(f"From {first.n} to {second.n}.")])

def fail(audit: str, n: int = 1) -> None:
    "Fail, or end."
    if n == 2:
        raise typer.Exit(4)
    raise KeyError(audit)

Alone.commands = {"fail": fail}
"""


def test_a_probe_alone_is_compared_and_its_failures_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_package(tmp_path / "packages", "alone = alone:Alone", COUNTING_MODULE, module_name="alone")
    use_packages(monkeypatch, tmp_path / "packages")
    config_text = CONFIG.partition("[probes")[0] + "[probes.alone]\n[check.probes.alone]\nmin_n = 1\n"
    (tmp_path / "alone.toml").write_text(config_text)
    config, storage = load_config(tmp_path / "alone.toml"), f"sqlite:///{tmp_path / 'alone.db'}"
    for name in (NAME, "simulated-later"):
        run_audit(config.model_copy(update={"name": name}), storage=storage)
    comparison = ("compare", NAME, "simulated-later", "--storage", storage)
    assert "From 8 to 8." in (text := call(*comparison))
    assert "Scores are not compared" in text
    assert json.loads(call(*comparison, "--json"))["probes"][NAME] == {"alone": {"n": 8}}
    message = "the hook 'gate_figures' of the probe 'alone' returned a GateFigure whose 'estimate' is of the type int"
    with pytest.raises(ProbeError, match=message):
        open_audit(NAME, storage=storage).check()
    with pytest.raises(ProbeError, match="the command 'fail' of the probe 'alone' failed: KeyError: 'x'"):
        call("probe", "alone", "fail", "x")
    call("probe", "alone", "fail", "x", "--n", "2", exit_code=4)
    (tmp_path / "packages" / "alone.py").write_text(f"{COUNTING_MODULE}\nraise ValueError('broken')\n")
    use_packages(monkeypatch, tmp_path / "packages")
    reason = "The probe 'alone' of toy-probes cannot be used: ValueError at import: broken."
    assert reason in " ".join(call(*comparison).split())
    assert f"{reason} Not derived again, and not checked: 8 results" in call(
        "verify", NAME, "--storage", storage, exit_code=4
    )


def test_the_page_leads_from_nothing_to_a_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (EXAMPLE.parent.parent / "docs" / "probes.md").read_text(encoding="utf-8")
    for name, content in re.findall(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    outputs = {}
    for command in re.findall(r"^\$ (.+)$", text, re.MULTILINE):
        program, *arguments = command.split()
        if program == "pip":
            use_packages(monkeypatch, install(tmp_path / arguments[-1], tmp_path / "site"))
        else:
            outputs[arguments[0]] = call(*arguments)
    assert "auditor-probe-steady 1.0" in outputs["doctor"]
    assert "steady: 8 answers were read again, and 0 say" in outputs["verify"]
    report = (tmp_path / "steady.md").read_text(encoding="utf-8")
    assert "## Do the models keep their answers?" in report
    assert "| western | 0." in report
    results = open_audit("simulated-steady", storage=f"sqlite:///{tmp_path / 'auditor.db'}").probe_results("steady")
    assert [(result.sample, result.turn, result.outcome) for result in results] == [(0, 0, "ok"), (0, 1, "ok")] * 4


def test_answers_of_the_probe_are_excluded_and_come_back(config: AuditConfig, storage: str) -> None:
    def load() -> list[ProbeResult]:
        with open_database(storage) as db:
            return load_records(db, 1, ProbeResult)

    before, report = load(), open_audit(NAME, storage=storage).report()
    with pytest.raises(UsageError, match="no recorded answer matches"):
        exclude_answers(NAME, AnswerSelection(topic="divorce", probe="semantic"), "Wrong.", storage=storage)
    for selection, n_excluded in (
        (AnswerSelection(model="western"), 4),
        (AnswerSelection(country="Japan", probe="confidence"), 4),
        (AnswerSelection("western", "Japan", "divorce", sample=0), 1),  # the probe shows the model its own answers
        (AnswerSelection("western", "Japan", probe="direct"), 2),
    ):
        exclusion = exclude_answers(NAME, selection, "Wrong.", storage=storage)
        excluded = [result for result in load() if result.outcome is Outcome.EXCLUDED]
        assert [result.value for result in excluded] == [None] * n_excluded
        if n_excluded == 2:
            after = open_audit(NAME, storage=storage).report()
            [row] = [row for row in after.coverage.total if row.stage == "confidence"]
            assert (row.planned, row.ok, row.losses) == (N_CALLS, N_CALLS - n_excluded, {"excluded": n_excluded})
            run_audit(config, storage=storage)
            assert [result for result in load() if result.outcome is Outcome.EXCLUDED] == excluded
        undo_exclusion(NAME, exclusion.id, storage=storage)
        assert load() == before
    assert open_audit(NAME, storage=storage).report().probes == report.probes
