"""Published figures: what a file may say, and which figures are drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.config import load_config
from auditor.errors import AuditorError, ConfigError
from auditor.probe_interface import ProbeAudit
from auditor.probes.memory.published import (
    MADE_UP_TOPICS,
    FigureKey,
    draw_figures,
    draw_made_up,
    find_siblings,
    is_before,
    load_figures,
    load_made_up_figures,
    read_figures,
    read_items,
    split_wording,
)
from auditor.run import load_planned_survey

CONFIG = """
name = "simulated-memory"
survey = {{ source = "{source}"{more} }}
embedding = {{ model = "none" }}
judges = []
[[models]]
name = "one"
model = "simulated/knows-every-culture"
[probes.memory]
{settings}
"""
HEADER = "country,topic,wave,statistic,value,decimals\n"


def open_audit(folder: Path, source: str = "wvs7-sample", settings: str = "", more: str = "") -> ProbeAudit[Any]:
    (folder / "a.toml").write_text(CONFIG.format(source=source, settings=settings, more=more), encoding="utf-8")
    config = load_config(folder / "a.toml")
    return ProbeAudit(config.probes.plugins["memory"], config, load_planned_survey(config))


def test_percentages_of_pew_are_built_in(tmp_path: Path) -> None:
    audit = open_audit(tmp_path, "pew2013-sample")
    figures = load_figures(audit.settings, audit.survey, "pew2013-sample")
    values = {key.statistic: figure for key, figure in figures.items() if key[:2] == ("Australia", "homosexuality")}
    assert sorted(figure.value for figure in values.values()) == [17, 34, 44]
    assert {figure.decimals for figure in figures.values()} == {0}
    drawn = draw_figures(audit, figures)
    assert len(drawn) == len({key.cell for key in drawn}) == 60
    assert drawn == draw_figures(audit, figures)
    assert drawn != draw_figures(replace(audit, config=audit.config.model_copy(update={"seed": 3})), figures)


def test_another_survey_has_no_built_in_figures(tmp_path: Path) -> None:
    audit = open_audit(tmp_path)
    assert load_figures(audit.settings, audit.survey, "wvs7-sample") == {}


def test_figures_are_drawn_evenly_over_waves_and_have_siblings(tmp_path: Path) -> None:
    audit, figures = open_audit(tmp_path), load_made_up_figures()
    drawn = draw_figures(audit, figures)
    assert {wave: sum(key.wave == wave for key in drawn) for wave in ("2011", "2016")} == {"2011": 30, "2016": 30}
    assert [*find_siblings(drawn, figures)[0]] == [{"2011": "2016", "2016": "2011"}[drawn[0].wave]]
    made_up = draw_made_up(audit, drawn)
    assert len(set(made_up)) == 10
    assert {key.topic for key in made_up} <= set(MADE_UP_TOPICS)


def test_fewer_than_five_countries_have_no_questions(tmp_path: Path) -> None:
    audit = open_audit(tmp_path, more=', countries = ["Australia", "Canada", "Germany", "Japan"]')
    assert draw_figures(audit, load_made_up_figures()) == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [("A,t,2013,s,37\n", "fields"), ("A,t,2013,s,much,0\n", "not a number"), ("A,t,2013,s,,0\n", "no number"),
     ("A,t,2013,s,37,1.5\n", "'decimals'"), ("A,t,2013,s,37,\n", "'decimals'"), ("A,,2013,s,37,0\n", "empty"),
     ("A,t,2013,s,37,0\nA,t,2013,s,38,0\n", "twice"), ("", "no ")],
)  # fmt: skip
def test_a_bad_file_is_named(tmp_path: Path, rows: str, message: str) -> None:
    path = tmp_path / "published.csv"
    path.write_text(HEADER + rows, encoding="utf-8")
    with pytest.raises(AuditorError, match=message) as error:
        read_figures(str(path))
    assert "published.csv" in str(error.value)


def test_wordings_are_continued_from_their_first_half(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("topic,text\ndivorce,one two three four five six seven eight\n", encoding="utf-8")
    assert split_wording(read_items(str(path))["divorce"]) == ("one two three four", "five six seven eight")
    path.write_text("topic,text\ndivorce,too short\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="fewer than 8 words"):
        read_items(str(path))


@pytest.mark.parametrize(
    ("wave", "released", "expected"),
    [("2011", "2013-05", True), ("2013", "2013-05", None), ("2013-06", "2013-05-01", False), ("wave 7", "2013", None)],
)
def test_waves_are_before_or_after_a_release(wave: str, released: str, expected: bool | None) -> None:
    assert is_before(wave, released) is expected
    assert FigureKey("c", "t", wave, "s").cell == ("c", "t")
