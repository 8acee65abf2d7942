"""Tests of `AuditConfig`: defaults, error messages, judges, weights and the config hash."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.config import AuditConfig, LabelSection, load_config
from auditor.errors import ConfigError
from tests.support.audit_configs import config

GOOD = """
name = "a"
survey = { source = "wvs7-sample" }
[[models]]
name = "m"
model = "openai/gpt-4o"
[[models]]
name = "n"
model = "openai/gpt-4o-mini"
"""


def write(folder: Path, text: str, name: str = "a.toml") -> Path:
    """Write a config file and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_are_those_of_the_design(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, GOOD))
    assert config.judges == "peers"
    assert config.conflicts.threshold == 0.38
    assert (config.direct.samples, config.direct.temperature) == (5, 0.7)
    assert (config.limits.max_attempts, config.limits.resolved_deadline_s(60)) == (6, 120)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "[limits]\nbuget_usd = 3",
         r"unknown key 'limits\.buget_usd'\. How to fix: Did you mean 'budget_usd'\?"),
        (GOOD + "sed = 3", r"unknown key 'models\[2 'n'\]\.sed'"),
        ("sed = 3\n" + GOOD, r"unknown key 'sed'\. How to fix: Did you mean 'seed'\?"),
        (GOOD + "timeout = 3", r"models\[2 'n'\]\.timeout'\. How to fix: Did you mean 'timeout_s'\?"),
        (GOOD.replace('name = "a"', ""), r"the key 'name' is missing"),
        (GOOD + 'api_key = "sk-123"', r"'models\[2 'n'\]\.api_key' must name an environment variable"),
        (GOOD.replace('name = "n"', 'name = "m"'), r"the name 'm' is used twice"),
        (GOOD.replace('"m"', '"é"').replace('"n"', '"e\u0301"'), r"the names 'é' and 'e\u0301' look the same"),
        (GOOD.replace('name = "m"', 'name = "m\\nx"'), r"of a model has a space at its beginning or end"),
        (GOOD.replace('name = "m"', 'name = "m "'), r"of a model has a space at its beginning or end"),
        (GOOD.split('[[models]]\nname = "n"')[0], r"model 'm' has no judge: a model never judges itself"),
        (GOOD + "temperature = 3", r"must be a number from 0 to 2, not 3"),
        ("name = \n[", r"not valid TOML: .*line 1"),
        (GOOD.replace("gpt-4o-mini", "gpt 4o"), r"'models\[2 'n'\]\.model'"),
        (GOOD.replace("sample\" }", "sample\", rephrase.scale = ['often', 'Often'] }"),
         r"'survey\.rephrase\.scale\.en': both ends of the scale are 'often'"),
        (GOOD + 'attributes = { released = "2025-13-45" }', r"'n': '2025-13-45' is not a date of the calendar"),
        ("judges = [{ name = 'j' }]\n" + GOOD, r"the key 'judges\[1 'j'\]\.model' is missing"),
    ],
)  # fmt: skip
def test_each_config_error_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(write(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert "sk-123" not in str(caught.value)


@pytest.mark.parametrize("released", ['"2025"', '"2025-12"', "2024-02-29"])
def test_a_release_is_a_year_a_month_or_a_day(tmp_path: Path, released: str) -> None:
    config = load_config(write(tmp_path, f"{GOOD}attributes = {{ released = {released} }}\n"))
    assert config.models[1].attributes == {"released": released.strip('"')}


def test_a_model_never_judges_itself(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, GOOD))
    assert [j.name for j in config.judges_of("m")] == ["n"]
    listed = "judges = [{ name = 'other-name', model = 'openai/gpt-4o' }]\n" + GOOD
    with pytest.raises(ConfigError, match="'other-name' is the audited model 'm' under another name"):
        load_config(write(tmp_path, listed))
    with pytest.raises(ConfigError, match="model 'm' has no judge"):
        load_config(write(tmp_path, listed.replace("other-name", "m")))


def test_a_judge_that_shares_a_name_is_the_same_model(tmp_path: Path) -> None:
    text = "judges = [{ name = 'm', model = 'openai/o3' }]\n" + GOOD
    with pytest.raises(ConfigError, match="also an audited model with other settings"):
        load_config(write(tmp_path, text))


def test_the_hash_ignores_storage_raters_and_retry_waits(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, GOOD))
    assert config.hash == config.model_copy(update={"storage": "sqlite:///elsewhere.db"}).hash
    assert config.hash == config.model_copy(update={"labels": LabelSection(rater_kind="expert")}).hash
    assert config.hash != config.model_copy(update={"seed": 1}).hash
    patient = config.limits.model_copy(update={"max_retry_wait_s": 600.0})
    assert config.hash == config.model_copy(update={"limits": patient}).hash
    scoped = [model.model_copy(update={"rate_limit_scope": "account"}) for model in config.models]
    assert config.hash == config.model_copy(update={"models": scoped}).hash


def test_every_field_is_documented() -> None:
    schema = AuditConfig.model_json_schema()
    undocumented = [
        f"{name}.{field}"
        for name, part in {"audit": schema, **schema["$defs"]}.items()
        for field, facts in part.get("properties", {}).items()
        if "description" not in facts and "$ref" not in facts and "allOf" not in facts
    ]
    allowed = {"audit.models", "Price.input", "Price.output", "LimitsSection.x"}
    obvious = {"samples", "temperature", "max_tokens", "direct", "review", "budget_usd"}
    assert [u for u in undocumented if u not in allowed and u.split(".")[1] not in obvious] == []


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        ('vote = "weighted"', r"panel: vote = \"weighted\" needs weights"),
        ('vote = "weighted"\nweights = { m = 1, nn = 1 }', r"there is no judge 'nn'\. How to fix: Did you mean 'n'\?"),
        ("weights = { zzzz = 1 }", r"there is no judge 'zzzz'\. How to fix: Judges: m, n\."),
        ('vote = "weighted"\nweights = { m = 1 }', r"the judge 'n' has no weight"),
        ('vote = "weighted"\nweights = { m = 0, n = 0 }', r"all weights are 0"),
        ("weights = { m = -0.5 }", r"'panel\.weights\.m' must be a number of at least 0, not -0.5"),
        ("weights = { m = inf }", r"'panel\.weights\.m' must be a finite number of at least 0, not inf"),
        ('vote = "wieghted"', r"'panel\.vote'"),
        ("wieghts = { m = 1 }", r"unknown key 'panel\.wieghts'\. How to fix: Did you mean 'weights'\?"),
    ],
)
def test_weights_that_cannot_be_used_are_named(tmp_path: Path, panel: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(write(tmp_path, f"{GOOD}\n[panel]\n{panel}\n"))


def test_weights_change_the_config_hash(tmp_path: Path) -> None:
    panels = ["", "[panel]\nweights = { m = 1, n = 2 }", '[panel]\nvote = "weighted"\nweights = { m = 1, n = 2 }']
    configs = [load_config(write(tmp_path, f"{GOOD}\n{panel}")) for panel in panels]
    assert len({config.hash for config in configs}) == 3
    assert configs[2].panel.weights == {"m": 1.0, "n": 2.0}


@pytest.mark.parametrize(
    ("url", "is_refused"),
    [
        ("postgresql+psycopg://ada:pg-canary@db.example.org/audits", True),
        ("postgresql+psycopg://ada@db.example.org/audits?password=pg-canary", True),
        ("postgresql+psycopg://db.example.org/audits?user=a&sslpassword=pg-canary", True),
        ("postgresql+psycopg://ada@db.example.org:5432/audits?sslmode=verify-full", False),
        ("sqlite:////home/ada@work/a:b.db", False),
    ],
)
def test_a_config_holds_no_password_of_a_server(tmp_path: Path, url: str, is_refused: bool) -> None:
    file = write(tmp_path, f'storage = "{url}"\n{GOOD}')
    if not is_refused:
        assert load_config(file).storage == url
        return
    with pytest.raises(ConfigError, match="PGPASSWORD") as refused:
        load_config(file)
    assert "canary" not in str(refused.value)


def test_a_key_of_this_version_left_at_its_default_keeps_the_hash_of_earlier_audits() -> None:
    direct = {"samples": 3, "schema_version": 1}

    def with_limit(**review: int) -> AuditConfig:
        return config("http://localhost", probes={"direct": direct, "review": review})

    earlier = "dcfd162c666de7f290d6a9af591214b1dc44dc270a9e0cd3917d2996582ef398"
    assert with_limit().hash == with_limit(max_trace_chars=20_000).hash == earlier
    assert with_limit(max_trace_chars=30_000).hash != earlier
    limited = config("http://localhost", probes={"direct": direct}, limits={"max_cells": 5})
    assert limited.hash != earlier


def test_the_version_of_the_direct_schema_counts_only_where_it_has_an_effect() -> None:
    def count_hashes(**direct: object) -> int:
        versions = [{"direct": {"samples": 3, **direct, "schema_version": version}} for version in (1, 2)]
        return len({config("http://localhost", probes=probes).hash for probes in versions})

    assert [count_hashes(), count_hashes(mode="text"), count_hashes(form="paper")] == [2, 1, 1]


def test_later_keys_of_comparisons_left_at_their_defaults_keep_the_hash_of_earlier_audits() -> None:
    def with_logic(**logic: object) -> AuditConfig:
        return config("http://localhost", probes={"logic": logic})

    earlier = "a59235e7b1554facd31284c95e15b3b16d59253ae864563100ffb37f59c1cc95"
    later: list[dict[str, object]] = [{"sets": 3}, {"form": "paper"}, {"sample_answer": "cot"}]
    assert (
        with_logic().hash == with_logic(people=None, sets=None, form="standard", sample_answer="same").hash == earlier
    )
    changed = [with_logic(**settings).hash for settings in later]
    changed.append(with_logic(items="items.csv", people="people.csv").hash)
    assert len({earlier, with_logic(items="items.csv").hash, *changed}) == len(changed) + 2


def test_samples_are_numbered_language_by_language() -> None:
    audit = config("http://localhost", probes={"direct": {"samples": 3}}, language=["en", "native"])
    assert list(audit.first_samples(("de",))) == [0, 3]
    languages = audit.languages_in(("de",))
    by_number = [(languages[index], rank) for index, rank in map(audit.direct.split_sample, range(6))]
    assert by_number == [("en", 0), ("en", 1), ("en", 2), ("de", 0), ("de", 1), ("de", 2)]
    converging = config("http://localhost", probes={"direct": {"samples": 5, "tolerance": 0.1}}, language=["en", "de"])
    assert (converging.samples_per_cell(()), converging.guaranteed_samples_per_cell(())) == (10, 6)
