"""Ranges of figures without one cultural zone or one family of topics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auditor.domain import CellScore
from auditor.reports.data.agreement.sensitivity import build_sensitivity_rows, build_variance_rows
from auditor.reports.data.report_source import ReportSource
from auditor.storage.database import Database
from tests.reports.conftest import save_rows, survey_of

ZONES = {
    "Germany": "Protestant Europe",
    "Sweden": "Protestant Europe",
    "Japan": "Confucian",
    "Mexico": "Latin America",
    "Mauritius": "Mauritius",  # not on the map of zones
    "Atlantis": "Atlantis",
}
TOPICS = ["divorce", "abortion", "theft", "bribes", "gambling"]
FAMILIES = {"personal": ("divorce", "abortion"), "dishonest": ("theft", "bribes", "unlisted")}


def load_scored_audit(db: Database, method: str = "direct", *, has_families: bool = True) -> ReportSource:
    """An audit of one model whose error differs by country and topic."""
    rng = np.random.default_rng(0)
    truth = {(country, topic): float(rng.uniform(-0.6, 0.6)) for country in ZONES for topic in TOPICS}
    survey = replace(survey_of(truth), topic_families=FAMILIES if has_families else {})
    scores = [
        CellScore("m", cell, method, score + float(rng.normal(0, 0.2)), n_ok=1, n_planned=1)
        for cell, score in survey.scores.items()
    ]
    return save_rows(db, survey, scores)


@pytest.mark.parametrize(
    ("method", "has_families", "figures", "without"),
    [
        ("direct", True, {"pearson_r", "mae", "bias"}, ("topic family", 3, 3)),
        ("direct", False, {"pearson_r", "mae", "bias"}, ("topic", 5, 4)),
        ("logprob", False, {"pearson_r"}, ("topic", 5, 4)),  # rescaled scores have no errors
    ],
)
def test_zones_and_families_or_single_topics_are_left_out(
    db: Database, method: str, has_families: bool, figures: set[str], without: tuple[str, int, int]
) -> None:
    rows = build_sensitivity_rows(load_scored_audit(db, method, has_families=has_families))
    assert {row.figure for row in rows} == figures
    assert {(row.without, row.groups, row.fewest_left) for row in rows} == {("cultural zone", 5, 4), without}


@pytest.mark.parametrize("noun", ["cultural zone", "topic family"])
def test_ranges_are_the_figures_without_each_group(db: Database, noun: str) -> None:
    source = load_scored_audit(db)
    errors = source.score_matrix[0] - source.survey_scores
    family_by_topic = {topic: family for family, topics in FAMILIES.items() for topic in topics}
    labels = np.array(
        [
            ZONES[cell.country] if noun == "cultural zone" else family_by_topic.get(cell.topic, cell.topic)
            for cell in source.cells
        ]
    )
    maes = {label: float(np.abs(errors[labels != label]).mean()) for label in np.unique(labels).tolist()}
    [row] = [row for row in build_sensitivity_rows(source) if (row.figure, row.without) == ("mae", noun)]
    assert (row.lowest.value, row.highest.value) == pytest.approx((min(maes.values()), max(maes.values())))
    assert maes[row.lowest.left_out] == pytest.approx(row.lowest.value)


def test_rounding_errors_have_no_sources(db: Database) -> None:
    """The scores of a model that repeats people's differ from theirs by rounding only, such as in the mean of three."""
    source = load_scored_audit(db)
    exact = [replace(score, score=source.survey.scores[score.cell] + 1e-16) for score in source.scores]
    rows = {row.figure: row for row in build_variance_rows(replace(source, scores=exact), None)}
    for row in rows.values():
        assert (row.shares, row.std_error, row.reason) == (None, None, "the figure does not vary between cells")
