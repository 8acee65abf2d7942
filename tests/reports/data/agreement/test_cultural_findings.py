"""Planted differences by country and topic are found with intervals that hold together; noise is not."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import SHARED_LEVEL
from auditor.reports.data.agreement.cultural_findings import (
    CulturalFinding,
    CulturalFindingsReport,
    build_cultural_findings,
    compute_country_errors,
    find_shortfalls,
)
from auditor.reports.data.gates.estimates import worst_topic_estimates
from auditor.reports.data.report_source import ReportSource
from auditor.storage.database import Database
from tests.reports.conftest import import_scores, save_scores
from tests.support.known import known
from tests.support.report_changes import change
from tests.support.synthetic_audit import COUNTRIES, TOPICS

PLACES = [f"country {i}" for i in range(8)]
SUBJECTS = [f"topic {i}" for i in range(8)]


def audit_scores(
    db: Database, seed: int, shifts: dict[str, float], noise: float = 0.03, name: str = "imported"
) -> ReportSource:
    """An audit of one model whose scores are people's plus noise, shifted in these countries and on these topics."""
    rng = np.random.default_rng(seed)
    truth = {(c, t): float(rng.uniform(-0.4, 0.4)) for c in PLACES for t in SUBJECTS}
    scores = {
        ("m", c, t): float(v + rng.normal(0, noise) + shifts.get(c, 0.0) + shifts.get(t, 0.0))
        for (c, t), v in truth.items()
    }
    return save_scores(db, truth, scores, name=name)


def findings_of(source: ReportSource) -> CulturalFindingsReport:
    findings = known(build_cultural_findings(source, compute_country_errors(source)))
    return findings


def by_kind(report: CulturalFindingsReport) -> dict[str, CulturalFinding]:
    rows = report.rows
    assert len({(row.model, row.kind) for row in rows}) == len(rows)
    return {row.kind: row for row in rows}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("kind", "place", "shift"), [("country", "country 3", -0.4), ("topic", "topic 5", 0.4)])
def test_a_planted_difference_is_the_only_finding_of_its_kind(
    db: Database, seed: int, kind: str, place: str, shift: float
) -> None:
    report = findings_of(audit_scores(db, seed, {place: shift}))
    findings = by_kind(report)
    row = findings[kind]
    assert (row.name, row.n_same_sign, row.n_places, row.n_places_same_sign) == (place, 8, 8, 1)
    assert row.bias is not None
    assert known(row.bias.ci_low) <= shift <= known(row.bias.ci_high)
    assert known(row.bias.ci_low) * known(row.bias.ci_high) > 0
    assert (report.compared, report.compared_distances) == (len(PLACES) + len(SUBJECTS), len(PLACES))
    margins = [row.margin for row in report.rows]
    assert margins == sorted(margins, reverse=True)
    if kind == "country":
        distance = findings["distance"]
        assert (distance.name, set(findings)) == (place, {"country", "distance"})
        assert known(distance.mae_ratio).is_significant_at(SHARED_LEVEL)
        assert (known(distance.mae_ratio).ci_low or 0.0) > 1


@pytest.mark.parametrize("seed", range(3))
def test_a_difference_in_every_country_is_one_finding_about_all(db: Database, seed: int) -> None:
    findings = by_kind(findings_of(audit_scores(db, seed, dict.fromkeys(PLACES, 0.3))))
    assert set(findings) == {"country"}
    country = findings["country"]
    assert (country.n_places, country.n_places_same_sign, country.holds_everywhere) == (8, 8, True)


def test_a_difference_in_some_countries_has_their_number(db: Database) -> None:
    source = audit_scores(db, 0, {"country 1": 0.4, "country 2": 0.4, "country 3": -0.35})
    country = by_kind(findings_of(source))["country"]
    assert (country.n_places, country.n_places_same_sign, country.holds_everywhere) == (8, 2, False)


def test_noise_is_rarely_a_finding(db: Database) -> None:
    """Families of 5% and 1%: by chance, one of these five audits has a finding."""
    n_found = 0
    for seed in range(5):
        n_found += bool(findings_of(audit_scores(db, seed, {}, noise=0.2, name=f"noise-{seed}")).rows)
    assert n_found <= 1


@pytest.mark.parametrize("n", [5, 8])
def test_errors_of_few_cells_that_are_alike_by_chance_are_no_finding(db: Database, n: int) -> None:
    """Bounded or skewed errors of a few cells are often nearly equal, and their own interval is far too narrow then."""
    rng = np.random.default_rng(n)
    errors = rng.uniform(-0.25, 0.25, (n, n))
    errors -= errors.mean(axis=0)  # on average, no country and no topic differs
    errors -= errors.mean(axis=1, keepdims=True)
    errors[0] = 0.08 + 0.002 * np.arange(n)
    cells = [(country, topic) for country in PLACES[:n] for topic in SUBJECTS[:n]]
    scores = {("m", *cell): float(error) for cell, error in zip(cells, errors.ravel(), strict=True)}
    assert findings_of(save_scores(db, dict.fromkeys(cells, 0.0), scores)).rows == []


@pytest.mark.parametrize(("n", "low"), [(5, 0.1), (8, 0.1), (5, 0.48)])
def test_a_topic_with_few_errors_that_are_alike_by_chance_is_above_no_threshold(
    db: Database, n: int, low: float
) -> None:
    """Absolute errors of 0.5 that now and then are 0.1 have a mean of 0.4, and few of them are often alike."""
    errors = np.full((n, n), 0.5)
    errors[np.arange(1, n), np.arange(n - 1)] = errors[1:, n - 1] = low
    errors[0] += 0.002 * np.arange(n)
    cells = [(country, topic) for topic in SUBJECTS[:n] for country in PLACES[:n]]
    scores = {("m", *cell): float(error) for cell, error in zip(cells, errors.ravel(), strict=True)}
    named = [row.topic for row in find_shortfalls(save_scores(db, dict.fromkeys(cells, 0.0), scores)).rows]
    assert named == ([] if low < 0.4 else SUBJECTS[:n])


def test_a_distance_is_a_finding_only_at_the_level_of_its_family(db: Database) -> None:
    source = audit_scores(db, 0, {"country 3": -0.4})
    countries = compute_country_errors(source)
    for adjusted_p_value, is_named in ((0.03, False), (0.004, True)):
        rows = [change(row, mae_ratio__adjusted_p_value=adjusted_p_value) for row in countries]
        findings = known(build_cultural_findings(source, rows))
        assert ("distance" in {row.kind for row in findings.rows}) is is_named


def test_a_small_audit_has_a_reason_and_no_findings(db: Database) -> None:
    truth = {(c, t): 0.1 * i for i, c in enumerate("AB") for t in "xy"}
    findings = findings_of(save_scores(db, truth, {("m", *cell): 0.9 for cell in truth}))
    assert findings.rows == []
    assert findings.reason == "an interval needs at least 5 topics, but there are 2 topics"


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
