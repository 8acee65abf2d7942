"""Figures over models: tiers by cut-off, distributions of errors, and models with equal log-probability scores."""

from __future__ import annotations

import pytest

from auditor.reports.data.report_schema import Report
from auditor.reports.sections.caution import list_cautions
from auditor.storage.database import Database
from auditor.surveys import region_of
from tests.reports.conftest import import_scores

PEOPLE = {("Ghana", "a"): -0.9, ("Ghana", "b"): -0.1, ("Japan", "a"): 0.2, ("Japan", "b"): 0.8}
NOISE = {"birch": 0.0, "cedar": 0.0, "dogwood": 1.2}


def scores_of(model: str, noise: float) -> dict[tuple[str, str, str], float | None]:
    """Scores that are people's, shifted by 0.1, and reversed for one cell by the noise."""
    return {
        (model, *cell): max(-1.0, min(1.0, score + 0.1 - (noise if cell == ("Japan", "b") else 0)))
        for cell, score in PEOPLE.items()
    }


def import_models(db: Database, method: str = "direct") -> Report:
    scores: dict[tuple[str, str, str], float | None] = {}
    for model, noise in NOISE.items():
        scores |= scores_of(model, noise)
    return import_scores(db, PEOPLE, scores, method)


def test_tiers_hold_the_models_between_two_cut_offs(db: Database) -> None:
    report = import_models(db)
    assert report.over_models is not None
    r_by_model = {row.model: row.pearson_r.value for row in report.alignment}
    assert r_by_model["birch"] == pytest.approx(1)
    assert (r_by_model["dogwood"] or 0) < 0.65
    for name, cut_offs in (("WVS", [0.9, 0.8, 0.7, None]), ("PEW", [0.85, 0.75, 0.65, None])):
        rows = [row for row in report.over_models.cut_off_tiers if row.cut_offs == name]
        assert [row.min_r for row in rows] == cut_offs
        assert [row.models for row in rows] == [["birch", "cedar"], [], [], ["dogwood"]]


def test_errors_are_counted_in_tenths(db: Database) -> None:
    report = import_models(db)
    assert report.over_models is not None
    counts = {row.model: row.counts for row in report.over_models.errors}
    assert counts["birch"] == [0, 4, *[0] * 18]
    assert counts["dogwood"] == [0, 3, *[0] * 9, 1, *[0] * 8]


@pytest.mark.parametrize("method", ["direct", "logprob"])
def test_models_with_equal_scores_are_named_and_counted_once_in_means(db: Database, method: str) -> None:
    report = import_models(db, method)
    assert [(group.method, group.models) for group in report.equal_series] == [(method, ["birch", "cedar"])]
    assert report.over_models is not None
    [row] = [row for row in report.over_models.figures if row.figure == "pearson_r" and row.region is None]
    r = {alignment.model: alignment.pearson_r.value or 0.0 for alignment in report.alignment}
    assert row.summary.mean.n == 2
    assert row.summary.mean.value == pytest.approx((r["birch"] + r["dogwood"]) / 2)
    scores = "direct" if method == "direct" else "log-probability"
    sentence = f"birch and cedar have the same {scores} scores in all cells"
    assert [caution for caution in list_cautions(report) if caution.startswith(sentence)]


def test_correlations_by_country_need_three_topics(db: Database) -> None:
    people = {("Ghana", topic): score for topic, score in zip("abc", (-0.5, 0.1, 0.4), strict=True)}
    people |= {("Japan", topic): score for topic, score in zip("ab", (-0.5, 0.1), strict=True)}
    report = import_scores(db, people, {("birch", *cell): -score for cell, score in people.items()})
    r_by_country = {row.name: row.pearson_r.value for row in report.countries}
    assert r_by_country == {"Ghana": pytest.approx(-1), "Japan": None}


def test_r_of_countries_is_averaged_in_each_region(db: Database) -> None:
    people = {
        (country, topic): score
        for country, scores in {"Ghana": (-0.5, 0.1, 0.4), "Kenya": (0.3, -0.2, 0.1), "Japan": (0.5, 0.1, -0.2)}.items()
        for topic, score in zip("abc", scores, strict=True)
    }
    people |= {("Germany", "a"): 0.5, ("Germany", "b"): 0.1}  # too few for a correlation
    signs = {"Ghana": {"birch": 1, "cedar": -1}, "Kenya": {"birch": -1, "cedar": -1}}
    report = import_scores(
        db,
        people,
        {
            (model, country, topic): score * signs.get(country, {}).get(model, 1)
            for (country, topic), score in people.items()
            for model in ("birch", "cedar")
        },
    )
    assert report.over_models is not None
    rows = {row.region: row.summary for row in report.over_models.figures if row.figure == "mean_country_r"}
    regions = {country: region_of(country) for country in ("Ghana", "Kenya", "Japan")}
    assert len(set(regions.values())) == 1, "the three countries are in one region of this grouping"
    summary = rows[regions["Ghana"]]
    # birch: 1, -1 and 1 in the three countries; cedar: -1, -1 and 1
    assert summary.mean.n == 2
    assert [summary.mean.value, summary.highest, summary.lowest] == pytest.approx([0, 1 / 3, -1 / 3])
    assert (summary.highest_model, summary.lowest_model) == ("birch", "cedar")
    assert region_of("Germany") not in rows
