"""Agreement with the population, structure and guesses: from a survey's file to the sentences of page one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, cast

import pytest

from auditor.domain import Cell, CellScore, Survey, SurveyCell
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.people.survey_error import sampling_floor_of_mae
from auditor.reports.data.agreement.alignment import compute_alignment
from auditor.reports.data.agreement.population import compute_population_agreement
from auditor.reports.data.measurement_schema import CeilingRow
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import ReportSource
from auditor.reports.sections.baselines import build_population_section, list_corrections
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.page_one import build_summary_section
from tests.reports.sections.node_text import text_of
from tests.support.known import known

N_CELLS = 14 * 8


@pytest.fixture
def report(whole_report: Callable[[str], Report]) -> Report:
    """The report of four models on 14 of the 24 countries of a survey with standard errors."""
    return whole_report("people")


def test_figures_are_corrected_for_the_errors_of_the_file(report: Report) -> None:
    by_model = {row.model: row for row in report.population}
    raw = {row.model: row for row in report.alignment}
    assert by_model["knows"].cells == N_CELLS
    assert (by_model["noisy"].mae.value or 1) < (raw["noisy"].mae.value or 0)
    assert (by_model["noisy"].pearson_r.value or 0) > (raw["noisy"].pearson_r.value or 1)
    assert by_model["knows"].mae_floor == pytest.approx(sampling_floor_of_mae([0.08]))
    assert ("direct", "noisy") in list_corrections(report)
    section = known(build_population_section(report))
    assert "Agreement without people’s sampling error" in text_of(section)


def test_only_a_model_that_recites_the_table_is_closer_than_the_population_allows(report: Report) -> None:
    assert [row.model for row in report.population if row.is_below_floor] == ["recites"]
    [caution] = [text for text in list_cautions(report) if "knowing the population" in text]
    assert caution.startswith("recites is closer to this survey’s sample")
    assert caution in text_of(build_summary_section(report))


def test_a_cell_without_a_standard_error_hides_no_recited_table(report: Report) -> None:
    """As of one respondent: floor and error are compared over the cells with a known standard error."""
    for name, is_recited in (("recites", True), ("knows", False)):
        column = [row.model for row in report.population].index(name)
        source = make_source(report, name)
        row = compute_population_agreement(source, [report.alignment[column]], [])[0]
        assert (row.cells, row.is_below_floor) == (N_CELLS - 3, is_recited)


def test_sampling_error_is_not_taken_out_of_scores_that_repeat_it(report: Report) -> None:
    """They are as far from the population as the survey is, not nearer than all who know it."""
    [recites] = [row for row in report.population if row.is_below_floor]
    for figure in (recites.mae, recites.rmse, recites.pearson_r, recites.concordance):
        assert (figure.value, figure.ci_high, figure.n) == (None, None, N_CELLS)
        assert (figure.reason or "").startswith("the scores repeat the sampling error of this survey")
    assert ("direct", "recites") not in list_corrections(report)
    section = known(build_population_section(report))
    assert "the scores repeat the sampling error of this survey" in text_of(section)


def test_the_very_scores_of_the_survey_repeat_it(report: Report) -> None:
    """An error of 0 in every cell has no interval."""
    source = make_source(report, "recites")
    truth = {cell.cell: cell.score for cell in source.survey.cells} if source.survey else {}
    scores = [dataclasses.replace(score, score=truth[score.cell]) for score in source.scores]
    copied = dataclasses.replace(source, scores=scores)
    alignment = compute_alignment(copied)
    assert (alignment[0].mae.value, alignment[0].mae.ci_high) == (0.0, None)
    [row] = compute_population_agreement(copied, alignment, [])
    assert row.is_below_floor
    assert (row.mae.value, row.cells) == (None, N_CELLS - 3)


def make_source(report: Report, model: str) -> ReportSource:
    """The source of one model's scores, without the standard errors of three cells."""
    cells = [cell for cell in report.audit.cells if cell.scores["direct"][model] is not None]
    survey_cells = [
        SurveyCell(Cell(cell.country, cell.topic), cell.survey, standard_error=None if i < 3 else 0.08)
        for i, cell in enumerate(cells)
    ]
    scores = [CellScore(model, Cell(c.country, c.topic), "direct", c.scores["direct"][model], n_ok=1) for c in cells]
    survey = Survey("s", "t", "s", "{topic} {country}", ("no", "yes"), tuple(survey_cells))
    return ReportSource(audit=cast(Any, None), config=None, survey=survey, scores=scores)


def test_r_above_the_ceiling_is_a_caution(report: Report) -> None:
    ceiling = CeilingRow(scope="all", reliability=Estimate(0.6, 100, 0.5, 0.64), largest_r=0.77)
    column = [row.model for row in report.population].index("recites")
    alignment = [report.alignment[column]]
    assert (alignment[0].pearson_r.ci_low or 0) > 0.8
    [row] = compute_population_agreement(make_source(report, "recites"), alignment, [ceiling])
    assert row.is_above_ceiling
    changed = report.model_copy(update={"population": [row.model_copy(update={"is_below_floor": False})]})
    [caution] = [text for text in list_cautions(changed) if "sampling error allows" in text]
    assert caution == (
        "r of recites is higher than people’s sampling error allows a perfect model. The scores may repeat a published "
        "table. The probe memory tests this."
    )
    high = CeilingRow(scope="all", reliability=Estimate(0.99, 100, 0.98, 1.0), largest_r=0.99)
    assert not compute_population_agreement(make_source(report, "recites"), alignment, [high])[0].is_above_ceiling


def test_the_design_effect_is_printed(report: Report) -> None:
    rows = [row.model_copy(update={"design_effect": 1.8}) for row in report.population]
    section = build_population_section(report.model_copy(update={"population": rows}))
    assert "times the root of its design effect, 1.80." in text_of(section)


def test_a_model_that_copies_similar_countries_does_not_beat_their_level(report: Report) -> None:
    claims = {(claim.model, claim.level): claim.is_closer for claim in report.guesses}
    assert not claims["nearest", "similar countries"]
    assert claims["recites", "similar countries"]
    assert claims["recites", "means"]
    assert report.donor_countries == 23
    # Donors are the whole file: the guesses are those of 24 countries, though scores are on 14 of them.
    [row] = [b for b in report.baselines if (b.model, b.baseline) == ("nearest", "three nearest countries")]
    assert row.mae_difference.value == pytest.approx(0.0)


def test_structure_is_found_in_scores_that_have_it(report: Report) -> None:
    is_found = {row.model: row.is_found for row in report.structure}
    assert is_found["knows"]
    assert is_found["recites"]
    text = text_of(build_summary_section(report))
    assert "Topics go together over countries as they do for people in the scores of knows" in text
