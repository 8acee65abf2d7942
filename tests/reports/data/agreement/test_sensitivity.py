"""Ranges of figures without one cultural zone or one family of topics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auditor.domain import CellScore
from auditor.reports.data.agreement.sensitivity import build_sensitivity_rows
from auditor.reports.data.report_source import ReportSource, load_source
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.conftest import survey_of

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
FAMILY_BY_TOPIC = {topic: family for family, topics in FAMILIES.items() for topic in topics} | {"gambling": "gambling"}


def load_scored_audit(db: Database, method: str = "direct", *, has_families: bool = True) -> ReportSource:
    """An audit of one model whose error differs by country and topic."""
    rng = np.random.default_rng(0)
    truth = {(country, topic): float(rng.uniform(-0.6, 0.6)) for country in ZONES for topic in TOPICS}
    survey = replace(survey_of(truth), topic_families=FAMILIES if has_families else {})
    audit = audits.save_audit(db, name="a", config=None, config_hash=None, survey=survey, environment={})
    scores = [
        CellScore("m", cell, method, score + float(rng.normal(0, 0.2)), n_ok=1, n_planned=1)
        for cell, score in survey.scores.items()
    ]
    save_records(db, audit.id, scores)
    return load_source(db, "a")


def test_ranges_are_the_figures_without_each_group(db: Database) -> None:
    source = load_scored_audit(db)
    rows = build_sensitivity_rows(source)
    assert [(row.figure, row.without, row.groups, row.fewest_left) for row in rows] == [
        (figure, noun, n, left)
        for figure in ("pearson_r", "mae", "bias")
        for noun, n, left in (("cultural zone", 5, 4), ("topic family", 3, 3))
    ]
    scores, truth = source.score_matrix[0], source.survey_scores
    for row in rows:
        labels = np.array(
            [
                ZONES[cell.country] if row.without == "cultural zone" else FAMILY_BY_TOPIC[cell.topic]
                for cell in source.cells
            ]
        )
        expected = {}
        for label in np.unique(labels).tolist():
            x, y = scores[labels != label], truth[labels != label]
            expected[label] = {
                "pearson_r": float(np.corrcoef(x, y)[0, 1]),
                "mae": float(np.abs(x - y).mean()),
                "bias": float((x - y).mean()),
            }[row.figure]
        for end, pick in ((row.lowest, min), (row.highest, max)):
            assert end.value == pytest.approx(pick(expected.values()), abs=1e-12)
            assert expected[end.left_out] == pytest.approx(end.value, abs=1e-12)


def test_without_families_single_topics_are_left_out(db: Database) -> None:
    rows = build_sensitivity_rows(load_scored_audit(db, has_families=False))
    assert {(row.without, row.groups, row.fewest_left) for row in rows} == {("cultural zone", 5, 4), ("topic", 5, 4)}


def test_rescaled_scores_have_a_range_of_r_only(db: Database) -> None:
    assert {row.figure for row in build_sensitivity_rows(load_scored_audit(db, "logprob"))} == {"pearson_r"}
