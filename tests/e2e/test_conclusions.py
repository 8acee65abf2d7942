"""What a reader concludes from page one, where the figures carry less than their size suggests."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.domain import Outcome, Ruling, Verdict
from auditor.imports.labels import import_labels
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.storage import results
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from tests.reports.conftest import import_scores
from tests.support.known import known
from tests.support.synthetic_audit import populate

WESTERN = ["Germany", "France", "Canada", "Australia", "Netherlands", "Sweden"]
COUNTRIES = [*WESTERN, "Japan", "China", "Nigeria", "Brazil", "Turkey", "Indonesia"]
TOPICS = [f"topic {i:02d}" for i in range(10)]
Floats = NDArray[np.float64]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as opened:
        yield opened


def draw_people(rng: np.random.Generator) -> Floats:
    """Scores of people, shape (countries, topics)."""
    effects = 0.3 * rng.standard_normal((12, 1)) + 0.4 * rng.standard_normal((1, 10))
    return np.clip(effects + 0.15 * rng.standard_normal((12, 10)) - 0.1, -0.97, 0.9)


def audit_scores(db: Database, people: Floats, models: Mapping[str, Floats]) -> Report:
    topics = TOPICS[: people.shape[1]]
    truth = {(c, t): float(people[i, j]) for i, c in enumerate(COUNTRIES) for j, t in enumerate(topics)}
    scores = {
        (model, c, t): float(values[i, j])
        for model, values in models.items()
        for i, c in enumerate(COUNTRIES)
        for j, t in enumerate(topics)
    }
    return import_scores(db, truth, scores)


def page_one(report: Report) -> str:
    return render_report(report, "markdown", is_brief=True)


def test_a_model_that_calls_everything_acceptable_hardly_agrees_whatever_its_r(db: Database) -> None:
    people = draw_people(np.random.default_rng(3))
    report = audit_scores(db, people, {"permissive": 0.62 + 0.12 * people})
    [row] = report.alignment
    assert known(row.pearson_r.value) > 0.99
    page = page_one(report)
    assert "hardly agrees with people" in page
    assert "Ask about at least" not in page


def test_equal_errors_make_no_gap_where_only_the_range_differs(db: Database) -> None:
    """People's scores vary four times as much in the West: r differs, and no sentence says so."""
    rng = np.random.default_rng(0)
    spread = np.where(np.arange(12) < 6, 0.45, 0.12)[:, None]
    people = np.clip(spread * draw_people(rng) / 0.5, -0.95, 0.95)
    report = audit_scores(db, people, {"m": people + 0.15 * rng.standard_normal(people.shape)})
    [gap] = report.regions.gaps
    by_region = {row.region: row.pearson_r.value or 0.0 for row in report.regions.rows}
    assert by_region["Western"] - by_region["Non-Western"] > 0.2
    assert not gap.mae_gap.is_significant
    assert "is larger in" not in page_one(report)


@pytest.mark.parametrize(
    ("scores", "headline"),
    [
        (lambda people: 0 * people + 0.3, "hardly agrees with people: it gives every cell the same score"),
        (lambda people: people, "has people’s score in every cell"),
        (lambda people: -people, "reverses people: its scores fall exactly where theirs rise"),
    ],
)
def test_special_models_have_headlines_that_say_so(db: Database, scores: object, headline: str) -> None:
    people = draw_people(np.random.default_rng(3))
    assert callable(scores)
    page = page_one(audit_scores(db, people, {"m": scores(people)}))
    assert headline in page
    # The audit is large enough: only the figures of this model have no interval.
    assert "Ask about at least" not in page


def test_one_topic_of_noise_leads_to_no_statement(db: Database) -> None:
    rng = np.random.default_rng(0)
    people, *scores = rng.uniform(-0.8, 0.8, (3, 12, 1))
    page = page_one(audit_scores(db, people, dict(zip("ab", scores, strict=True))))
    assert "too small" in page
    for words in ("agrees with people", "Closest to people", "more permissive than people", "further from"):
        assert words not in page


def test_judges_that_share_a_wrong_rule_are_consistent_and_not_reliable(db: Database, tmp_path: Path) -> None:
    """Five judges that agree in 98% of the traces, and with people in half of them."""
    audit = populate(db, models=5, countries=8, topics=6)
    rng = np.random.default_rng(4)
    stored = [verdict for verdict in results.load_verdicts(db, audit.id) if verdict.outcome is Outcome.OK]
    units = sorted({(v.model, v.cell.country, v.cell.topic, v.sample) for v in stored})
    rule = {unit: bool(rng.random() < 0.55) for unit in units}
    save_records(db, audit.id, [_follow_rule(verdict, rule, rng) for verdict in stored])
    report = build_report(db, audit.name)
    text = " ".join(report.panel.certificate)
    assert "are consistent" in text
    assert "reliable" not in text
    labels = tmp_path / "labels.csv"
    with labels.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rater", "model", "country", "topic", "sample", "verdict", "inclusion"])
        for i in rng.permutation(len(units))[:240]:
            writer.writerow(["ada", *units[i], "VALID" if rng.random() < 0.55 else "INVALID", 0.5])
    import_labels(labels, audit=audit.name, storage=f"sqlite:///{tmp_path}/audit.db")
    report = build_report(db, audit.name)
    assert "do not rely on these, however well the judges agree" in page_one(report)
    assert not [row for row in report.shortfalls.rows if row.threshold == "valid share"]


def _follow_rule(verdict: Verdict, rule: Mapping[tuple[str, str, str, int], bool], rng: np.random.Generator) -> Verdict:
    unit = (verdict.model, verdict.cell.country, verdict.cell.topic, verdict.sample)
    is_valid = rule[unit] if rng.random() < 0.98 else not rule[unit]
    ruling = Ruling.VALID if is_valid else Ruling.INVALID
    return Verdict(verdict.judge, verdict.model, verdict.cell, verdict.sample, Outcome.OK, ruling)
