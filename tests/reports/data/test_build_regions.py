"""The regional section of a report follows the survey's grouping of countries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auditor.domain import Cell, CellScore, Survey, SurveyCell
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.reports.sections.weaknesses import list_weaknesses
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.records import save_records
from auditor.surveys import group_countries
from tests.support.html_page import Page

COUNTRIES = (
    "Germany,France,Spain,Poland,Sweden,Italy,Japan,China,India,Iran,Turkey,Thailand,Nigeria,Kenya,Egypt,Ghana,"
    "Ethiopia,Brazil,Chile,Mexico,Peru,Canada,Australia"
)
TOPICS = [f"topic {letter}" for letter in "abcdefgh"]


def make_survey() -> Survey:
    """A survey of 23 countries by 8 topics; four continents have at least five countries each."""
    rng = np.random.default_rng(1)
    level = dict(zip(TOPICS, np.linspace(-0.5, 0.5, len(TOPICS)), strict=True))
    cells = (Cell(country, topic) for country in COUNTRIES.split(",") for topic in TOPICS)
    scored = tuple(SurveyCell(cell, float(level[cell.topic] + rng.uniform(-0.3, 0.3))) for cell in cells)
    return Survey("own", "t", "s", "{topic} {country}", ("never", "always"), scored)


SAMPLE = make_survey()


def build_regional_report(db: Database, grouping: str, worse_region: str = "", missing_region: str = "") -> Report:
    """The report of one model: four times the error in `worse_region`, no scores in `missing_region`."""
    rng = np.random.default_rng(5)
    survey = group_countries(SAMPLE, grouping)
    assert survey.grouping is not None
    region = survey.grouping.region_by_country
    audit = audits.save_audit(db, name="a", config=None, config_hash=None, survey=survey, environment={"auditor": "0"})
    rows = []
    for cell, score in survey.scores.items():
        error = 0.1 * float(rng.normal()) * (4 if region.get(cell.country) == worse_region else 1)
        value = (
            None
            if missing_region and region.get(cell.country) == missing_region
            else float(np.clip(score + error, -1, 1))
        )
        rows.append(CellScore("m", cell, "direct", value, n_ok=int(value is not None), n_planned=1))
    save_records(db, audit.id, rows)
    audits.set_stage(db, audit.id, audits.FINISHED)
    return build_report(db, "a")


def test_two_groups_have_one_gap(db: Database) -> None:
    part = build_regional_report(db, "western").regions
    assert [row.region for row in part.rows] == ["Western", "Non-Western"]
    [gap] = part.gaps
    assert (gap.first, gap.second, gap.compared) == ("Western", "Non-Western", 2)


def test_the_largest_gap_of_several_groups_is_reported(db: Database) -> None:
    report = build_regional_report(db, "un_m49", worse_region="Europe")
    part = report.regions
    mae = {row.region: row.mae.value or 0.0 for row in part.rows}
    assert set(mae) == {"Africa", "Americas", "Asia", "Europe", "Oceania"}
    [gap] = part.gaps
    assert (gap.second, gap.left_out) == ("Europe", ["Oceania"])
    assert gap.mae_gap.value == pytest.approx(mae["Europe"] - mae[gap.first])
    assert gap.mae_gap.ci_low is not None
    assert gap.mae_gap.ci_low > 0
    for text in (Page(render_report(report, "html")).text, render_report(report, "markdown")):
        assert "United Nations M49 regions" in text
        assert f"Europe minus {gap.first}" in text
        assert "Excluded, with fewer than five countries: Oceania." in text
    sentence = f"The mean absolute error is larger in Europe than in {gap.first} for m"
    assert sentence in " ".join(list_weaknesses(report))


def test_a_gap_without_the_scores_of_a_region_has_bounds(db: Database) -> None:
    [gap] = build_regional_report(db, "western", missing_region="Western").regions.gaps
    assert gap.mae_gap.value is None
    assert gap.r_gap.value is None
    assert gap.worst_case is not None
    assert gap.worst_case.mae.bound_low is not None


def test_the_regional_mean_and_the_rows_use_the_same_groups(db: Database) -> None:
    r_western, r_inglehart_welzel = (
        next(row.pearson_r.value for row in build_regional_report(db, g).baselines if row.baseline == "regional mean")
        for g in ("western", "inglehart_welzel")
    )
    assert r_western != r_inglehart_welzel


def test_countries_in_no_group_are_named(db: Database) -> None:
    survey = group_countries(SAMPLE, "un_m49")
    assert survey.grouping is not None
    two_regions = tuple(r for r in survey.grouping.regions if r.name in ("Africa", "Asia"))
    survey = replace(survey, grouping=replace(survey.grouping, regions=two_regions))
    audit = audits.save_audit(db, name="a", config=None, config_hash=None, survey=survey, environment={"auditor": "0"})
    save_records(db, audit.id, [CellScore("m", cell, "direct", 0.1) for cell in survey.scores])
    report = build_report(db, "a")
    assert "Germany" in report.regions.ungrouped
    for text in (render_report(report, "html"), render_report(report, "markdown")):
        assert "Countries in no region, which are not in the table: " in text
