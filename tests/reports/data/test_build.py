"""The figures of a report equal those computed from the rows, and missing values never become numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest

from auditor.domain import Cell, CellScore, Outcome
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.errors import StorageError
from auditor.metrics.intervals.estimate import ShareEstimate, proportion
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.storage import audits, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from tests.reports.conftest import import_scores, survey_of
from tests.support.synthetic_audit import populate

KEYS = [
    "audit", "coverage", "alignment", "sensitivity", "gain", "regions", "topics", "countries", "self_consistency",
    "panel", "peer_agreement", "conflicts", "cost", "served",
    "failures", "requests", "sampling", "environment",
    "baselines", "guesses", "donor_countries", "population", "structure", "ceiling", "nonresponse",
    "refusals", "repairs", "methods", "task", "tiers", "variance",
    "languages", "savings",
    "consistency_alignment", "shortfalls", "influence", "equal_series",
    "cultural_findings", "examples", "judge_quality", "pair_labels",
    "over_models", "designs", "attributes", "probes", "distribution", "semantic", "logic",
]  # fmt: skip


def _scores_and_truth(db: Database, audit: Audit, model: str) -> tuple[list[float], list[float]]:
    truth = audits.load_audit_survey(db, audit).scores
    model_scores = [
        score
        for score in results.load_scores(db, audit.id)
        if score.model == model and score.score is not None and score.cell in truth
    ]
    return [score.score for score in model_scores if score.score is not None], [
        truth[score.cell] for score in model_scores
    ]


def test_report_keys_are_unchanged(report: Report) -> None:
    assert list(report.model_dump()) == KEYS


def test_alignment_equals_scipy(population: tuple[Database, Audit], report: Report) -> None:
    for row in report.alignment:
        x, y = map(np.array, _scores_and_truth(*population, row.model))
        r = stats.pearsonr(x, y)
        assert row.n == len(x) > 30
        assert row.pearson_r.value == pytest.approx(r.statistic, abs=1e-9)
        fisher = (row.fisher_ci_low, row.fisher_ci_high)
        assert fisher == pytest.approx(tuple(r.confidence_interval()), abs=1e-9)
        assert (row.pearson_r.ci_high or 0) - (row.pearson_r.ci_low or 0) > (row.fisher_ci_high or 0) - (
            row.fisher_ci_low or 0
        )
        assert row.pearson_r.p_value is not None
        assert row.pearson_r.p_value > r.pvalue
        assert row.spearman_rho.value == pytest.approx(stats.spearmanr(x.round(9), y.round(9)).statistic, abs=1e-9)
        assert row.mae.value == pytest.approx(np.abs(x - y).mean(), abs=1e-12)
        assert row.rmse.value == pytest.approx(np.sqrt(((x - y) ** 2).mean()), abs=1e-12)
        assert row.bias.value == pytest.approx((x - y).mean(), abs=1e-12)
    assert [row.model for row in report.alignment] == ["alder", "birch", "cedar"]


def test_dropped_cells_are_counted(population: tuple[Database, Audit], report: Report) -> None:
    survey = audits.load_audit_survey(*population)
    for row in report.alignment:
        assert row.n + row.n_dropped == len(survey.cells)
        assert row.n_without_survey == len(survey.cells) - len(survey.scores) > 0


def test_topics_and_countries_equal_numpy(population: tuple[Database, Audit], report: Report) -> None:
    db, audit = population
    truth = audits.load_audit_survey(db, audit).scores
    scores = {
        (score.model, score.cell): score.score for score in results.load_scores(db, audit.id) if score.score is not None
    }
    assert len(report.topics) == 6 * 3
    assert len(report.countries) == 8 * 3
    for rows, part in ((report.topics, 1), (report.countries, 0)):
        for row in rows:
            errors = [
                scores[m, c] - truth[c] for m, c in scores if m == row.model and c[part] == row.name and c in truth
            ]
            assert row.n == len(errors)
            assert row.mae.value == pytest.approx(np.abs(errors).mean())
            assert row.bias.value == pytest.approx(np.mean(errors))


def test_regions_take_each_country_once(population: tuple[Database, Audit], report: Report) -> None:
    by_name = {r.region: r.countries for r in report.regions.rows}
    assert by_name == {"Western": 4, "Non-Western": 4}
    for row, all_countries in zip(report.regions.rows[::2], report.alignment, strict=True):
        other_region = next(r for r in report.regions.rows if r.model == row.model and r.region != row.region)
        assert row.n + other_region.n == all_countries.n


def test_self_consistency_is_the_mean_over_cells(population: tuple[Database, Audit], report: Report) -> None:
    for row in report.self_consistency:
        model_scores = [
            score for score in results.load_scores(*_database_and_id(population)) if score.model == row.model
        ]
        values = [score.self_consistency for score in model_scores if score.self_consistency is not None]
        assert row.cosine.value == pytest.approx(np.mean(values))
        assert row.cosine.n == len(values) <= len(model_scores)
        variances = [score.variance for score in model_scores if score.variance is not None]
        assert row.variance.value == pytest.approx(np.mean(variances))


def test_peer_agreement_leaves_failed_verdicts_out(population: tuple[Database, Audit], report: Report) -> None:
    verdicts = results.load_verdicts(*_database_and_id(population))
    for row in report.peer_agreement:
        model_verdicts = [verdict for verdict in verdicts if verdict.model == row.model]
        ok_verdicts = [verdict for verdict in model_verdicts if verdict.outcome is Outcome.OK]
        assert row.given == row.agreement.n == len(ok_verdicts) < len(model_verdicts)
        assert row.valid == sum(verdict.ruling == "VALID" for verdict in ok_verdicts)
        assert row.agreement.value == pytest.approx(row.valid / row.given)
        for aspect in REVIEW_ASPECTS:
            share: ShareEstimate = getattr(row, aspect.name)
            assert share.value == pytest.approx(np.mean([verdict.aspects[aspect.name] for verdict in ok_verdicts]))


def test_kappa_is_over_traces_with_two_verdicts(population: tuple[Database, Audit], report: Report) -> None:
    rulings: dict[tuple[str, Cell, int], list[str]] = {}
    for v in results.load_verdicts(*_database_and_id(population)):
        if v.ruling is not None:
            rulings.setdefault((v.model, v.cell, v.sample), []).append(v.ruling.value)
    ruling_pairs = [pair for pair in rulings.values() if len(pair) == 2]
    # Fleiss' kappa of two verdicts a trace: agreement on each is 1 or 0, chance is the squared shares.
    agreed = np.mean([one == other for one, other in ruling_pairs])
    valid = np.mean([ruling == "VALID" for pair in ruling_pairs for ruling in pair])
    chance = valid**2 + (1 - valid) ** 2
    kappa = report.panel.fleiss_kappa
    assert kappa.value == pytest.approx((agreed - chance) / (1 - chance))
    assert (kappa.n, report.panel.verdicts) == (len(ruling_pairs), 2 * len(ruling_pairs))
    assert report.panel.single == sum(len(pair) == 1 for pair in rulings.values()) > 0


def _database_and_id(population: tuple[Database, Audit]) -> tuple[Database, int]:
    return population[0], population[1].id


def test_equal_answers_give_equal_reports(tmp_path: Path, report: Report) -> None:
    with open_database(f"sqlite:///{tmp_path}/again.db") as db:
        audit = populate(db)
        second_report = build_report(db, audit.name)
    times = {"created_at", "finished_at"}
    assert second_report.audit.model_dump(exclude=times) == report.audit.model_dump(exclude=times)
    # Timestamps differ between runs, and so does everything derived from them.
    timed: Any = {"audit": True, "served": True, "panel": {"judges": {"__all__": {"order"}}}}
    assert second_report.model_dump_json(exclude=timed) == report.model_dump_json(exclude=timed)
    moments = {"first_at", "last_at"}
    assert [r.model_dump(exclude=moments) for r in second_report.served] == [
        r.model_dump(exclude=moments) for r in report.served
    ]


def test_the_same_database_gives_the_same_bytes(population: tuple[Database, Audit], report: Report) -> None:
    assert build_report(population[0], population[1].name).model_dump_json() == report.model_dump_json()


def test_no_such_audit(db: Database) -> None:
    with pytest.raises(StorageError, match="no audit 'nothing'"):
        build_report(db, "nothing")


def test_audit_that_has_not_begun(db: Database) -> None:
    survey = survey_of({("Egypt", "divorce"): 0.1})
    audits.save_audit(db, name="empty", config=None, config_hash=None, survey=survey, environment={})
    report = build_report(db, "empty")
    assert not report.audit.complete
    assert report.alignment == []
    assert report.coverage.total == []
    assert report.panel.fleiss_kappa.value is None
    assert report.cost.total.usd is None


def test_one_model(db: Database) -> None:
    populate(db, models=1, name="alone")
    report = build_report(db, "alone")
    assert len(report.alignment) == 1
    assert report.peer_agreement == []
    assert report.conflicts.total == 0


def test_two_cells_have_no_r_but_a_reason(db: Database) -> None:
    report = import_scores(
        db,
        {("Egypt", "divorce"): 0.1, ("Japan", "divorce"): 0.3},
        {("m", "Egypt", "divorce"): 0.2, ("m", "Japan", "divorce"): 0.1},
    )
    row = report.alignment[0]
    assert (row.n, row.pearson_r.value, row.pearson_r.p_value, row.pearson_r.ci_low, row.spearman_rho.value) == (
        2,
        None,
        None,
        None,
        None,
    )
    assert row.pearson_r.reason
    assert row.mae.value == pytest.approx(0.15)


def test_a_constant_model_has_no_r_but_a_reason(db: Database) -> None:
    truth = {("Egypt", str(i)): i / 10 for i in range(6)}
    report = import_scores(db, truth, {("m", *cell): 0.5 for cell in truth})
    assert report.alignment[0].pearson_r.value is None
    assert report.alignment[0].pearson_r.reason == "the model gives every cell the same score"


def test_imported_scores_need_no_config_and_no_traces(db: Database) -> None:
    rng = np.random.default_rng(3)
    truth = {(c, t): float(rng.uniform(-1, 1)) for c in ("Egypt", "Japan", "Atlantis") for t in "abcdefg"}
    scores = {("m", *cell): float(np.clip(value + rng.normal(0, 0.3), -1, 1)) for cell, value in truth.items()}
    report = import_scores(db, truth, scores)
    r = stats.pearsonr(list(scores.values()), list(truth.values()))
    assert report.alignment[0].pearson_r.value == pytest.approx(r.statistic, abs=1e-9)
    assert report.regions.ungrouped == ["Atlantis"]
    assert [(row.planned, row.ok) for row in report.coverage.total] == [(21, 21)]
    assert report.audit.models[0].model is None
    assert report.self_consistency[0].cosine.value is None


def test_missing_scores_never_become_numbers(db: Database) -> None:
    truth: dict[tuple[str, str], float | None] = {("Egypt", str(i)): i / 10 for i in range(8)}
    truth["Egypt", "7"] = None
    scores: dict[tuple[str, str, str], float | None] = {("m", *cell): 0.9 for cell in truth}
    scores["m", "Egypt", "3"] = None
    report = import_scores(db, truth, scores)
    row = report.alignment[0]
    assert (row.n, row.n_dropped, row.n_without_survey) == (6, 2, 1)
    assert row.mae.value == pytest.approx(np.mean([0.9 - i / 10 for i in (0, 1, 2, 4, 5, 6)]))
    cells = {c.topic: c for c in report.audit.cells}
    assert cells["3"].scores == {"direct": {"m": None}}
    assert cells["7"].survey is None
    assert (report.coverage.total[0].ok, report.coverage.total[0].missing) == (7, 1)


def test_a_cell_missing_from_the_survey(db: Database) -> None:
    report = import_scores(db, {("Egypt", "a"): 0.0}, {("m", "Egypt", "a"): 0.1, ("m", "Narnia", "b"): 1.0})
    assert [(cell.country, cell.survey) for cell in report.audit.cells] == [("Egypt", 0.0), ("Narnia", None)]
    assert report.alignment[0].n == 1


def test_methods_are_reported_separately(db: Database) -> None:
    truth = {("Egypt", str(i)): i / 10 for i in range(5)}
    import_scores(db, truth, {("m", *cell): value for cell, value in truth.items()})
    audit = audits.get_audit(db, "imported")
    logprob_scores = [
        CellScore("m", Cell(*cell), "logprob", -value, n_ok=1, n_planned=1) for cell, value in truth.items()
    ]
    save_records(db, audit.id, logprob_scores)
    rows = build_report(db, "imported").alignment
    assert [(row.method, row.pearson_r.value) for row in rows] == [("direct", 1.0), ("logprob", -1.0)]


def test_nothing_is_nan(report: Report) -> None:
    json.dumps(report.model_dump(), allow_nan=False)


EAST = ("Egypt", "Japan", "Peru", "Kenya", "India", "China")
WEST = ("Germany", "France", "Spain", "Norway", "Canada", "Austria")


def _scores_of_two_regions(
    worse_by: float,
) -> tuple[dict[tuple[str, str], float | None], dict[tuple[str, str, str], float | None]]:
    """Survey and model scores; the model's error is 0.1 in the West and `worse_by` more in the East."""
    rng = np.random.default_rng(5)
    truth = {(c, t): float(rng.uniform(-0.4, 0.4)) for c in (*EAST, *WEST) for t in "abcdefgh"}
    error_by_cell = {cell: 0.1 + (worse_by if cell[0] in EAST else 0.0) + float(rng.normal(0, 0.02)) for cell in truth}
    return dict(truth), {("m", *cell): value + error_by_cell[cell] for cell, value in truth.items()}


def test_the_gap_is_the_difference_of_mean_errors(db: Database) -> None:
    truth, scores = _scores_of_two_regions(worse_by=0.2)
    gap = import_scores(db, truth, scores).regions.gaps[0]
    errors = {cell: abs((scores["m", *cell] or 0.0) - (truth[cell] or 0.0)) for cell in truth}
    west, east = (np.mean([e for c, e in errors.items() if c[0] in names]) for names in (WEST, EAST))
    assert (gap.first, gap.second, gap.mae_gap.n) == ("Western", "Non-Western", len(truth))
    assert gap.mae_gap.value == pytest.approx(east - west)
    assert (gap.mae_gap.ci_low or 0.0) > 0.15
    assert (gap.mae_gap.ci_high or 1.0) < 0.25


def test_the_interval_of_no_gap_contains_zero(db: Database) -> None:
    gap = import_scores(db, *_scores_of_two_regions(worse_by=0.0)).regions.gaps[0].mae_gap
    assert (gap.ci_low or 1.0) < 0 < (gap.ci_high or -1.0)


def test_a_gap_over_few_countries_has_no_interval(report: Report) -> None:
    for gap in report.regions.gaps:
        assert gap.mae_gap.value is not None
        assert gap.mae_gap.ci_low is None
        assert "countries" in (gap.mae_gap.reason or "")


def test_intervals_over_countries_and_topics_contain_the_figures(report: Report) -> None:
    for row in report.alignment:
        assert (row.countries, row.topics, row.pearson_r.n) == (8, 6, row.n)
        for estimate in (row.pearson_r, row.mae, row.rmse, row.bias):
            assert estimate.ci_low is not None
            assert estimate.ci_high is not None
            assert estimate.ci_low < (estimate.value or 0.0) < estimate.ci_high


def test_a_gap_whose_bounds_include_0_is_shown_and_marked(db: Database) -> None:
    truth = {(c, str(i)): i / 20 for c in ("Germany", "Egypt") for i in range(20)}
    scores: dict[tuple[str, str, str], float | None] = {("m", *cell): 0.3 for cell in truth}
    for i in (1, 5):
        scores["m", "Egypt", str(i)] = None
    gap = import_scores(db, truth, scores).regions.gaps[0]
    assert gap.worst_case is not None
    bounds = gap.worst_case.mae
    assert gap.mae_gap.value is not None
    assert gap.mae_gap.value == bounds.value
    assert None not in (bounds.bound_low, bounds.bound_high)
    assert (bounds.bound_low or 0.0) < 0 < (bounds.bound_high or 0.0)
    assert (gap.mae_gap.reason or "").endswith("sign not known because of lost samples")


def test_the_gap_has_bounds_if_missing_scores_cannot_change_its_sign(db: Database) -> None:
    truth = {(c, str(i)): -0.9 for c in ("Germany", "Egypt") for i in range(20)}
    scores: dict[tuple[str, str, str], float | None] = {("m", c, t): 0.9 if c == "Egypt" else -0.85 for c, t in truth}
    for i in (1, 5):
        scores["m", "Egypt", str(i)] = None
    gap = import_scores(db, truth, scores).regions.gaps[0]
    assert gap.mae_gap.value == pytest.approx(1.75)
    assert "sign" not in (gap.mae_gap.reason or "")
    assert gap.worst_case is not None
    assert gap.worst_case.mae.bound_low == pytest.approx(0.9 * 1.8 - 0.05)
    assert gap.worst_case.mae.bound_high == pytest.approx(0.9 * 1.8 + 0.19 - 0.05)
    assert (gap.first_lost_samples.lost, gap.second_lost_samples.lost) == (0, 2)


def test_intervals_of_peers_and_consistency_are_over_countries_and_topics(report: Report) -> None:
    for peer in report.peer_agreement:
        agreement, binomial = peer.agreement, proportion(peer.valid, peer.given)
        assert agreement.value == pytest.approx(peer.valid / peer.given)
        assert agreement.n == peer.given
        assert agreement.reason is None
        assert None not in (agreement.ci_low, agreement.ci_high, binomial.ci_low, binomial.ci_high)
        assert (agreement.ci_low, agreement.ci_high) != (binomial.ci_low, binomial.ci_high)
    for row in report.self_consistency:
        assert all(e.ci_low is not None and e.reason is None for e in (row.cosine, row.variance))
    assert report.refusals is not None
    refused = report.refusals.total
    assert refused.reason == (
        "they occur in fewer than 5 countries and fewer than 5 topics, too few for an interval for other countries and "
        "topics"
    )
    exact = binomtest(6, refused.n).proportion_ci(0.95, "exact")
    assert (refused.cells_ci_low, refused.cells_ci_high) == pytest.approx((exact.low, exact.high))
    assert {row.share.resampled for row in report.refusals.topics} <= {("country",), ()}
    assert {row.share.resampled for row in report.refusals.countries} <= {("topic",), ()}
