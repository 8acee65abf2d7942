"""Tests of the strict YAML reader: no implicit booleans, aliases, unsafe tags or repeated keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.config import load_config
from auditor.errors import ConfigError
from tests.config.test_audit import write


def test_yaml_keeps_country_codes_and_refuses_what_is_ambiguous(tmp_path: Path) -> None:
    text = """
name: a
survey: {source: wvs7-sample, countries: [NO, NA, ON, YES, 1.10]}
judges: []
models:
  - {name: m, model: openai/gpt-4o, concurrency: 3}
"""
    with pytest.raises(ConfigError, match="countries"):  # 1.10 is a number, not a country
        load_config(write(tmp_path, text, "a.yaml"))
    config = load_config(write(tmp_path, text.replace(", 1.10", ""), "b.yaml"))
    assert config.survey is not None
    assert config.survey.countries == ["NO", "NA", "ON", "YES"]
    assert config.models[0].concurrency == 3


def test_a_yaml_value_may_be_marked_as_text(tmp_path: Path) -> None:
    text = (
        "name: !!str 1.10\nsurvey: &s {source: wvs7-sample, countries: [Japan]}\n"
        "judges: []\nmodels: [{name: m, model: openai/o}]\n"
    )
    config = load_config(write(tmp_path, text, "a.yaml"))
    assert config.name == "1.10"
    for wrong in ("!!str [a]", "!!map a", "!!bool maybe"):
        with pytest.raises(ConfigError, match=r"line 1: not YAML"):
            load_config(write(tmp_path, text.replace("!!str 1.10", wrong), "b.yaml"))


def test_an_empty_value_is_refused_and_keys_are_texts(tmp_path: Path) -> None:
    """An audit whose `direct:` is followed by nothing would ask nothing, and `budget_usd:` would be no budget."""
    text = "name: a\nsurvey: {source: wvs7-sample}\nmodels: [{name: m, model: openai/o}]\njudges: []\n"
    for table, key in (("probes:\n  direct:\n", "direct"), ("limits: {budget_usd: }\n", "budget_usd")):
        with pytest.raises(ConfigError, match=f"the key '{key}' is empty"):
            load_config(write(tmp_path, text + table, "a.yaml"))
    config = load_config(write(tmp_path, text.replace("openai/o", "openai/o, api_base: ~"), "a.yaml"))
    assert config.models[0].api_base is None, "null is what it says"
    with pytest.raises(ConfigError, match="unknown key '1'"):
        load_config(write(tmp_path, text + "1: x\n", "a.yaml"))
    with pytest.raises(ConfigError, match="expected a single document in the stream, but found another document"):
        load_config(write(tmp_path, text + "---\nname: b\n", "a.yaml"))
