"""`auditor` alone shows what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.cli import next_steps
from auditor.cli.next_steps import print_next_steps
from auditor.storage.audits import FINAL_STAGES, Audit
from auditor.storage.overview import AuditOverview
from auditor.storage.probe_results import AnswerCount
from tests.cli.test_app import SMALL, write_config
from tests.console.test_options import import_audits
from tests.support.cli_runner import auditor, succeed
from tests.support.fake_server import FakeServer


def test_an_empty_folder_leads_to_a_configuration(tmp_path: Path) -> None:
    command = auditor(cwd=tmp_path)
    assert (command.returncode, command.stdout) == (0, "")
    assert "auditor init  write a configuration" in command.stderr
    assert "auditor --help" in command.stderr


def test_the_demo_is_suggested_only_if_the_program_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    print_next_steps({"demo", "init"})
    assert "auditor demo" in capsys.readouterr().err
    print_next_steps({"init"})
    assert "auditor demo" not in capsys.readouterr().err


def test_a_configuration_leads_to_estimate_and_run(tmp_path: Path) -> None:
    succeed("init", "mine.yaml", cwd=tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    suggestions = auditor(cwd=tmp_path).stderr
    assert suggestions.index("auditor estimate mine.yaml") < suggestions.index("auditor run mine.yaml")
    assert "pyproject.toml" not in suggestions


def test_an_audit_leads_to_its_conflicts_and_then_to_its_report(server: FakeServer, tmp_path: Path) -> None:
    succeed("run", write_config(server, tmp_path, **SMALL), cwd=tmp_path)
    suggestions = auditor(cwd=tmp_path).stderr
    assert suggestions.index("auditor review scripted") < suggestions.index("auditor report scripted")
    import_audits(tmp_path, "published")
    suggestions = auditor(cwd=tmp_path).stderr
    assert "auditor review" not in suggestions
    assert "auditor report published" in suggestions
    assert "list all 2 audits" in suggestions


def test_a_configuration_that_was_never_run_comes_first(tmp_path: Path) -> None:
    import_audits(tmp_path, "published")
    succeed("init", "mine.toml", cwd=tmp_path)
    suggestions = auditor(cwd=tmp_path).stderr
    assert suggestions.index("auditor run mine.toml") < suggestions.index("auditor report published")
    configuration = (tmp_path / "mine.toml").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(configuration.replace("my-audit", "published"), encoding="utf-8")
    assert "mine.toml" not in auditor(cwd=tmp_path).stderr


def test_simulated_audits_come_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def overview(name: str, updated_at: str, *, is_simulated: bool) -> AuditOverview:
        audit = Audit(1, name, None, None, "{}", FINAL_STAGES[0], updated_at, updated_at, updated_at, "{}")
        return AuditOverview(audit, "", None, is_simulated, 1, 1, AnswerCount(1, 1), AnswerCount(0, 0), {}, None, 0, {})

    monkeypatch.chdir(tmp_path)
    overviews = [overview("mine", "2026-01-01", is_simulated=False), overview("demo", "2026-01-02", is_simulated=True)]
    monkeypatch.setattr(next_steps, "_load_overviews", lambda: overviews)
    print_next_steps({"demo"})
    suggestions = capsys.readouterr().err
    assert suggestions.index("auditor report mine") < suggestions.index("auditor report demo")
    assert "auditor init" not in suggestions
    monkeypatch.setattr(next_steps, "_load_overviews", lambda: overviews[1:])
    print_next_steps({"demo"})
    assert "auditor init" in capsys.readouterr().err


def test_at_most_a_few_configurations_are_suggested(tmp_path: Path) -> None:
    for number in range(5):
        succeed("init", f"{number}.toml", cwd=tmp_path)
    assert auditor(cwd=tmp_path).stderr.count("auditor run") == next_steps.MAX_SUGGESTED_CONFIGS
