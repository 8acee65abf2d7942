from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from auditor.domain import Outcome, Ruling, Verdict
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.metrics.intervals.unit_means import ShareTable, shares_over_units
from auditor.reports.data.panel.build import compute_peer_agreement
from auditor.reports.data.report_source import load_source
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.support.synthetic_audit import populate


@pytest.fixture
def audit(db: Database) -> Audit:
    return populate(db, countries=6, topics=5)


def count_by_cell(verdicts: list[Verdict], is_hit: Mapping[Verdict, bool]) -> ShareTable:
    """Hits, verdicts and traces of one model's cells, counted from the rows."""
    cells = sorted({verdict.cell for verdict in verdicts})
    by_cell = [[verdict for verdict in verdicts if verdict.cell == cell] for cell in cells]
    return ShareTable(
        [sum(is_hit.get(verdict, False) for verdict in group) for group in by_cell],
        [sum(verdict in is_hit for verdict in group) for group in by_cell],
        {"country": [cell.country for cell in cells], "topic": [cell.topic for cell in cells]},
        [len({verdict.sample for verdict in group}) for group in by_cell],
    )


def expected_shares(verdicts: list[Verdict], is_hit: Mapping[Verdict, bool], models: list[str]) -> list[ShareEstimate]:
    return shares_over_units(
        [count_by_cell([verdict for verdict in verdicts if verdict.model == model], is_hit) for model in models]
    )


def test_figures_equal_those_of_the_rows_without_verdicts_on_disputed_traces(db: Database, audit: Audit) -> None:
    verdicts = results.load_verdicts(db, audit.id)
    rng = np.random.default_rng(0)
    changed = [
        replace(
            verdict,
            always=bool(rng.random() < 0.7),
            aspects={name: bool(rng.random() < 0.6) for name in verdict.aspects if rng.random() < 0.8},
        )
        for verdict in verdicts
    ]
    save_records(db, audit.id, changed)
    counted = [verdict for verdict in changed if verdict.outcome is Outcome.OK and verdict.always]
    rows = compute_peer_agreement(load_source(db, audit.name))
    models = [row.model for row in rows]
    assert len(models) == 3
    assert [row.given for row in rows] == [sum(verdict.model == model for verdict in counted) for model in models]
    is_valid = {verdict: verdict.ruling is Ruling.VALID for verdict in counted}
    assert [row.agreement for row in rows] == expected_shares(counted, is_valid, models)
    for aspect in REVIEW_ASPECTS:
        is_met = {verdict: verdict.aspects[aspect.name] for verdict in counted if aspect.name in verdict.aspects}
        assert [getattr(row, aspect.name) for row in rows] == expected_shares(counted, is_met, models)


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
