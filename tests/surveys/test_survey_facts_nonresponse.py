"""What a configuration's `nonresponse` makes of the scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.domain import Cell
from auditor.errors import SurveyError
from auditor.run import load_planned_survey
from auditor.surveys import apply_nonresponse, load_survey, load_survey_facts, write_survey
from auditor.surveys.importer import import_survey
from tests.support.audit_configs import config
from tests.surveys import official_files

CELL = Cell("Nigeria", "homosexuality")


@pytest.fixture
def source(tmp_path: Path) -> str:
    imported = import_survey(
        official_files.write_csv(tmp_path / "wvs.csv", official_files.wvs_columns(200)), n_imputations=3, n_splits=5
    )
    write_survey(imported.survey, tmp_path / "my.csv", imported.facts)
    return str(tmp_path / "my.csv")


def planned(source: str, nonresponse: str) -> float:
    section = {"source": source, "countries": ["Nigeria"], "topics": ["homosexuality"], "nonresponse": nonresponse}
    return load_planned_survey(config("http://localhost", survey=section)).scores[CELL]


def test_each_choice_takes_its_own_score(source: str) -> None:
    facts = load_survey_facts(source)
    assert facts is not None
    score, fact = load_survey(source).scores[CELL], facts.by_cell[CELL]
    assert planned(source, "drop") == planned(source, "bounds") == score
    assert planned(source, "neutral") == fact.neutral != score
    assert planned(source, "impute") == fact.imputed != score


def test_zero_is_neutral_and_fills_the_cells_in_which_nobody_was_asked(tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("country,topic,score,nonresponse\nGhana,divorce,0.5,0.2\nGhana,suicide,,\nJapan,divorce,-0.5,0\n")
    survey = load_survey(file)
    filled = apply_nonresponse(survey, "zero", file)
    neutral = apply_nonresponse(survey, "neutral", file)
    unasked = Cell("Ghana", "suicide")
    assert unasked not in neutral.scores
    assert filled.scores == neutral.scores | {unasked: 0.0}
    assert unasked in filled.asked_cells


def test_zero_leaves_scores_without_a_share_of_nonresponse_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "matrix.csv"
    file.write_text("country,topic,score,nonresponse\nGhana,divorce,0.5,0.2\nGhana,suicide,,\nJapan,divorce,-0.5,\n")
    filled = apply_nonresponse(load_survey(file), "zero", file)
    assert filled.scores == {
        Cell("Ghana", "divorce"): 0.4, Cell("Ghana", "suicide"): 0.0, Cell("Japan", "divorce"): -0.5,
    }  # fmt: skip
    assert planned("wvs7-sample", "zero") == planned("wvs7-sample", "drop")


def test_zero_keeps_the_share_of_nonresponse_that_shares_of_answers_leave(tmp_path: Path) -> None:
    file = tmp_path / "shares.csv"
    file.write_text("country,topic,score,acceptable,not_a_moral_issue,unacceptable\nGhana,divorce,0.5,0.6,0.1,0.1\n")
    [cell] = apply_nonresponse(load_survey(file), "zero", file).cells
    assert [cell.score, cell.nonresponse] == pytest.approx([0.5, 0.2])


@pytest.mark.parametrize("choice", ["neutral", "impute", "bounds"])
def test_a_survey_of_scores_alone_cannot_be_treated(choice: str) -> None:
    with pytest.raises(SurveyError, match="has too little information on nonresponse"):
        planned("wvs7-sample", choice)


def test_no_cell_leaves_an_audit_in_silence(tmp_path: Path) -> None:
    rows = official_files.write_csv(tmp_path / "wvs.csv", official_files.wvs_columns(200))
    imported = import_survey(rows, n_imputations=0, n_splits=5)
    write_survey(imported.survey, tmp_path / "my.csv", imported.facts)
    with pytest.raises(SurveyError, match="has no score for nonresponse = 'impute'"):
        apply_nonresponse(imported.survey, "impute", tmp_path / "my.csv")
