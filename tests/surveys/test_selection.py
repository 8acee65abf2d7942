"""Choosing countries and topics of a survey, in whatever spelling."""

from __future__ import annotations

import itertools

import pytest

from auditor.domain import AnswerKind, Task, TaskItem
from auditor.errors import SurveyError
from auditor.surveys import limit_cells, load_survey, select_cells
from auditor.tasks import survey_from_task

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
        (["840"], "all", "no country '840'. A number means another country in another list. Write the name"),
        (["Xyz"], "all", "It has Australia, Canada"),
        ("all", ["beating"], "Did you mean 'parents beating children'?"),
        ("all", ["divorse"], "no topic 'divorse'. Did you mean 'divorce'?"),
        ([], "all", "is empty"),
        (["Egypt"], ["prostitution"], "is empty: no cell of 1 country and 1 topic has a score"),
    ],
)
def test_what_the_survey_does_not_have_is_an_error_that_names_the_nearest(
    countries: list[str], topics: list[str], message: str
) -> None:
    with pytest.raises(SurveyError) as caught:
        select_cells(WVS, countries, topics)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2  # as other mistakes in a configuration or an option


@pytest.mark.parametrize("max_cells", [1, 5, 19, 30, 100])
def test_a_limit_spreads_cells_evenly_over_countries_and_topics(max_cells: int) -> None:
    limited = limit_cells(WVS, max_cells, seed=7)
    assert len(limited.asked_cells) == max_cells
    assert limited.n_unplanned == len(WVS.asked_cells) - max_cells
    assert limited.asked_cells == tuple(cell for cell in WVS.asked_cells if cell in set(limited.asked_cells))
    for names, all_names in (
        ([cell.country for cell in limited.asked_cells], WVS.countries),
        ([cell.topic for cell in limited.asked_cells], WVS.topics),
    ):
        counts = [names.count(name) for name in all_names]
        assert max(counts) - min(counts) <= 2  # a cell without a score is skipped, so the spread may exceed 1


def test_a_larger_limit_adds_cells_and_another_seed_draws_others() -> None:
    selections = [set(limit_cells(WVS, n, seed=7).asked_cells) for n in (3, 20, 60, 200)]
    assert all(smaller < larger for smaller, larger in itertools.pairwise(selections))
    assert set(limit_cells(WVS, 20, seed=8).asked_cells) != selections[1]
    assert limit_cells(WVS, 10_000, seed=7) == WVS


def test_a_limit_keeps_only_what_belongs_to_its_cells() -> None:
    limited = limit_cells(WVS, 2, seed=7)
    assert set(limited.words) == set(limited.topics)
    assert len(limited.countries) == len(limited.topics) == 2


def test_a_limit_holds_for_the_items_of_a_task() -> None:
    items = {name: TaskItem(name, f"{name}?") for name in "abcdef"}
    survey = survey_from_task(Task("items.csv", AnswerKind.EXACT, "0", items=items))
    limited = limit_cells(survey, 2, seed=1)
    assert limited.task is not None
    assert len(limited.task.items) == len(limited.asked_cells) == 2
    assert limited.n_unplanned == 4
