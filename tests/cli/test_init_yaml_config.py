"""A configuration as YAML says the same as in TOML, and keeps its comments."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from auditor.cli.init import build_provider_config, convert_to_yaml, read_starter
from auditor.config import load_config
from auditor.config.providers import PROVIDER_BY_NAME, Provider
from auditor.config.strict_yaml import parse_yaml
from tests.support.cli_runner import auditor

BASE = "https://my-resource.example.com/v1"


def test_the_starter_says_the_same_in_yaml() -> None:
    converted = convert_to_yaml(read_starter())
    assert parse_yaml(converted, "audit.yaml") == tomllib.loads(read_starter())
    remarks = [line for line in read_starter().splitlines() if line.startswith("# ") and line.count(" = ") == 0]
    assert all(remark in converted for remark in remarks if not remark.startswith("# ["))
    assert "\n[" not in converted


def test_settings_in_comments_are_converted_too() -> None:
    text = '# [[models]]\n# name = "gpt"\n# model = "openai/gpt-4o"\n\n# [[models]]\n# name = "x"\n'
    assert convert_to_yaml(text) == ('# models:\n#   - name: "gpt"\n#     model: "openai/gpt-4o"\n\n#   - name: "x"\n')


@pytest.mark.parametrize("provider", PROVIDER_BY_NAME.values(), ids=lambda provider: provider.name)
def test_the_config_of_every_provider_says_the_same_in_yaml(provider: Provider) -> None:
    text = build_provider_config(["a", "b"], ["c"], provider, provider, BASE if provider.needs_address else None)
    assert parse_yaml(convert_to_yaml(text), "audit.yaml") == tomllib.loads(text)


def test_texts_with_signs_of_comments_and_country_codes_stay_texts() -> None:
    text = 'name = "a # b"   # the name\ncountries = ["NO", "a: b"]\nempty = {}\n[[models]]\nname = "x"\n# a remark\n'
    assert convert_to_yaml(text) == (
        'name: "a # b"   # the name\ncountries: ["NO", "a: b"]\nempty: {}\nmodels:\n  - name: "x"\n  # a remark\n'
    )


def test_init_chooses_the_format_by_the_suffix(tmp_path: Path) -> None:
    assert auditor("init", "my.yaml", cwd=tmp_path).returncode == 0
    assert auditor("init", "my.toml", cwd=tmp_path).returncode == 0
    assert load_config(tmp_path / "my.yaml") == load_config(tmp_path / "my.toml")
    refused = auditor("init", "my.json", cwd=tmp_path)
    assert (refused.returncode, "Name it .toml, .yaml or .yml." in refused.stderr) == (2, True)
