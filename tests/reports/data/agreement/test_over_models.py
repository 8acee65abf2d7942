"""Figures over models: tiers by cut-off, distributions of errors, and models with equal log-probability scores."""

from __future__ import annotations

import pytest

from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_number
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.over_models import build_over_models_section
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.sections.node_text import text_of
from tests.support.known import known

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


@pytest.mark.parametrize("method", ["direct", "logprob"])
def test_models_with_equal_scores_are_named_and_counted_once_in_means(db: Database, method: str) -> None:
    report = import_models(db, method)
    assert [(group.method, group.models) for group in report.equal_series] == [(method, ["birch", "cedar"])]
    [row] = [row for row in known(report.over_models).figures if row.figure == "pearson_r" and row.region is None]
    r = {alignment.model: alignment.pearson_r.value or 0.0 for alignment in report.alignment}
    assert row.summary.mean.n == 2
    assert row.summary.mean.value == pytest.approx((r["birch"] + r["dogwood"]) / 2)
    scores = "direct" if method == "direct" else "log-probability"
    sentence = f"birch and cedar have the same {scores} scores in all cells"
    assert [caution for caution in list_cautions(report) if caution.startswith(sentence)]
    section = known(build_over_models_section(report))
    assert sentence in text_of(section)
    mean, low, high = (format_number(r) for r in (row.summary.mean.value, r["dogwood"], r["birch"]))
    assert f"Mean r over 2 models by {method} scores: {mean}, from {low} to {high}." in text_of(section)


def test_intervals_over_models_are_within_the_range_of_r(db: Database) -> None:
    scores: dict[tuple[str, str, str], float | None] = {}
    for model, noise in {"alder": 0.9, "birch": 0.01, "cedar": 0.02, "dogwood": 0.03, "elm": 0.04}.items():
        scores |= scores_of(model, noise)
    report = import_scores(db, PEOPLE, scores)
    means = [row.summary.mean for row in known(report.over_models).figures if "_r" in row.figure]
    ends = [(mean.ci_low, mean.ci_high) for mean in means if mean.ci_low is not None and mean.ci_high is not None]
    assert ends
    assert all(-1 <= low <= high <= 1 for low, high in ends)
