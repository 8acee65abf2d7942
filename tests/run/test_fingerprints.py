"""An audit's fingerprint covers every prompt that a run uses, and its environment the packages that affect results."""

from __future__ import annotations

import itertools
import json
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import auditor.probes
import auditor.prompts
from auditor.config import AuditConfig
from auditor.domain import LANGUAGES
from auditor.probes.logic import questions as logic_fingerprint
from auditor.probes.semantic import answers
from auditor.prompts import load_prompt
from auditor.run import fingerprints
from auditor.run.fingerprints import describe_config_change, keep_earlier_defaults
from auditor.storage.audits import Audit
from tests.support.audit_configs import config, with_schema_version
from tests.support.known import known

ROOT = Path(__file__).parents[2]
PROMPTS_OF_EXPERIMENTS = {
    *("review.contest", "review.contest.task", "semantic.choice", "semantic.follow.structured", "semantic.follow.text"),
    "semantic.equivalence",  # shown to people only
}
"""Experiments on a recorded audit ask with them; its results do not depend on them."""
FILES_NOT_COVERED = {
    *("blinding.toml", "design.toml", "faults.toml", "phrases_to_judges.toml", "planted_instructions.toml"),
    *("preflight.toml", "refusals.toml", "surveys.toml", "task_faults.toml", "wordings.toml"),
}
"""Files that a fingerprint does not cover, like code: what they add to questions is in the keys of the calls."""
FILES_IN_FINGERPRINTS = {"distribution.toml", "logic.criteria.toml", "logic.toml", "logprob.toml"}
PACKAGES_WITHOUT_EFFECT = {
    *("alembic", "filelock", "httpx"),
    *("mlflow-skinny", "opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk"),
    *("pandas", "platformdirs", "polars", "psycopg", "pyarrow", "pycountry", "pydantic", "pyreadstat", "pyyaml"),
    *("ray", "rich", "sqlmodel", "textual", "textual-serve", "typer", "vl-convert-python", "wandb", "inspect-ai"),
    *("azure-identity", "json5", "mkdocs-material", "openpyxl"),
    "pydoe",  # chooses the runs of a design, which are recorded
    *("datasets", "peft", "trl"),  # of the recipe that tunes a model on exported rows
}
PACKAGES_NOT_RECORDED = {"accelerate", "gguf", "nltk", "rouge-score", "sacrebleu", "transformers"}
"""Packages that compute figures of some audits, but whose version reports do not show."""


def make_configs(folder: Path) -> list[AuditConfig]:
    """Configs that together use every prompt of a run, in every language."""
    modes = ("structured", "text")
    of_task: dict[str, Any] = {"survey": None, "task": {"source": "t.csv", "answer": "exact"}}
    folder_probes: dict[str, Any] = {"direct": {}, "memory": {}, "pressure": {}, "reasoning": {}}
    consistency = {"judge": "model-a", "form": "paper"}
    any_subject = {"subject": "any", "rot": False, "contradiction": "model-a", "consistency": consistency}
    questions = folder / "questions.csv"
    rows = [f"q-{language},Is it right?,Japan,{language}" for language in LANGUAGES]
    questions.write_text("\n".join(["question_id,question,country,language", *rows]) + "\n", encoding="utf-8")
    changes: list[dict[str, Any]] = [
        of_task,
        of_task | {"probes": _direct("text")},
        of_task | {"probes": {"direct": {}, "review": {"guess": True}}},
        {"probes": {"logic": {"form": "paper"}}},
        {"probes": {"logic": {"form": "paper", "answer": "probability", "sample_answer": "cot"}}},
        {"probes": {"semantic": any_subject}},
        {"probes": {"semantic": {"questions": str(questions), "translator": "model-a"}}},
    ]
    for mode in modes:
        changes.append({"probes": {"direct": {"mode": mode, "form": "paper"}, "review": {"form": "paper"}}})
        changes.append({"probes": _direct(mode) | {"semantic": {"mode": mode}}})
    for language in LANGUAGES:
        changes.append({"language": language, "probes": {"distribution": {}}})
        changes.append({"language": language, "probes": folder_probes})
        for mode, logic in itertools.product(modes, ({}, {"cot": True}, {"answer": "probability"})):
            changes.append({"language": language, "probes": _direct(mode) | {"logprob": {}, "logic": logic}})
    return [config("http://localhost", embedding={"model": "words"}, **change) for change in changes]


def _direct(mode: str) -> dict[str, Any]:
    return {"direct": {"mode": mode, "repair": True}}


def test_every_prompt_of_a_run_is_in_a_fingerprint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loaded: set[tuple[str, str]] = set()

    def record_prompt(name: str, language: str = "en", package: str | None = None) -> object:
        loaded.add((language, name))
        return load_prompt(name, language, package)

    for module in (fingerprints, logic_fingerprint, answers, auditor.probes):
        monkeypatch.setattr(module, "load_prompt", record_prompt)
    for audit in make_configs(tmp_path):
        fingerprints.fingerprint(audit)
    folder = Path(auditor.prompts.__file__).parent
    stored = {(file.parent.name, file.stem) for file in folder.glob("*/*.md")}
    assert stored - {("en", name) for name in PROMPTS_OF_EXPERIMENTS} == loaded
    other_files = {file.name for file in folder.glob("*/*.toml")}
    assert other_files == FILES_NOT_COVERED | FILES_IN_FINGERPRINTS


def test_every_package_is_recorded_or_has_no_effect_on_results() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [lines for name, lines in project["optional-dependencies"].items() if name != "dev"]
    requirements = [Requirement(line) for lines in (project["dependencies"], *extras) for line in lines]
    declared = {requirement.name for requirement in requirements if requirement.name != "auditor"}
    recorded = set(fingerprints.RECORDED_PACKAGES)
    assert recorded <= declared
    assert declared == recorded | PACKAGES_WITHOUT_EFFECT | PACKAGES_NOT_RECORDED


def test_the_version_of_the_program_changes_no_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprints.fingerprint(config("http://localhost"))
    real_version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "9.9.9" if name == "auditor" else real_version(name))
    assert fingerprints.fingerprint(config("http://localhost")) == before


def stored_audit(stored_config: dict[str, Any]) -> Audit:
    return Audit(1, "scripted", json.dumps(stored_config), "hash", "{}", "done", "", "", None, "{}")


def test_a_config_that_this_version_cannot_read_is_compared_key_by_key() -> None:
    audit = config("http://127.0.0.1:1")
    stored_config = audit.model_dump(mode="json") | {"gone": 1, "seed": 8}
    notice = known(describe_config_change(stored_audit(stored_config), audit, "another"))
    assert "changed since its last run: gone, seed. " in notice


def test_a_change_that_no_key_shows_may_be_in_a_file() -> None:
    audit = config("http://127.0.0.1:1")
    notice = known(describe_config_change(stored_audit(audit.model_dump(mode="json")), audit, "another"))
    assert notice.startswith("Audit 'scripted' reads a file that has changed, or was last run by another version ")


BOTH_METHODS: dict[str, Any] = {"probes": {"direct": {"samples": 1}, "logprob": {}}}


def test_an_audit_begun_when_method_conflicts_were_reviewed_by_default_resumes_unchanged() -> None:
    started = config("http://127.0.0.1:1", **BOTH_METHODS, conflicts={"methods": True})
    now = config("http://127.0.0.1:1", **BOTH_METHODS)
    audit = stored_audit(started.model_dump(mode="json"))
    resumed = keep_earlier_defaults(audit, now)
    assert not now.conflicts.methods
    assert resumed.conflicts.methods
    assert resumed.hash == started.hash
    assert describe_config_change(audit, resumed, "hash") is None


def test_an_audit_begun_with_the_first_schema_keeps_it_unless_the_file_names_another() -> None:
    now = config("http://127.0.0.1:1", probes={"direct": {"samples": 3}})
    started = with_schema_version(now, 1)
    stored = started.model_dump(mode="json")
    del stored["probes"]["direct"]["schema_version"]  # as earlier versions stored it
    audit = stored_audit(stored)
    resumed = keep_earlier_defaults(audit, now)
    assert resumed.hash == started.hash != now.hash
    assert describe_config_change(audit, resumed, "hash") is None
    assert keep_earlier_defaults(None, now) == now
    assert keep_earlier_defaults(stored_audit(now.model_dump(mode="json")), now).hash == now.hash
    explicit = config("http://127.0.0.1:1", probes={"direct": {"samples": 3, "schema_version": 2}})
    resumed_explicit = keep_earlier_defaults(audit, explicit)
    assert resumed_explicit == explicit.model_copy(update={"conflicts": resumed_explicit.conflicts})
    notice = known(describe_config_change(audit, explicit, "another"))
    assert "changed since its last run: probes.direct.schema_version. " in notice


def test_a_new_audit_and_one_that_sets_the_key_get_what_they_say() -> None:
    now = config("http://127.0.0.1:1", **BOTH_METHODS)
    assert not keep_earlier_defaults(None, now).conflicts.methods
    explicit = config("http://127.0.0.1:1", **BOTH_METHODS, conflicts={"methods": False})
    earlier = stored_audit(config("http://127.0.0.1:1", conflicts={"methods": True}).model_dump(mode="json"))
    assert not keep_earlier_defaults(earlier, explicit).conflicts.methods
    assert explicit.hash == now.hash


def test_the_key_counts_only_where_scores_are_by_two_methods() -> None:
    direct_only = {"probes": {"direct": {"samples": 1}}}
    for probes, n_hashes in ((direct_only, 1), (BOTH_METHODS, 2)):
        audits = [config("http://127.0.0.1:1", **probes, conflicts={"methods": value}) for value in (True, False)]
        assert len({audit.hash for audit in audits}) == n_hashes
