"""Odd things are said, and sound surveys are quiet."""

from __future__ import annotations

import dataclasses

import pytest

from auditor.domain import Cell, Survey, SurveyCell
from auditor.surveys import check_survey, load_survey
from auditor.surveys.facts import CellFacts, Reliability, SurveyFacts

NAMES = ("Norway", "Sweden", "Brazil", "Chile", "Japan", "India", "Kenya", "Ghana", "Peru", "Spain")


def survey(*cells: SurveyCell) -> Survey:
    words = {c.cell.topic: ("x", "y") for c in cells}
    return Survey("s", "t", "s", "{topic} {country}", ("no", "yes"), cells, words)


def cells(**last: float | None) -> list[SurveyCell]:
    """Ten countries with unremarkable scores of one topic, the last one changed."""
    sound = [SurveyCell(Cell(name, "gambling"), -0.3 + 0.07 * i, n=1000) for i, name in enumerate(NAMES)]
    return [*sound[:-1], dataclasses.replace(sound[-1], **last)]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["wvs7-sample", "pew2013-sample"])
def test_built_in_surveys_are_sound(name: str) -> None:
    assert check_survey(load_survey(name)) == []


def test_a_sound_survey_is_quiet() -> None:
    assert check_survey(survey(*cells())) == []


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        (survey(*cells(), SurveyCell(Cell("Atlantis", "gambling"), 0.1)), "Atlantis: no country of ISO 3166"),
        (survey(*cells(), SurveyCell(Cell("Bermuda", "gambling"), 0.1)), "Bermuda: in no region"),
        (survey(*cells(), SurveyCell(Cell("Peru", "gamblings"), 0.1)), "'gambling' and 'gamblings' are spelt almost"),
        (survey(*cells(), SurveyCell(Cell("Peru", "divorce"), 0.1)), "fewer than half"),
        (survey(*(dataclasses.replace(c, score=abs(c.score or 0)) for c in cells())), "no score is below 0"),
        (survey(*cells(score=1.0)), "exactly -1 or +1"),
        (survey(*(dataclasses.replace(c, score=-0.5) for c in cells())), "all countries have the same score"),
        (survey(*(dataclasses.replace(c, score=c.score and c.score / 10) for c in cells(score=9.9))), "is far from"),
        (survey(*cells(n=12)), "Spain × gambling (12): fewer than 100"),
        (survey(*cells(nonresponse=0.45)), "Spain × gambling (45%): more than 30%"),
        (survey(*cells(acceptable=0.6, not_a_moral_issue=0.3, unacceptable=0.27)), "more than 1"),
        (survey(*cells(acceptable=0.1, not_a_moral_issue=0.3, unacceptable=0.3)), "not what the shares give"),
        (dataclasses.replace(survey(*cells()), words={}), "no list of words"),
    ],
)
def test_odd_things_are_said(odd: Survey, says: str) -> None:
    assert any(says in line for line in check_survey(odd)), check_survey(odd)


def test_what_the_microdata_say_is_said_too() -> None:
    weak = Reliability(0.5, 2 / 3, 0.6, 0.7, 0.816, 10, 100)
    unsure = CellFacts(
        country="Peru", topic="gambling", kinds={}, design_error=None, n_effective=9, neutral=0.0, neutral_error=None,
        low=-0.4, high=0.3, imputed=None, imputed_error=None, missing_information=None,
    )  # fmt: skip
    facts = SurveyFacts(
        respondents=10, left_out={"no weight": 3}, notes=("a note",), reliability=weak, reliability_within_topics=weak,
        cells=(unsure,),
    )  # fmt: skip
    lines = check_survey(survey(*cells()), facts)
    assert any("3 rows of the file could not be used: no weight" in line for line in lines)
    assert "a note" in lines
    assert any("no model can be expected to reach r above 0.82" in line for line in lines)
    assert any("Peru × gambling (-0.40 to 0.30)" in line for line in lines)
