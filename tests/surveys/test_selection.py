"""Choosing countries and topics of a survey, in whatever spelling."""

from __future__ import annotations

import pytest

from auditor.errors import SurveyError
from auditor.surveys import load_survey, select_cells

WVS = load_survey("wvs7-sample")
PEW = load_survey("pew2013-sample")


def test_all_is_everything() -> None:
    assert select_cells(WVS) == WVS
    assert select_cells(WVS, "all", "all") == WVS


@pytest.mark.parametrize("asked", ["Turkey", "turkey", "Türkiye", "TR", "TUR", "tr"])
def test_a_country_is_known_by_any_of_its_names(asked: str) -> None:
    assert select_cells(WVS, [asked]).countries == ("Turkey",)


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ("United Kingdom", "Britain"), ("Great Britain", "Britain"), ("UK", "Britain"), ("GB", "Britain"),
        ("USA", "United States"), ("United States of America", "United States"), ("Russian Federation", "Russia"),
    ],
)  # fmt: skip
def test_surveys_own_spellings_are_understood(asked: str, known: str) -> None:
    assert select_cells(PEW, [asked]).countries == (known,)


def test_the_order_is_the_surveys_and_a_country_named_twice_is_there_once() -> None:
    part = select_cells(WVS, ["Turkey", "AUS", "Australia"], ["divorce", "Homosexuality"])
    assert part.countries == ("Australia", "Turkey")
    assert part.topics == ("homosexuality", "divorce")
    assert len(part.cells) == 4
    assert set(part.words) == {"homosexuality", "divorce"}


@pytest.mark.parametrize(
    ("countries", "topics", "message"),
    [
        (["Brasil", "Germny"], "all", "no country 'Germny'. Did you mean 'Germany'?"),
        (["France"], "all", "no country 'France'"),
        (["Xyz"], "all", "It has Australia, Canada"),
        ("all", ["beating"], "Did you mean 'parents beating children'?"),
        ("all", ["divorse"], "no topic 'divorse'. Did you mean 'divorce'?"),
        ([], "all", "is empty"),
        (["Egypt"], ["prostitution"], "is empty: no cell of 1 countries and 1 topics has a score"),
    ],
)
def test_what_the_survey_does_not_have_is_an_error_that_names_the_nearest(
    countries: list[str], topics: list[str], message: str
) -> None:
    with pytest.raises(SurveyError) as caught:
        select_cells(WVS, countries, topics)
    assert message in str(caught.value)
