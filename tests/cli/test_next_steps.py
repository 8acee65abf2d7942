"""`auditor` alone shows what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.cli import next_steps
from auditor.cli.next_steps import print_next_steps
from tests.cli.test_app import write_config
from tests.cli.test_options import import_audits
from tests.support.cli_runner import auditor
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
    assert auditor("init", "mine.yaml", cwd=tmp_path).returncode == 0
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    suggestions = auditor(cwd=tmp_path).stderr
    assert suggestions.index("auditor estimate mine.yaml") < suggestions.index("auditor run mine.yaml")
    assert "pyproject.toml" not in suggestions


def test_an_audit_leads_to_its_conflicts_and_then_to_its_report(server: FakeServer, tmp_path: Path) -> None:
    assert auditor("run", write_config(server, tmp_path), cwd=tmp_path).returncode == 0
    suggestions = auditor(cwd=tmp_path).stderr
    assert suggestions.index("auditor review scripted") < suggestions.index("auditor report scripted")
    import_audits(tmp_path, "published")
    suggestions = auditor(cwd=tmp_path).stderr
    assert "auditor review" not in suggestions
    assert "auditor report published" in suggestions
    assert "list all 2 audits" in suggestions


def test_at_most_a_few_configurations_are_suggested(tmp_path: Path) -> None:
    for number in range(5):
        assert auditor("init", f"{number}.toml", cwd=tmp_path).returncode == 0
    assert auditor(cwd=tmp_path).stderr.count("auditor run") == next_steps.MAX_SUGGESTED_CONFIGS
