"""What needs no model: means of other cells, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.domain import Cell, Grouping, Region, Survey, SurveyCell
from auditor.surveys import compute_baselines, country_mean, load_survey, regional_mean, select_cells, topic_mean
from auditor.surveys.baselines import count_donor_countries, estimate_from_similar_countries
from auditor.surveys.selection import add_donors

SCORES = {
    ("Norway", "a"): 0.5, ("Norway", "b"): 0.1, ("Sweden", "a"): 0.3, ("Sweden", "b"): None,
    ("Brazil", "a"): -0.5, ("Brazil", "b"): -0.3, ("Atlantis", "a"): 0.9,
}  # fmt: skip
CELLS = tuple(SurveyCell(Cell(*cell), score) for cell, score in SCORES.items())
SURVEY = Survey("s", "t", "s", "{topic} {country}", ("no", "yes"), CELLS)


def test_topic_mean_by_hand() -> None:
    baseline = topic_mean(SURVEY)
    assert baseline[Cell("Norway", "a")] == pytest.approx((0.3 - 0.5 + 0.9) / 3)
    assert baseline[Cell("Norway", "b")] == pytest.approx(-0.3)
    assert Cell("Sweden", "b") not in baseline


def test_country_mean_by_hand() -> None:
    baseline = country_mean(SURVEY)
    assert baseline[Cell("Norway", "a")] == pytest.approx(0.1)
    # The only topic of a country says nothing about itself.
    assert Cell("Sweden", "a") not in baseline


def test_regional_mean_by_hand() -> None:
    baseline = regional_mean(SURVEY)
    assert baseline[Cell("Norway", "a")] == pytest.approx(0.3)
    assert baseline[Cell("Sweden", "a")] == pytest.approx(0.5)
    # Alone in its region; in no region.
    assert Cell("Brazil", "a") not in baseline
    assert Cell("Atlantis", "a") not in baseline


def test_regional_mean_follows_the_survey_s_grouping() -> None:
    split = Grouping("own", "own", (Region("x", ("Norway", "Brazil")), Region("y", ("Sweden",))))
    baseline = regional_mean(replace(SURVEY, grouping=split))
    assert baseline == {
        Cell("Norway", "a"): -0.5, Cell("Norway", "b"): -0.3, Cell("Brazil", "a"): 0.5, Cell("Brazil", "b"): 0.1,
    }  # fmt: skip


def test_a_baseline_never_sees_what_it_predicts() -> None:
    survey = load_survey("wvs7-sample")
    for cell in survey.cells[:40]:
        if cell.score is None:
            continue
        moved = tuple(SurveyCell(c.cell, 1.0) if c.cell == cell.cell else c for c in survey.cells)
        other = Survey("s", "t", "s", "{topic} {country}", ("no", "yes"), moved)
        for name, scores in compute_baselines(survey).items():
            assert compute_baselines(other)[name].get(cell.cell) == pytest.approx(scores.get(cell.cell)), name


def test_all_baselines_of_the_sample_have_every_scored_cell() -> None:
    survey = load_survey("wvs7-sample")
    for scores in compute_baselines(survey).values():
        assert set(scores) == set(survey.scores)


def test_similar_countries_are_looked_for_in_the_whole_file() -> None:
    """The audit asks about five countries and two topics; the others of the file are donors."""
    full_survey = load_survey("wvs7-sample")
    selected = add_donors(select_cells(full_survey, full_survey.countries[:5], full_survey.topics[:2]), full_survey)
    assert count_donor_countries(selected) == len(full_survey.countries) - 1
    expected = estimate_from_similar_countries(full_survey)
    estimates = estimate_from_similar_countries(selected)
    assert list(estimates) == ["nearest country", "three nearest countries"]
    for name, scores in estimates.items():
        assert scores
        assert scores == {cell: expected[name][cell] for cell in selected.scores}


def test_no_similar_country_without_five_other_topics() -> None:
    assert estimate_from_similar_countries(SURVEY) == {"nearest country": {}, "three nearest countries": {}}
    assert estimate_from_similar_countries(replace(SURVEY, cells=())) == {
        "nearest country": {},
        "three nearest countries": {},
    }
