"""`load_config`: file formats, relative paths, secrets, and settings changed on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from auditor.config import load_config, resolve_secret
from auditor.config.base import read_field_descriptions
from auditor.config.loader import apply_overrides, parse_override
from auditor.errors import ConfigError
from tests.config.test_audit import GOOD, write
from tests.support.config_fields import iterate_fields
from tests.support.known import known

SURVEY_WITH_FILES = """
name = "files"
survey = { source = "x", regions = "x", wordings = "x" }
embedding = { model = "./x" }
judges = [
  { name = "j", model = "openai/j", review_prompt = "x" },
  { name = "k", model = "replay/k", verdicts = "x" },
]
models = [
  { name = "a", model = "replay/a", answers = "x" },
  { name = "b", model = "replay/b", answers = "x", weights = "x" },
]
[probes]
direct = { mode = "text" }
logprob = {}
semantic = { questions = "x", encoder = "./x", bertscore_model = "./x", rivals = ["bertscore_bert_base"] }
logic = { items = "x", people = "x" }
memory = { published = "x", items = "x" }
"""
TASK_WITH_FILES = """
name = "files"
task = { source = "x", answer = "exact" }
judges = []
models = [{ name = "a", model = "openai/a" }]
"""
NAMES_A_FILE = re.compile(r"\b(file|folder|path)\b", re.IGNORECASE)
SETTINGS: dict[str, Any] = {
    "judges": "peers",
    "limits": {"budget_usd": 1.0},
    "models": [{"name": "gpt-4.1", "model": "openai/a"}, {"name": "b", "model": "openai/b"}],
}


def test_a_missing_file_and_a_strange_suffix(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"must end in \.toml, \.yaml or \.yml"):
        load_config(write(tmp_path, GOOD, "a.ini"))


def test_a_survey_path_is_relative_to_the_config(tmp_path: Path) -> None:
    write(tmp_path, "country,topic,score\n", "mine.csv")
    config = load_config(write(tmp_path, GOOD.replace("wvs7-sample", "mine.csv")))
    assert Path(known(config.survey).source) == tmp_path / "mine.csv"


def test_a_file_of_the_working_folder_does_not_replace_one_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another survey of the same name would be asked about; what is typed in --set is taken from where it is typed."""
    folder, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for path in (folder, elsewhere):
        path.mkdir()
    (elsewhere / "mine.csv").write_text("country,topic,score\n")
    monkeypatch.chdir(elsewhere)
    config = load_config(write(folder, GOOD.replace('"wvs7-sample"', '"mine.csv"')))
    assert known(config.survey).source == str(folder / "mine.csv")
    typed = load_config(write(folder, GOOD), ["survey.source=mine.csv"])
    assert known(typed.survey).source == str(elsewhere / "mine.csv")


def test_secrets_are_resolved_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=re.escape("export SOME_KEY=")):
        resolve_secret("os.environ/SOME_KEY")
    monkeypatch.setenv("SOME_KEY", "s3cret")
    assert resolve_secret("os.environ/SOME_KEY") == "s3cret"
    monkeypatch.setenv("SOME_KEY", " s3cret\r\n")
    assert resolve_secret("os.environ/SOME_KEY") == "s3cret"
    for secret in ("s3cr\net", "s3cr\u00e8t"):
        monkeypatch.setenv("SOME_KEY", secret)
        with pytest.raises(
            ConfigError, match="the value of the environment variable SOME_KEY has a character"
        ) as refused:
            resolve_secret("os.environ/SOME_KEY")
        assert secret not in str(refused.value)


def test_a_grouping_path_is_relative_to_the_config(tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("country,region\nJapan,A\n")

    def loaded_regions(regions: str) -> str:
        text = GOOD.replace('source = "wvs7-sample"', f'source = "wvs7-sample", regions = "{regions}"')
        survey = known(load_config(write(tmp_path, text)).survey)
        return survey.regions

    assert loaded_regions("groups.csv") == str(tmp_path / "groups.csv")
    assert loaded_regions("un_m49") == "un_m49"
    assert loaded_regions("western") == "western"


def test_the_hash_does_not_depend_on_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.csv").write_text("country,topic,score\nJapan,divorce,0.5\n")
    path = write(tmp_path, GOOD.replace('"wvs7-sample"', '"own.csv"'))
    loaded_configs = [load_config(path)]
    monkeypatch.chdir(tmp_path)
    loaded_configs.append(load_config(path.name))
    assert loaded_configs[0].hash == loaded_configs[1].hash
    assert known(loaded_configs[1].survey).source == str(tmp_path / "own.csv")

    moved = tmp_path.rename(tmp_path.with_name("moved"))
    assert load_config(moved / path.name).hash == loaded_configs[0].hash


def keys_with_value(section: BaseModel, value: str) -> Iterator[str]:
    """Keys of a section, and of those in it, that have a value, as `Section.key`."""
    for name, setting in section:
        if setting == value:
            yield f"{type(section).__name__}.{name}"
        for part in setting if isinstance(setting, list) else [setting]:
            if isinstance(part, BaseModel):
                yield from keys_with_value(part, value)


def test_every_key_that_names_a_file_is_taken_from_the_folder_of_the_config(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    configs = [load_config(write(tmp_path, text)) for text in (SURVEY_WITH_FILES, TASK_WITH_FILES)]
    resolved_keys = {key for config in configs for key in keys_with_value(config, str(tmp_path / "x"))}
    described_keys = {
        f"{section.__name__}.{name}"
        for section, name, info in iterate_fields()
        if "str" in repr(info.annotation) and NAMES_A_FILE.search(read_field_descriptions(section).get(name, ""))
    }
    not_paths = {"ModelSection.api_key", "TaskSection.options", "AuditConfig.storage"}  # the last is a URL
    not_paths |= {"MemorySettings.publication"}  # a name
    assert resolved_keys == described_keys - not_paths | {"SemanticProbe.encoder"}


def test_examples_in_errors_are_in_the_format_of_the_file(tmp_path: Path) -> None:
    for name, example in (("a.toml", 'source = "wvs7-sample"'), ("a.yaml", 'source: "wvs7-sample"')):
        is_toml = name.endswith("toml")
        (tmp_path / name).write_text("survey = { source = 5 }\n" if is_toml else "survey: { source: 5 }\n")
        with pytest.raises(ConfigError, match=rf"for example {re.escape(example)}"):
            load_config(tmp_path / name)


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
        ("models.bb.temperature=1",
         "--set models.bb.temperature: the list 'models' has no entry with the name 'bb'. Did you mean 'b'?"),
        ("models.zzzz=1", "the list 'models' has no entry with the name 'zzzz'. Names in it: gpt-4.1, b."),
        ("judges.b.temperature=1", "'judges' is a single value, so nothing can be set inside it. With judges ="),
        ("limits.budget_usd.x=1",
         "'limits.budget_usd' is a single value, so nothing can be set inside it. Set the whole value"),
    ],
)  # fmt: skip
def test_a_wrong_override_and_a_key_that_leads_nowhere_are_explained(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        apply_overrides(SETTINGS, [parse_override(text)])
    assert message in str(caught.value)


def test_tables_are_added_and_list_items_are_found_by_name() -> None:
    texts = ["limits.max_cells=4", "probes.direct.samples=2", "models.'gpt-4.1'.temperature=0.5", "judges=[]"]
    changed = apply_overrides(SETTINGS, map(parse_override, texts))
    assert changed["limits"] == {"budget_usd": 1.0, "max_cells": 4}
    assert changed["probes"] == {"direct": {"samples": 2}}
    assert changed["models"][0] == {"name": "gpt-4.1", "model": "openai/a", "temperature": 0.5}
    assert changed["judges"] == []
    unquoted = apply_overrides(SETTINGS, [parse_override("models.gpt-4.1.temperature=0.5")])
    assert unquoted["models"] == changed["models"]
    assert SETTINGS["limits"] == {"budget_usd": 1.0}


def test_a_config_is_loaded_with_changes_and_errors_name_the_option(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    assert load_config(path, ["seed=9", "limits.max_cells=3"]).limits.max_cells == 3
    assert load_config(path, ["seed=9"]).seed == 9
    with pytest.raises(ConfigError, match=r"with --set limits.max_cell: unknown key 'limits.max_cell'"):
        load_config(path, ["limits.max_cell=3"])


def test_no_message_shows_a_key_that_was_set(tmp_path: Path) -> None:
    for text in ("models=[{name='a', model='openai/a', api_key='sk-hunter2'}]", "storage='sk-hunter2"):
        with pytest.raises(ConfigError) as caught:
            load_config(write(tmp_path, GOOD), [text])
        assert "hunter2" not in str(caught.value)
