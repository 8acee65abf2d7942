"""What is written is read back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.domain import Cell, Survey, SurveyCell
from auditor.errors import SurveyError
from auditor.surveys import load_survey, load_survey_facts, write_survey
from auditor.surveys.importer import import_survey
from tests.surveys import official_files


@pytest.mark.parametrize("name", ["wvs7-sample", "pew2013-sample"])
def test_a_built_in_survey_survives(name: str, tmp_path: Path) -> None:
    survey = load_survey(name)
    write_survey(survey, tmp_path / f"{name}.csv")
    assert load_survey(tmp_path / f"{name}.csv") == survey


def test_an_import_survives_with_its_facts(tmp_path: Path) -> None:
    path = official_files.wvs_sav(tmp_path / "wvs.sav", official_files.wvs_columns())
    imported = import_survey(path, name="mine", n_imputations=3, n_splits=5)
    written = write_survey(imported.survey, tmp_path / "mine.csv", imported.facts)
    assert [p.name for p in written] == ["mine.csv", "mine.survey.toml", "mine.facts.json"]
    assert load_survey(tmp_path / "mine.csv") == imported.survey
    assert load_survey_facts(tmp_path / "mine.csv") == imported.facts
    assert not list(tmp_path.glob(".*"))


def test_text_that_needs_escapes_survives(tmp_path: Path) -> None:
    odd = 'quote " backslash \\ newline \n tab \t delete \x7f ünï 中 🙂'
    words = {'topic, with "all"': (odd, "x")}
    cells = (SurveyCell(Cell("Côte d'Ivoire", 'topic, with "all"'), 0.1 + 0.2, n=7),)
    survey = Survey("odd", odd, odd, "{topic} {country} " + odd, (odd, "yes"), cells, words)
    write_survey(survey, tmp_path / "odd.csv")
    assert load_survey(tmp_path / "odd.csv") == survey


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    survey = load_survey("wvs7-sample")
    write_survey(survey, tmp_path / "s.csv")
    (tmp_path / "s.facts.json").write_text("{}")
    with pytest.raises(SurveyError, match="already exists"):
        write_survey(survey, tmp_path / "s.csv")
    write_survey(survey, tmp_path / "s.csv", overwrite=True)
    assert not (tmp_path / "s.facts.json").exists()


def test_places_that_cannot_be_written_to(tmp_path: Path) -> None:
    survey = load_survey("wvs7-sample")
    with pytest.raises(SurveyError, match=r"Use a file name that ends in \.csv"):
        write_survey(survey, tmp_path / "s.xlsx")
    with pytest.raises(SurveyError, match="cannot be written"):
        write_survey(survey, tmp_path / "nowhere" / "s.csv")
