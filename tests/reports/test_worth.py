"""Ceiling, baselines and gain: what agreement is worth, in figures and in words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.reports import sentences
from auditor.reports.html import render_html
from auditor.reports.markdown import render_markdown
from auditor.reports.measures import Estimate, GainRow
from auditor.reports.model import Report
from auditor.storage.database import Database
from tests.reports.conftest import import_scores

COUNTRIES = ["Germany", "Japan", "Nigeria", "Brazil", "Egypt", "Chile", "France", "Kenya"]
TOPICS = ["a", "b", "c", "d", "e", "f"]


def made(db: Database, culture: float) -> tuple[Report, np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """`aware` knows topics and countries; `blind` says the same of a topic everywhere, plus noise."""
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
    return import_scores(db, table, scores), truth


def test_the_gain_is_r_less_that_of_the_topic_mean(db: Database) -> None:
    report, truth = made(db, 0.8)
    others = (truth.sum(axis=0) - truth) / (len(COUNTRIES) - 1)
    expected = stats.pearsonr(others.ravel(), truth.ravel()).statistic
    row = next(b for b in report.baselines if (b.model, b.baseline) == ("aware", "topic mean"))
    assert row.pearson_r.value == pytest.approx(expected)
    assert row.mae.value == pytest.approx(np.abs(others - truth).mean())
    gains = {g.model: g for g in report.gain or []}
    r = {a.model: a.pearson_r for a in report.alignment}
    for model, gain in gains.items():
        assert gain.baseline_r == pytest.approx(expected)
        assert gain.gain.value == pytest.approx((r[model] or 0) - expected)
        assert gain.gain.ci_low is not None
    said = {model: text for _, model, text in sentences.knowledge(report)}
    assert "beats the topic mean" in said["aware"]
    assert "shows no knowledge of cultures" in said["blind"]


def test_page_and_text_say_it(db: Database) -> None:
    report, _ = made(db, 0.5)
    for text in (render_html(report), render_markdown(report)):
        assert "shows no knowledge of cultures" in text
        assert "How high r can be is not known: scores were imported" in text
        assert "regional mean" in text


def test_a_baseline_sees_only_the_cells_that_the_model_has(db: Database) -> None:
    truth = {(c, t): 0.1 * i - 0.2 * j for i, c in enumerate(COUNTRIES) for j, t in enumerate(TOPICS)}
    scores = {("m", c, t): s for (c, t), s in truth.items() if c != "Japan"}
    report = import_scores(db, truth, scores)
    assert {b.pearson_r.n for b in report.baselines if b.baseline == "topic mean"} == {len(scores)}


def test_one_country_alone_has_a_named_reason(db: Database) -> None:
    report = import_scores(db, {("Japan", t): 0.1 for t in TOPICS}, {("m", "Japan", t): 0.2 for t in TOPICS})
    [row] = report.gain or []
    assert row.gain.value is None
    assert "cannot be compared with the topic mean: no cell" in sentences.knowledge(report)[0][2]
    assert render_html(report)


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.2, 0.1, 0.3, "beats the topic mean"),
        (0.2, -0.1, 0.3, "is not shown to beat the topic mean"),
        (-0.2, -0.3, -0.1, "is worse than the topic mean"),
        (0.2, None, None, "whether beyond chance cannot be told"),
        (-0.2, None, None, "is behind the topic mean"),
        (-0.2, None, None, "whether beyond chance cannot be told"),
    ],
)
def test_words_go_by_the_interval(
    db: Database, value: float, low: float | None, high: float | None, words: str
) -> None:
    estimate = Estimate(value=value, n=9, ci_low=low, ci_high=high, reason=None if low else "too few")
    row = GainRow(model="m", method="direct", baseline="topic mean", gain=estimate, pearson_r=0.5, baseline_r=0.3)
    report = import_scores(db, {("Japan", "a"): 0.1}, {("m", "Japan", "a"): 0.2}).model_copy(update={"gain": [row]})
    assert words in sentences.knowledge(report)[0][2]
