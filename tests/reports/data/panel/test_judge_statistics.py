"""Differences between judges: their evidence, their units, and the experiment that pads traces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from auditor.domain import AlteredTraceVerdict, Outcome, Ruling
from auditor.metrics.judges.accuracy import JudgeDifference
from auditor.reports.data.panel.judge_statistics import NO_PADDING_REASON, NO_TRUTH_REASON
from auditor.reports.data.panel.schema import JudgeRow
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix
from auditor.reports.data.report_schema import Report
from auditor.storage import results
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.data.panel.panel_reports import panel_of
from tests.support.synthetic_audit import populate

FIELDS = [name for name, field in JudgeRow.model_fields.items() if field.annotation is JudgeDifference]


def test_each_difference_says_its_evidence_and_what_was_resampled(report: Report) -> None:
    for row in report.panel.judges:
        assert (row.leniency.evidence, row.leniency.resampled) == ("panel", ("country", "topic"))
        assert row.leniency.generalizes_to == "other countries and topics like these"
        assert {row.verbosity.evidence, row.own_family.evidence, row.order.evidence} == {"association"}
        assert row.padding.reason == NO_PADDING_REASON
        assert (row.verbosity_against_truth.value, row.verbosity_against_truth.reason) == (None, NO_TRUTH_REASON)


def test_fewer_than_five_countries_give_no_interval(db: Database) -> None:
    for row in panel_of(db, populate(db, countries=4).name).judges:
        for difference in (row.leniency, row.verbosity):
            assert (difference.ci_low, difference.p_value) == (None, None)
            assert "5 countries" in (difference.reason or "")


def test_padding_is_compared_with_the_same_traces(db: Database) -> None:
    audit = populate(db, samples=1)
    verdicts = [verdict for verdict in results.load_verdicts(db, audit.id) if verdict.outcome is Outcome.OK]
    judge = verdicts[0].judge
    padded = [
        AlteredTraceVerdict(
            "padded", verdict.judge, verdict.model, verdict.cell, verdict.sample, Outcome.OK, Ruling.VALID, verdict.key
        )
        for verdict in verdicts
        if verdict.judge == judge
    ]
    unusable = replace(padded[0], outcome=Outcome.TIMEOUT, ruling=None)
    stranger = replace(padded[1], judge="stranger")
    save_records(db, audit.id, [unusable, stranger, *padded[1:]])
    panel = panel_of(db, audit.name)
    row = next(row for row in panel.judges if row.judge == judge)
    as_written = [float(verdict.ruling is Ruling.VALID) for verdict in verdicts if verdict.judge == judge][1:]
    assert row.padding.evidence == "experiment"
    assert row.padding.n == len(as_written)
    assert row.padding.value == pytest.approx(1 - np.mean(as_written))
    assert panel.faults == []


def test_a_panel_of_two_says_why_it_has_no_alpha_without_a_judge(db: Database) -> None:
    panel = panel_of(db, populate(db, models=2, countries=3, topics=2, samples=1).name)
    reasons = {estimate.reason for row in panel.judges for estimate in (row.alpha_without, row.alpha_change)}
    assert reasons == {"without this judge there is only one other"}


def test_verdicts_without_times_have_no_order(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imported verdicts have none, however many judges there are."""
    monkeypatch.setattr(
        VerdictMatrix, "recorded_at", property(lambda matrix: np.full_like(matrix.unconditional_verdicts, np.nan))
    )
    rows = panel_of(db, populate(db, samples=1).name).judges
    assert {(row.order.value, row.order.reason) for row in rows} == {(None, "the order of its verdicts is not known")}


def test_a_judge_without_verdicts_has_no_unknown_order(db: Database) -> None:
    audit = populate(db, samples=1)
    verdicts = results.load_verdicts(db, audit.id)
    judge = verdicts[0].judge
    only_disputed = [replace(verdict, always=False) for verdict in verdicts if verdict.judge == judge]
    save_records(db, audit.id, only_disputed)
    [row] = [row for row in panel_of(db, audit.name).judges if row.judge == judge]
    assert row.order.value is None
    assert "order" not in (row.order.reason or "")
