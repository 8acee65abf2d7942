"""Settings that are changed on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor.config import load_config
from auditor.config.loader import apply_overrides, parse_override
from auditor.errors import ConfigError
from tests.config.test_audit import GOOD, write

SETTINGS: dict[str, Any] = {
    "judges": "peers",
    "limits": {"budget_usd": 1.0},
    "models": [{"name": "gpt-4.1", "model": "openai/a"}, {"name": "b", "model": "openai/b"}],
}


@pytest.mark.parametrize(
    ("text", "keys", "value"),
    [
        ("seed=3", ("seed",), 3),
        ("limits.budget_usd = 2.5", ("limits", "budget_usd"), 2.5),
        ("probes.direct.mode=text", ("probes", "direct", "mode"), "text"),
        ("models.b.model=openai/gpt-4o", ("models", "b", "model"), "openai/gpt-4o"),
        ("models.'gpt-4.1'.temperature=0", ("models", "gpt-4.1", "temperature"), 0),
        ('survey.countries=["Germany", "Japan"]', ("survey", "countries"), ["Germany", "Japan"]),
        ("probes.logprob={}", ("probes", "logprob"), {}),
        ("panel.adaptive=true", ("panel", "adaptive"), True),
    ],
)
def test_keys_and_values_are_read_as_toml(text: str, keys: tuple[str, ...], value: object) -> None:
    override = parse_override(text)
    assert (override.keys, override.value) == (keys, value)
    assert type(override.value) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed", "--set: 'seed' has no value. Write it as --set limits.budget_usd=5"),
        ("=5", "--set: '' is not a key. Write it as"),
        ("a b=5", "--set: 'a b' is not a key."),
        ("seed=", "--set seed: the value is not valid TOML. Put strings in quotes."),
        ("seed=[1", "--set seed: the value is not valid TOML."),
        ("seed=1\nname=2", "--set seed: the value is not valid TOML."),
    ],
)
def test_a_wrong_override_is_explained(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_override(text)
    assert message in str(caught.value)


def test_tables_are_added_and_list_items_are_found_by_name() -> None:
    texts = ["limits.max_cells=4", "probes.direct.samples=2", "models.'gpt-4.1'.temperature=0.5", "judges=[]"]
    changed = apply_overrides(SETTINGS, map(parse_override, texts))
    assert changed["limits"] == {"budget_usd": 1.0, "max_cells": 4}
    assert changed["probes"] == {"direct": {"samples": 2}}
    assert changed["models"][0] == {"name": "gpt-4.1", "model": "openai/a", "temperature": 0.5}
    assert changed["judges"] == []
    assert SETTINGS["limits"] == {"budget_usd": 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "models.bb.temperature=1",
            "--set models.bb.temperature: the list 'models' has no entry with the name 'bb'. Did you mean 'b'?",
        ),
        ("models.zzzz=1", "the list 'models' has no entry with the name 'zzzz'. Names in it: gpt-4.1, b."),
        ("judges.b.temperature=1", "'judges' is a single value, so nothing can be set inside it. With judges ="),
        (
            "limits.budget_usd.x=1",
            "'limits.budget_usd' is a single value, so nothing can be set inside it. Set the whole value",
        ),
    ],
)
def test_a_key_that_leads_nowhere_is_explained(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        apply_overrides(SETTINGS, [parse_override(text)])
    assert message in str(caught.value)


def test_a_config_is_loaded_with_changes_and_errors_name_the_option(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    assert load_config(path, ["seed=9", "limits.max_cells=3"]).limits.max_cells == 3
    assert load_config(path, ["seed=9"]).seed == 9
    with pytest.raises(ConfigError, match=r"with --set limits.max_cell: unknown key 'limits.max_cell'"):
        load_config(path, ["limits.max_cell=3"])


def test_no_message_shows_a_key_that_was_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, GOOD), ["models=[{name='a', model='openai/a', api_key='sk-hunter2'}]"])
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, GOOD), ["storage='sk-hunter2"])
    assert "hunter2" not in str(caught.value)
