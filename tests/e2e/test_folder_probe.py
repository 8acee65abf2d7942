"""A folder below `auditor/probes` with a class below `Probe` is used as an installed package is, without any list."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import auditor.probes
from auditor.config import AuditConfig, installed_probes, load_config
from auditor.cost_estimation.planned_calls import plan_calls
from auditor.prompts import loader
from auditor.reports.data.report_schema import render_json_schema
from auditor.run import load_planned_survey, open_audit
from auditor.run.fingerprints import fingerprint
from tests.e2e.test_probe_plugin import CONFIG, EXAMPLE, N_CALLS, NAME, call

jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditConfig]:
    """The configuration of an audit that uses the example's code, which lies in the folders of the program."""
    folder = tmp_path / "probes" / "confidence"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    example = EXAMPLE / "auditor_probe_confidence"
    module = (example / "__init__.py").read_text(encoding="utf-8").replace(", package=__name__", "")
    figures_class = "    def report_class(self):\n        return ConfidenceFigures\n"
    module = module.replace("    def plan(", f"{figures_class}\n    def plan(", 1)
    module = module.replace("auditor_probe_confidence:", "auditor.probes.confidence.probe:")
    (folder / "probe.py").write_text(f"{module}\nPROBE = ConfidenceProbe\n", encoding="utf-8")
    for language in ("en", "de"):
        shutil.copytree(str(resources.files("auditor.prompts") / language), tmp_path / "prompts" / language)
        shutil.copy(example / "prompts" / "en" / "confidence.md", tmp_path / "prompts" / language)
    monkeypatch.setattr(loader, "FOLDER", tmp_path / "prompts")
    monkeypatch.setattr(auditor.probes, "__path__", [*auditor.probes.__path__, str(folder.parent)])
    monkeypatch.setattr(installed_probes, "FOLDERS", [*installed_probes.FOLDERS, folder.parent])
    monkeypatch.setattr(installed_probes, "_LOADED", dict(installed_probes._LOADED))
    installed_probes.list_probe_sources.cache_clear()
    (tmp_path / "audit.toml").write_text(CONFIG)
    yield load_config(tmp_path / "audit.toml")
    for name in [name for name in sys.modules if name.startswith("auditor.probes.confidence")]:
        del sys.modules[name]
    installed_probes.list_probe_sources.cache_clear()
    loader.load_prompt.cache_clear()


def test_the_program_uses_the_probe(config: AuditConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'audits.db'}"
    survey = load_planned_survey(config)
    planned = list(plan_calls(config, survey, list(survey.asked_cells), lambda call: False))
    assert sum(calls.calls.expected for calls in planned if calls.purpose == "probe.confidence") == N_CALLS
    names = (str(tmp_path / "audit.toml"), "--storage", url)
    assert "confidence" in call("estimate", *names)
    call("run", *names)
    results = open_audit(NAME, storage=url).probe_results("confidence")
    assert len(results) == N_CALLS
    probe = installed_probes.load_probe("confidence").probe
    with monkeypatch.context() as patched:  # a second run sends nothing
        patched.setattr(type(probe), "simulate", lambda self, call: pytest.fail("a request was sent"))
        call("run", *names)
    assert open_audit(NAME, storage=url).probe_results("confidence") == results

    report: dict[str, Any] = json.loads(call("report", NAME, "--storage", url, "--format", "json"))
    assert report["probes"]["confidence"]["models"][0]["answers"] == N_CALLS / 2
    schema = json.loads(render_json_schema())
    assert "ConfidenceFigures" in schema["$defs"]
    jsonschema.validate(report, schema)
    page = call("report", NAME, "--storage", url, "--format", "markdown")
    assert page.index("is the most overconfident model") < page.index("How sure are the models?")
    assert {gate.name for gate in open_audit(NAME, storage=url).check().gates} >= {"confidence.max_overconfidence"}
    doctor = call("doctor", "--storage", url)
    assert all(f"probe {name}" in doctor for name in ("confidence", "distribution", "logic", "semantic"))
    assert "Germany\tdivorce\tok" in call("probe", "confidence", "answers", NAME, "--storage", url)


def test_its_templates_are_those_of_the_program_in_each_language(config: AuditConfig, tmp_path: Path) -> None:
    before = fingerprint(config)
    assert loader.load_prompt("confidence", "de").language == "de"
    template = tmp_path / "prompts" / "en" / "confidence.md"
    template.write_text(template.read_text(encoding="utf-8") + "More.\n", encoding="utf-8")
    loader.load_prompt.cache_clear()
    assert fingerprint(config) != before
