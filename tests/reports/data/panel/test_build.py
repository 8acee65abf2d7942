"""The panel section: figures checked against statsmodels and krippendorff, and their sentences."""

from __future__ import annotations

from dataclasses import replace

import krippendorff
import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.inter_rater import fleiss_kappa

from auditor.domain import Outcome, Ruling, Verdict
from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.build import build_report
from auditor.reports.data.panel.build import compute_peer_alignment
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import load_source
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.support.synthetic_audit import populate


def verdict_table(db: Database, audit: Audit) -> list[list[float]]:
    """Usable verdicts as a table (judges, traces): 1.0 for VALID, 0.0 for INVALID, nan without a verdict."""
    verdicts = [verdict for verdict in results.load_verdicts(db, audit.id) if verdict.outcome is Outcome.OK]
    judges = sorted({verdict.judge for verdict in verdicts})
    traces = sorted({(verdict.model, verdict.cell, verdict.sample) for verdict in verdicts})
    vote_by_judge_and_trace = {
        (verdict.judge, verdict.model, verdict.cell, verdict.sample): float(verdict.ruling is Ruling.VALID)
        for verdict in verdicts
    }
    return [[vote_by_judge_and_trace.get((j, *trace), float("nan")) for trace in traces] for j in judges]


def test_kappa_and_alpha_equal_statsmodels_and_krippendorff(population: tuple[Database, Audit]) -> None:
    report = build_report(population[0], population[1].name)
    table = np.array(verdict_table(*population))
    assert report.panel.krippendorff_alpha.value == pytest.approx(
        krippendorff.alpha(reliability_data=table, level_of_measurement="nominal")
    )
    counts = np.stack([(table == 1).sum(axis=0), (table == 0).sum(axis=0)], axis=1)
    complete_counts = counts[counts.sum(axis=1) == 2]
    assert len(complete_counts) == report.panel.fleiss_kappa.n
    assert report.panel.fleiss_kappa.value == pytest.approx(fleiss_kappa(complete_counts))
    assert report.panel.prevalence.value == pytest.approx(complete_counts[:, 0].sum() / complete_counts.sum())


def test_the_same_answer_from_two_judges_is_reported(db: Database) -> None:
    audit = populate(db, countries=5, topics=5, samples=1)
    assert build_report(db, audit.name).panel.repeated == 0
    ok_verdicts = [verdict for verdict in results.load_verdicts(db, audit.id) if verdict.outcome is Outcome.OK]
    first = ok_verdicts[0]
    twin = next(
        verdict
        for verdict in ok_verdicts
        if verdict.judge != first.judge and (verdict.model, verdict.cell) == (first.model, first.cell)
    )
    save_records(db, audit.id, [replace(twin, sample=first.sample, key=first.key)])
    report = build_report(db, audit.name)
    assert report.panel.repeated == 1


def test_the_correlation_of_peers_with_people_always_has_its_n(report: Report) -> None:
    [row] = report.panel.peer_alignment
    assert (row.r.n, row.r.models) == (3, 3)
    assert (row.r.ci_low, row.r.p_value) == (None, None)
    assert "3 models; no 95% CI: a test needs at least 5 models" in " ".join(report.panel.certificate)


def test_the_interval_of_r_over_twenty_models_is_fishers(db: Database) -> None:
    """r = 0.39 over 20 models has the interval [-0.06, 0.71]."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=20)
    noise = rng.normal(size=20)
    noise -= noise.mean() + ((noise - noise.mean()) @ (x - x.mean())) / ((x - x.mean()) @ (x - x.mean())) * (
        x - x.mean()
    )
    z = (x - x.mean()) / np.linalg.norm(x - x.mean())
    y = 0.39 * z + np.sqrt(1 - 0.39**2) * noise / np.linalg.norm(noise)
    base = build_report(db, populate(db, models=3).name)
    peers = [
        base.peer_agreement[0].model_copy(update={"model": str(i), "agreement": _estimate(v)}) for i, v in enumerate(x)
    ]
    rows = [
        base.alignment[0].model_copy(update={"model": str(i), "pearson_r": Tested(float(v), 9, reason="none")})
        for i, v in enumerate(y)
    ]
    [alignment] = compute_peer_alignment(None, peers, rows)
    assert (round(alignment.r.value or 0, 2), alignment.r.n) == (0.39, 20)
    assert (round(alignment.r.ci_low or 0, 2), round(alignment.r.ci_high or 0, 2)) == (-0.06, 0.71)
    assert alignment.r.p_value == pytest.approx(stats.pearsonr(x, y).pvalue, abs=0.02)
    assert alignment.r.generalizes_to == "other models like these"


def test_consistency_is_correlated_with_agreement_with_people_over_models(db: Database) -> None:
    report = build_report(db, populate(db, models=6, samples=3).name)
    cosine, variance = report.consistency_alignment
    assert (cosine.figure, variance.figure, cosine.method) == ("cosine", "variance", "direct")
    alignment = {row.model: row.pearson_r.value for row in report.alignment if row.method == "direct"}
    variances = {row.model: row.variance.value for row in report.self_consistency if row.method == "direct"}
    x, y = (np.array([values[model] for model in sorted(alignment)], dtype=float) for values in (variances, alignment))
    assert variance.r.value == pytest.approx(stats.pearsonr(x, y).statistic)
    assert (variance.r.n, variance.r.ci_low) == (6, None)
    assert variance.r.p_value is not None
    assert build_report(db, populate(db, models=2, name="two").name).consistency_alignment == []


def test_models_of_one_family_are_averaged_in_peer_alignment(db: Database) -> None:
    report = build_report(db, populate(db, models=6).name)
    config = load_source(db, "population").config
    assert config is not None
    pairs = [
        model.model_copy(update={"family": f"family {i // 2}"}) for i, model in enumerate(config.models)
    ]  # three families of two
    families = config.model_copy(update={"models": pairs})
    [row] = compute_peer_alignment(families, report.peer_agreement, report.alignment)
    assert (row.r.n, row.r.models) == (3, 6)
    assert row.r.r_over_models == pytest.approx(report.panel.peer_alignment[0].r.value)


def _estimate(value: float) -> Estimate:
    return Estimate(value=float(value), n=10, ci_low=0.0, ci_high=1.0)


def test_a_panel_without_verdicts_has_an_empty_certificate(db: Database) -> None:
    audit = populate(db, name="silent")
    failed = [
        Verdict(verdict.judge, verdict.model, verdict.cell, verdict.sample, Outcome.TIMEOUT)
        for verdict in results.load_verdicts(db, audit.id)
    ]
    save_records(db, audit.id, failed)
    report = build_report(db, "silent")
    assert report.panel.votes == []
    assert all(row.given == 0 and row.valid.value is None and row.leniency.value is None for row in report.panel.judges)
    assert "supports no conclusion" in report.panel.certificate[0]
    assert "No verdict is available" in " ".join(report.panel.certificate)


def test_signs_that_are_not_recorded_have_another_reason_than_single_samples(report: Report, db: Database) -> None:
    for row in report.self_consistency:
        assert row.variance.value is not None
        for figure in (row.sign_agreement, row.straddling):
            assert (figure.value, figure.reason) == (None, "the signs of the samples are not recorded")
    audit = populate(db, countries=5, topics=5, samples=1)
    for row in build_report(db, audit.name).self_consistency:
        assert row.variance.reason == row.sign_agreement.reason == row.straddling.reason
