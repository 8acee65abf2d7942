"""The panel’s figures equal those of statsmodels, krippendorff and of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auditor.domain import Outcome, Ruling
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.reports.data.agreement.alignment import compute_alignment
from auditor.reports.data.panel.build import compute_peer_agreement, compute_peer_alignment, compute_self_consistency
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import load_source
from auditor.reports.data.requests import build_sampling_report
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.data.panel.panel_reports import panel_of
from tests.support.known import known
from tests.support.report_changes import change
from tests.support.synthetic_audit import populate


def test_the_same_answer_from_two_judges_is_reported(db: Database) -> None:
    audit = populate(db, countries=5, topics=5, samples=1)
    assert panel_of(db, audit.name).repeated == 0
    ok_verdicts = [verdict for verdict in results.load_verdicts(db, audit.id) if verdict.outcome is Outcome.OK]
    first = ok_verdicts[0]
    twin = next(
        verdict
        for verdict in ok_verdicts
        if verdict.judge != first.judge and (verdict.model, verdict.cell) == (first.model, first.cell)
    )
    save_records(db, audit.id, [replace(twin, sample=first.sample, key=first.key)])
    assert panel_of(db, audit.name).repeated == 1


def test_the_correlation_of_peers_with_people_always_has_its_n(report: Report) -> None:
    [row] = report.panel.peer_alignment
    assert (row.r.n, row.r.models) == (3, 3)
    assert (row.r.ci_low, row.r.p_value) == (None, None)
    assert "at least 5 models" in known(row.r.reason)


def test_models_of_one_family_are_averaged_in_peer_alignment(db: Database) -> None:
    source = load_source(db, populate(db, models=6, samples=1).name)
    config, peers, alignment = source.config, compute_peer_agreement(source), compute_alignment(source)
    assert config is not None
    pairs = [change(model, family=f"family {i // 2}") for i, model in enumerate(config.models)]  # three families of two
    families = change(config, models=pairs)
    [over_models] = compute_peer_alignment(config, peers, alignment)
    [row] = compute_peer_alignment(families, peers, alignment)
    assert (row.r.n, row.r.models) == (3, 6)
    assert row.r.r_over_models == pytest.approx(over_models.r.value)


def test_signs_that_are_not_recorded_have_another_reason_than_single_samples(report: Report, db: Database) -> None:
    for row in report.self_consistency:
        assert row.variance.value is not None
        for figure in (row.sign_agreement, row.straddling):
            assert (figure.value, figure.reason) == (None, "the signs of the samples are not recorded")
    source = load_source(db, populate(db, countries=5, topics=5, samples=1).name)
    for row in compute_self_consistency(source, build_sampling_report(source.config, source.call_counts)):
        assert row.variance.reason == row.sign_agreement.reason == row.straddling.reason


@pytest.fixture
def audit(db: Database) -> Audit:
    return populate(db, countries=6, topics=5)


def test_verdicts_on_disputed_traces_and_failed_ones_are_not_counted(db: Database, audit: Audit) -> None:
    rng = np.random.default_rng(0)
    changed = [replace(verdict, always=bool(rng.random() < 0.7)) for verdict in results.load_verdicts(db, audit.id)]
    save_records(db, audit.id, changed)
    counted = [verdict for verdict in changed if verdict.outcome is Outcome.OK and verdict.always]
    for row in compute_peer_agreement(load_source(db, audit.name)):
        verdicts = [verdict for verdict in counted if verdict.model == row.model]
        assert row.given == row.agreement.n == len(verdicts)
        assert row.agreement.value == pytest.approx(np.mean([v.ruling is Ruling.VALID for v in verdicts]))
        for aspect in REVIEW_ASPECTS:
            share: ShareEstimate = getattr(row, aspect.name)
            assert share.value == pytest.approx(np.mean([verdict.aspects[aspect.name] for verdict in verdicts]))


def test_an_aspect_that_no_verdict_rates_has_no_share(db: Database, audit: Audit) -> None:
    rated, unrated = REVIEW_ASPECTS[:2]
    verdicts = results.load_verdicts(db, audit.id)
    without = [
        replace(verdict, aspects={name: value for name, value in verdict.aspects.items() if name != unrated.name})
        for verdict in verdicts
    ]
    save_records(db, audit.id, without)
    for row in compute_peer_agreement(load_source(db, audit.name)):
        share: ShareEstimate = getattr(row, unrated.name)
        assert (share.value, share.n, share.reason) == (None, 0, "no verdict rates this aspect")
        assert getattr(row, rated.name).n == row.given


def test_traces_on_which_every_judge_failed_have_no_majority(db: Database, audit: Audit) -> None:
    before = panel_of(db, audit.name)
    verdicts = results.load_verdicts(db, audit.id)
    cell = next(verdict.cell for verdict in verdicts if verdict.ruling is not None)
    n_traces = len({(v.model, v.sample) for v in verdicts if v.cell == cell and v.ruling is not None})
    failed = [replace(v, outcome=Outcome.TIMEOUT, ruling=None, aspects={}) for v in verdicts if v.cell == cell]
    save_records(db, audit.id, failed)
    after = panel_of(db, audit.name)
    assert after.unjudged == before.unjudged + n_traces
    totals = [row.valid + row.invalid + row.open + panel.unjudged for panel in (before, after) for row in panel.votes]
    assert len(set(totals)) == 1
    [sentence] = [text for text in after.certificate if "A strict majority of the assigned judges" in text]
    assert f" of {totals[0]} traces VALID and " in sentence
