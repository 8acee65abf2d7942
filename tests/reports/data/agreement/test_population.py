"""Agreement with the population, structure and guesses: from a survey's file to the sentences of page one."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from auditor.domain import Cell, CellScore, Survey, SurveyCell
from auditor.imports.recorded_audits import import_scores
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.two_way import crossed_jackknife
from auditor.metrics.people.alignment import MAE
from auditor.metrics.people.survey_error import sampling_floor_of_mae
from auditor.reports.data.agreement.population import compute_population_agreement
from auditor.reports.data.build import build_report
from auditor.reports.data.measurement_schema import CeilingRow
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import ReportSource
from auditor.reports.sections.baselines import build_population_section, list_corrections
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.page_one import build_summary_section
from auditor.storage.database import open_database
from auditor.surveys.baselines import estimate_from_similar_countries
from auditor.surveys.loader import load_survey
from tests.reports.sections.node_text import text_of

SHAPE = (24, 8)
N_SELECTED = 14


def write_rows(path: Path, header: list[str], rows: Sequence[tuple[object, ...]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray, np.ndarray]:
    """A survey of 24 countries with standard errors, people's population scores, and the folder's survey scores."""
    rng = np.random.default_rng(2)
    factors = rng.normal(size=(SHAPE[0], 2)) @ rng.normal(size=(2, SHAPE[1]))
    population = np.clip(0.15 * factors + 0.1 * rng.normal(size=SHAPE), -0.9, 0.9)
    errors = np.full(SHAPE, 0.08)
    survey = np.clip(population + errors * rng.normal(size=SHAPE), -1, 1)
    names = [(f"country {i:02d}", f"topic {j}") for i in range(SHAPE[0]) for j in range(SHAPE[1])]
    rows = [(*name, float(s), float(e)) for name, s, e in zip(names, survey.ravel(), errors.ravel(), strict=True)]
    path = tmp_path_factory.mktemp("people") / "people.csv"
    return write_rows(path, ["country", "topic", "score", "standard_error"], rows), population, survey


@pytest.fixture(scope="module")
def report(people: tuple[Path, np.ndarray, np.ndarray]) -> Report:
    """The report of four models on 14 of the 24 countries."""
    path, population, survey = people
    nearest = estimate_from_similar_countries(load_survey(path))["three nearest countries"]
    names = [(f"country {i:02d}", f"topic {j}") for i in range(SHAPE[0]) for j in range(SHAPE[1])]
    guesses = np.array([value for _, value in sorted(nearest.items())]).reshape(SHAPE)
    noise = 0.1 * np.random.default_rng(3).normal(size=SHAPE)
    models = {"knows": population, "recites": np.round(survey, 2), "noisy": survey + noise, "nearest": guesses}
    rows = [
        (model, *name, "direct", float(np.clip(score, -1, 1)))
        for model, scores in models.items()
        for name, score in zip(names[: N_SELECTED * SHAPE[1]], scores.ravel(), strict=False)
    ]
    file = write_rows(path.with_name("scores.csv"), ["model", "country", "topic", "method", "score"], rows)
    storage = f"sqlite:///{path.parent}/audit.db"
    import_scores(file, survey=str(path), audit="a", storage=storage)
    with open_database(storage, create=False) as db:
        return build_report(db, "a")


def test_figures_are_corrected_for_the_errors_of_the_file(report: Report) -> None:
    by_model = {row.model: row for row in report.population}
    raw = {row.model: row for row in report.alignment}
    assert by_model["knows"].cells == N_SELECTED * SHAPE[1]
    assert (by_model["noisy"].mae.value or 1) < (raw["noisy"].mae.value or 0)
    assert (by_model["noisy"].pearson_r.value or 0) > (raw["noisy"].pearson_r.value or 1)
    assert by_model["knows"].mae_floor == pytest.approx(sampling_floor_of_mae([0.08]))
    assert ("direct", "noisy") in list_corrections(report)
    section = build_population_section(report)
    assert section is not None
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
        assert (row.cells, row.is_below_floor) == (N_SELECTED * SHAPE[1] - 3, is_recited)


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


def test_a_model_that_copies_similar_countries_does_not_beat_their_level(
    report: Report, people: tuple[Path, np.ndarray, np.ndarray]
) -> None:
    claims = {(claim.model, claim.level): claim.is_closer for claim in report.guesses}
    assert not claims["nearest", "similar countries"]
    assert claims["recites", "similar countries"]
    assert claims["recites", "means"]
    assert report.donor_countries == SHAPE[0] - 1
    # Donors are the whole file: the guesses are those of 24 countries, though scores are on 14 of them.
    [row] = [b for b in report.baselines if (b.model, b.baseline) == ("nearest", "three nearest countries")]
    assert row.mae_difference.value == pytest.approx(0.0)


def test_structure_is_found_in_scores_that_have_it(report: Report) -> None:
    is_found = {row.model: row.is_found for row in report.structure}
    assert is_found["knows"]
    assert is_found["recites"]
    text = text_of(build_summary_section(report))
    assert "Topics go together over countries as they do for people in the scores of knows" in text


def test_concordance_is_in_the_row_and_its_joint_interval_is_wider(report: Report) -> None:
    for row in report.alignment:
        single, joint = row.concordance, row.concordance_simultaneous
        assert single.value == joint.value
        if single.ci_low is not None and joint.ci_low is not None:
            assert joint.ci_low < single.ci_low
    scores = np.array([cell.scores["direct"]["noisy"] for cell in report.audit.cells], dtype=float)
    truth = np.array([cell.survey for cell in report.audit.cells], dtype=float)
    places = [[getattr(cell, side) for cell in report.audit.cells] for side in ("country", "topic")]
    assert {row.model: row.mae.value for row in report.alignment}["noisy"] == pytest.approx(
        crossed_jackknife(MAE, scores, truth, places[0], places[1]).value
    )
