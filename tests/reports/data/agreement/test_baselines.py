"""Ceiling, baselines and within-topic gain, as figures and in the report's sentences."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.reports.data.agreement.alignment import compute_alignment
from auditor.reports.data.agreement.baselines import compute_baselines, compute_gains
from auditor.reports.data.report_source import ReportSource
from auditor.reports.sections.baselines import describe_gain
from auditor.storage.database import Database
from auditor.surveys import load_survey
from tests.reports.conftest import save_scores
from tests.support.known import known

COUNTRIES = ["Germany", "Japan", "Nigeria", "Brazil", "Egypt", "Chile", "France", "Kenya"]
TOPICS = ["a", "b", "c", "d", "e", "f"]


def import_two_models(db: Database, culture: float) -> ReportSource:
    """An audit of two imported models.

    `aware` is 0.9 times the survey's score plus noise; `blind` has one score per topic plus noise. `culture` is the
    half-width of the differences between countries.
    """
    rng = np.random.default_rng(3)
    topic = np.linspace(-0.4, 0.4, len(TOPICS))
    truth = topic + rng.uniform(-culture, culture, (len(COUNTRIES), len(TOPICS)))
    blind = topic + rng.uniform(-0.1, 0.1, truth.shape)
    table = {(c, t): float(truth[i, j]) for i, c in enumerate(COUNTRIES) for j, t in enumerate(TOPICS)}
    scores = {}
    for i, c in enumerate(COUNTRIES):
        for j, t in enumerate(TOPICS):
            scores["aware", c, t] = float(0.9 * truth[i, j] + 0.01 * rng.normal())
            scores["blind", c, t] = float(blind[i, j])
    return save_scores(db, table, scores)


@pytest.mark.parametrize("noise", [0.0, 0.001])
def test_one_answer_per_topic_shows_no_knowledge_of_countries(db: Database, noise: float) -> None:
    survey = load_survey("wvs7-sample")
    rng = np.random.default_rng(5)
    level = {t: float(np.mean([s for c, s in survey.scores.items() if c.topic == t])) for t in survey.topics}
    scores = {("m", *cell): level[cell.topic] + noise * rng.normal() for cell in survey.scores}
    [row] = compute_gains(save_scores(db, {(c.country, c.topic): s for c, s in survey.scores.items()}, scores))
    text = describe_gain(row)
    assert "captures" not in text
    if noise:
        low, high = row.within_topics.ci_low, row.within_topics.ci_high
        assert known(low) <= 0 <= known(high)
    else:
        assert row.within_topics.value is None
        assert "the model gives a topic the same score in every country" in text


def test_a_baseline_sees_only_the_cells_that_the_model_has(db: Database) -> None:
    truth = {(c, t): 0.1 * i - 0.2 * j for i, c in enumerate(COUNTRIES) for j, t in enumerate(TOPICS)}
    scores = {("m", c, t): s for (c, t), s in truth.items() if c != "Japan"}
    baselines = compute_baselines(save_scores(db, truth, scores))
    assert {row.pearson_r.n for row in baselines if row.baseline == "topic mean"} == {len(scores)}


def test_the_difference_from_a_baseline_is_the_models_error_minus_that_of_the_baseline(db: Database) -> None:
    source = import_two_models(db, 0.8)
    baselines = compute_baselines(source)
    errors = {row.model: row.mae.value for row in compute_alignment(source)}
    for row in baselines:
        if row.baseline != "regional mean":  # which has no score for countries without another one in their region
            assert row.mae_difference.value == pytest.approx((errors[row.model] or 0.0) - (row.mae.value or 0.0))
    aware = [row for row in baselines if row.model == "aware"]
    assert all(row.mae_difference.is_significant and (row.mae_difference.ci_high or 0.0) < 0 for row in aware)
    tests = [
        (test.p_value, test.adjusted_p_value)
        for test in (row.mae_difference for row in baselines)
        if test.p_value is not None
    ]
    assert len(tests) == len(baselines)
    assert all(p is not None and adjusted is not None and adjusted >= p for p, adjusted in tests)
