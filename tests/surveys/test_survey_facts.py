"""Surveys under each treatment of nonresponse, with microdata, without, and as a configuration says."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.domain import Cell, Survey, SurveyCell
from auditor.errors import SurveyError
from auditor.run import load_planned_survey
from auditor.surveys import apply_nonresponse, apply_treatment, load_survey, load_survey_facts, write_survey
from auditor.surveys.importer import import_survey
from auditor.surveys.survey_facts import (
    TREATMENTS,
    CellFacts,
    Reliability,
    SurveyFacts,
    score_errors,
    uses_design_effect,
)
from tests.support.audit_configs import config
from tests.surveys import official_files

CELL = Cell("Norway", "gambling")
PLANNED_CELL = Cell("Nigeria", "homosexuality")


def survey(cell: SurveyCell) -> Survey:
    return Survey("s", "t", "s", "{topic} {country}", ("no", "yes"), (cell,))


def test_shares_and_scores_with_nonresponse_give_all_but_imputation() -> None:
    # 50% acceptable, 20% no moral issue, 10% unacceptable, 20% silent.
    shares = SurveyCell(CELL, 0.4, acceptable=0.5, not_a_moral_issue=0.2, unacceptable=0.1, standard_error=0.1)
    expected = {"drop": 0.4 / 0.8, "neutral": 0.4, "low": 0.2, "high": 0.6}
    for cell in (shares, SurveyCell(CELL, 0.5, nonresponse=0.2)):
        for treatment in TREATMENTS[:4]:
            assert apply_treatment(survey(cell), treatment).scores[CELL] == pytest.approx(expected[treatment])
    assert apply_treatment(survey(shares), "neutral").cells[0].standard_error == 0.1
    assert apply_treatment(survey(shares), "low").cells[0].standard_error is None


@pytest.mark.parametrize(
    ("cell", "treatment"), [(SurveyCell(CELL, 0.5), "neutral"), (SurveyCell(CELL, 0.5, nonresponse=0.1), "impute")]
)
def test_what_the_survey_does_not_say_is_an_error_that_names_the_cell(cell: SurveyCell, treatment: str) -> None:
    with pytest.raises(SurveyError, match=r"Norway × gambling.*Import the official file"):
        apply_treatment(survey(cell), treatment)  # type: ignore[arg-type]


def test_a_cell_that_was_not_asked_stays_so() -> None:
    assert apply_treatment(survey(SurveyCell(CELL, None)), "impute").cells[0].score is None


def test_pew_as_published_counts_the_silent_as_neutral() -> None:
    published = load_survey("pew2013-sample")
    assert apply_treatment(published, "neutral").scores == pytest.approx(published.scores)
    assert apply_treatment(published, "drop").scores != pytest.approx(published.scores)


def test_with_microdata_every_treatment_is_theirs(tmp_path: Path) -> None:
    imported = import_survey(
        official_files.pew_sav(tmp_path / "pew.sav", official_files.pew_columns()), "pew2013", n_imputations=5
    )
    low, high = (apply_treatment(imported.survey, t, imported.facts).scores for t in ("low", "high"))
    for treatment in TREATMENTS:
        scores = apply_treatment(imported.survey, treatment, imported.facts).scores
        assert all(low[c] <= s <= high[c] for c, s in scores.items())
        if treatment != "impute":
            # Shares of the same people say the same.
            assert apply_treatment(imported.survey, treatment).scores == pytest.approx(scores)


def test_facts_that_are_not_there_or_cannot_be_used(tmp_path: Path) -> None:
    assert load_survey_facts("wvs7-sample") is None
    (tmp_path / "own.csv").write_text("country,topic,score\nNorway,gambling,0.5\n")
    (tmp_path / "own.facts.json").write_text('{"respondents": 1}')
    with pytest.raises(SurveyError, match=r"own\.facts\.json: the key 'left_out' is missing"):
        load_survey_facts(tmp_path / "own.csv")


SHARES = {"acceptable": 0.5, "not_a_moral_issue": 0.3, "unacceptable": 0.2}


def facts_of(cell: SurveyCell, n_effective: float) -> SurveyFacts:
    missing = dict.fromkeys(("neutral", "neutral_error", "low", "high", "imputed", "imputed_error"))
    reliability = Reliability(None, None, None, None, None, 0, 0, "few")
    facts = CellFacts(
        country=cell.cell.country, topic=cell.cell.topic, kinds={}, design_error=None, n_effective=n_effective,
        missing_information=None, **missing,
    )  # fmt: skip
    return SurveyFacts(
        respondents=100, left_out={}, notes=(), reliability=reliability, reliability_within_topics=reliability,
        cells=(facts,),
    )  # fmt: skip


def test_standard_errors_of_a_file_are_multiplied_by_the_root_of_the_design_effect() -> None:
    stored = survey(SurveyCell(CELL, 0.3, standard_error=0.05))
    assert score_errors(stored, None, 4.0) == {CELL: pytest.approx(0.1)}
    shares = survey(SurveyCell(CELL, 0.3, n=101, **SHARES))  # variance 0.7 - 0.3², over 100
    assert score_errors(shares) == {CELL: pytest.approx(0.0061**0.5)}
    assert score_errors(shares, None, 4.0) == {CELL: pytest.approx(2 * 0.0061**0.5)}
    assert uses_design_effect(stored, None)


def test_errors_of_an_import_stay_and_a_cell_without_one_has_that_of_kish_or_the_design_effect() -> None:
    stored = SurveyCell(CELL, 0.3, standard_error=0.05)
    assert score_errors(survey(stored), facts_of(stored, 26.0), 4.0) == {CELL: 0.05}
    assert not uses_design_effect(survey(stored), facts_of(stored, 26.0))
    missing = SurveyCell(CELL, 0.3, n=101, **SHARES)
    assert score_errors(survey(missing), facts_of(missing, 26.0)) == {CELL: pytest.approx(2 * 0.0061**0.5)}
    assert score_errors(survey(missing), facts_of(missing, 26.0), 9.0) == {CELL: pytest.approx(3 * 0.0061**0.5)}
    assert uses_design_effect(survey(missing), facts_of(missing, 26.0))


@pytest.fixture
def source(tmp_path: Path) -> str:
    imported = import_survey(
        official_files.write_csv(tmp_path / "wvs.csv", official_files.wvs_columns(200)), n_imputations=3, n_splits=5
    )
    write_survey(imported.survey, tmp_path / "my.csv", imported.facts)
    return str(tmp_path / "my.csv")


def planned(source: str, nonresponse: str) -> float:
    section = {"source": source, "countries": ["Nigeria"], "topics": ["homosexuality"], "nonresponse": nonresponse}
    return load_planned_survey(config("http://localhost", survey=section)).scores[PLANNED_CELL]


def test_each_choice_takes_its_own_score(source: str) -> None:
    facts = load_survey_facts(source)
    assert facts is not None
    score, fact = load_survey(source).scores[PLANNED_CELL], facts.by_cell[PLANNED_CELL]
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
