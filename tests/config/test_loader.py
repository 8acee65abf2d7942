"""Tests of `load_config`: file formats, relative paths and secrets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from auditor.config import load_config, resolve_secret
from auditor.errors import ConfigError
from tests.config.test_audit import GOOD, write


def test_a_missing_file_and_a_strange_suffix(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="suffix"):
        load_config(write(tmp_path, GOOD, "a.ini"))


def test_a_survey_path_is_relative_to_the_config(tmp_path: Path) -> None:
    write(tmp_path, "country,topic,score\n", "mine.csv")
    config = load_config(write(tmp_path, GOOD.replace("wvs7-sample", "mine.csv")))
    assert config.survey is not None
    assert Path(config.survey.source) == tmp_path / "mine.csv"


def test_secrets_are_resolved_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=re.escape("export SOME_KEY=")):
        resolve_secret("os.environ/SOME_KEY")
    monkeypatch.setenv("SOME_KEY", "s3cret")
    assert resolve_secret("os.environ/SOME_KEY") == "s3cret"


def test_a_grouping_path_is_relative_to_the_config(tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("country,region\nJapan,A\n")

    def loaded_regions(regions: str) -> str:
        text = GOOD.replace('source = "wvs7-sample"', f'source = "wvs7-sample", regions = "{regions}"')
        survey = load_config(write(tmp_path, text)).survey
        assert survey is not None
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
    assert loaded_configs[1].survey is not None
    assert loaded_configs[1].survey.source == str(tmp_path / "own.csv")

    moved = tmp_path.rename(tmp_path.with_name("moved"))
    assert load_config(moved / path.name).hash == loaded_configs[0].hash
