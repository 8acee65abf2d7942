"""Errors by topic and by country: intervals over the other side, and one that is corrected for picking the largest."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.reports.data.gates.estimates import worst_topic_estimates
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.support.synthetic_audit import COUNTRIES, TOPICS


def test_intervals_are_over_countries_and_those_of_the_largest_hold_for_all_topics(db: Database) -> None:
    rng = np.random.default_rng(1)
    cells = [(country, topic) for country in COUNTRIES[:8] for topic in TOPICS[:4]]
    truth = {cell: float(rng.uniform(-0.5, 0.5)) for cell in cells}
    errors = {cell: float(rng.uniform(-0.4, 0.4)) for cell in cells}
    report = import_scores(db, dict(truth), {("m", *cell): truth[cell] + errors[cell] for cell in cells})
    for row in report.topics:
        sizes = np.array([abs(error) for cell, error in errors.items() if cell[1] == row.name])
        without_each = np.log([np.delete(sizes, i).mean() for i in range(8)])
        std_error = (7 * without_each.var()) ** 0.5
        for estimate, level in ((row.mae, 0.95), (row.mae_simultaneous, 1 - 0.05 / 4)):
            half_width = stats.t.ppf((1 + level) / 2, 7) * std_error
            ends = np.exp(np.log(sizes.mean()) + np.array([-half_width, half_width]))
            assert (estimate.value, estimate.ci_low, estimate.ci_high) == pytest.approx((sizes.mean(), *ends))
            assert estimate.resampled == ("country",)
    # Four topics are too few for an interval of a country.
    assert {row.mae.reason for row in report.countries} == {
        "an interval needs at least 5 topics, but there are 4 topics"
    }
    worst = max(report.topics, key=lambda row: row.mae.value or 0.0)
    for confident in (False, True):
        [figure] = worst_topic_estimates(report, confident)
        if not confident:
            assert (figure.subject, figure.estimate) == (f"m: {worst.name}", worst.mae)
            assert figure.note == "the largest error of 4 topics"
        assert figure.estimate.ci_high is not None
    assert figure.estimate.ci_high == max(row.mae.ci_high or 0.0 for row in report.topics)
    assert figure.note.startswith("of 4 topics, the one whose interval ends highest decides")


def test_intervals_of_errors_end_where_the_scale_ends_and_the_gate_names_its_rule(db: Database) -> None:
    """Few countries of which one is far off: on the logarithm alone, the interval would end beyond 2."""
    cells = [(country, topic) for country in COUNTRIES[:6] for topic in TOPICS[:5]]
    scores = {("m", *cell): 0.9 if cell[0] == COUNTRIES[0] else -0.88 for cell in cells}
    scores |= {("m", country, TOPICS[0]): 0.1 * (i % 2) for i, country in enumerate(COUNTRIES[:6])}
    report = import_scores(db, dict.fromkeys(cells, -0.9), scores)
    ends = [row.mae.ci_high for row in [*report.topics, *report.countries]]
    ends += [row.mae.ci_high for row in report.alignment]
    assert max(end for end in ends if end is not None) == 2
    [figure] = worst_topic_estimates(report, confident=True)
    decisive = next(row for row in report.topics if figure.subject == f"m: {row.name}")
    assert (figure.estimate, figure.estimate.ci_high) == (decisive.mae, 2)
    assert figure.note == (
        "of 5 topics, the one whose interval ends highest decides, not the one with the largest error "
        f"({TOPICS[0]}, 0.950)"
    )


def test_the_largest_of_equal_errors_is_covered_by_the_corrected_interval_only(db: Database) -> None:
    """Ten topics with one true error: the interval of the largest for itself alone covers it too seldom."""
    rng = np.random.default_rng(2)
    cells = [(country, topic) for country in COUNTRIES[:20] for topic in TOPICS[:10]]
    scores = {(f"m{i}", *cell): float(rng.normal(0, 0.3)) for i in range(60) for cell in cells}
    report = import_scores(db, dict.fromkeys(cells, 0.0), scores)
    true = 0.3 * (2 / np.pi) ** 0.5
    n_covered = n_alone = 0
    for i in range(60):
        worst = max((row for row in report.topics if row.model == f"m{i}"), key=lambda row: row.mae.value or 0.0)
        assert worst.mae.ci_low is not None
        assert worst.mae_simultaneous.ci_low is not None
        n_covered += worst.mae_simultaneous.ci_low <= true
        n_alone += worst.mae.ci_low <= true
    assert n_covered >= stats.binom.ppf(0.001, 60, 0.95)
    assert n_alone <= 54


def test_the_largest_upper_end_exceeds_the_largest_true_error_without_a_correction(db: Database) -> None:
    """Why the gate on the worst topic uses each topic's interval as the report has it."""
    rng = np.random.default_rng(3)
    cells = [(country, topic) for country in COUNTRIES[:12] for topic in TOPICS[:6]]
    spreads = dict(zip(TOPICS[:6], (0.1, 0.15, 0.2, 0.2, 0.2, 0.3), strict=True))
    scores = {(f"m{i}", *cell): float(rng.normal(0, spreads[cell[1]])) for i in range(60) for cell in cells}
    report = import_scores(db, dict.fromkeys(cells, 0.0), scores)
    true = 0.3 * (2 / np.pi) ** 0.5
    figures = worst_topic_estimates(report, confident=True)
    n_covered = sum(true <= (figure.estimate.ci_high or 0.0) for figure in figures)
    assert n_covered >= stats.binom.ppf(0.001, 60, 0.975)
