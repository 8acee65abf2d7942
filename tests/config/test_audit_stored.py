"""Configurations of stored audits, and that they are read in one place."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.config import load_stored_config
from auditor.errors import ConfigError
from tests.support.audit_configs import config, with_schema_version

ROOT = Path(__file__).parents[2]
PARSERS = ("loads", "model_validate", "model_validate_json", "validate_json")
READERS = {"auditor/config/loader.py", "auditor/config/audit.py", "auditor/run/fingerprints.py"}
"""The files of configurations, the stored ones, and the comparison of a stored configuration with a new one."""
OTHER_CONFIGS = {"auditor/cli/init.py", "auditor/replications/planning.py", "auditor/run/ray_worker.py"}
"""The file that `auditor init` writes, new audits of a replication, and the messages to a Ray worker."""


def test_a_stored_configuration_is_read_as_it_was() -> None:
    audit = config("http://127.0.0.1:1")
    assert load_stored_config(audit.model_dump_json()) == audit
    assert load_stored_config(None) is None


def test_what_a_file_may_no_longer_say_is_read_in_a_stored_configuration() -> None:
    rephrase = {"question": "How do people in {country} see {topic} {{really}}?"}
    audit = config("http://127.0.0.1:1", survey={"source": "wvs7-sample", "rephrase": rephrase})
    named = audit.models[0].model_copy(update={"name": f"{audit.models[1].name}\u200b"})
    stored = audit.model_copy(update={"models": [named, *audit.models[1:]]})
    assert load_stored_config(stored.model_dump_json()) == stored


def test_an_audit_stored_before_schemas_had_versions_has_the_first() -> None:
    audit = config("http://127.0.0.1:1")
    stored = audit.model_dump(mode="json")
    del stored["probes"]["direct"]["schema_version"]
    assert load_stored_config(json.dumps(stored)) == with_schema_version(audit, 1)


def test_keys_of_auditor_0_2_that_have_no_effect_are_left_out_of_a_stored_configuration() -> None:
    audit = config("http://127.0.0.1:1", probes={"direct": {}, "review": {"max_words": 20}})
    stored = audit.model_dump(mode="json")
    stored["run"]["processes"] = 3
    stored["probes"]["review"]["schema_version"] = 2
    assert load_stored_config(json.dumps(stored)) == audit
    assert audit.hash == "e6e76cb7281a0b376e095b51c6603741b72caba84c89d24d701a5ffe40e81c36"


@pytest.mark.parametrize(
    ("changes", "expected_keys"),
    [({"limits": {"ceiling": 3}}, ": limits.ceiling."), ({"survey": 7, "seed": "x"}, ": survey, seed."),
     ({f"k{i}": 1 for i in range(7)}, ": k0, k1, k2, k3, k4 and 2 more.")],
)  # fmt: skip
def test_an_unreadable_configuration_is_explained(changes: dict[str, Any], expected_keys: str) -> None:
    stored = config("http://127.0.0.1:1").model_dump(mode="json") | changes
    with pytest.raises(ConfigError) as raised:
        load_stored_config(json.dumps(stored))
    expected = f"the stored configuration of audit 'scripted' cannot be read by this version of auditor{expected_keys}"
    assert raised.value.message == expected
    assert raised.value.how_to_fix.startswith("Use the version that ran the audit")


@pytest.mark.parametrize("text", ["", "{", "7", "[]", '{"name": 3}'])
def test_a_text_that_is_no_configuration_is_explained(text: str) -> None:
    with pytest.raises(ConfigError, match="the stored configuration of an audit cannot be read"):
        load_stored_config(text)


def test_no_other_module_parses_a_stored_configuration() -> None:
    folders = (ROOT / name for name in ("agents", "auditor", "prompts", "storage", "tui"))
    modules = {path.resolve().relative_to(ROOT) for folder in folders for path in folder.rglob("*.py")}
    parsing = {
        f"{module.as_posix()}: {call}"
        for module in modules
        if module.as_posix() not in READERS | OTHER_CONFIGS
        for call in parsed_configs((ROOT / module).read_text(encoding="utf-8"))
    }
    assert len(modules) > 400
    assert not parsing, f"{sorted(parsing)}. How to fix: Call auditor.config.load_stored_config."


def test_a_module_that_parses_a_stored_configuration_is_found() -> None:
    calls = ["json.loads(audit.config)", "AuditConfig.model_validate_json(text)", "loads(stored_config)"]
    assert [list(parsed_configs(call)) for call in calls] == [[call] for call in calls]
    assert not list(parsed_configs("json.loads(audit.survey); load_stored_config(audit.config)"))


def parsed_configs(source: str) -> Iterator[str]:
    """Yield the calls of a module that parse a configuration."""
    if not any(f"{parser}(" in source for parser in PARSERS):  # parsing all modules takes seconds
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in PARSERS:
            call = ast.unparse(node)
            if "config" in call.lower():
                yield call
