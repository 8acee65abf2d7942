"""Drift of a judge between two runs, and the holdout experiment of an audit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.domain import Outcome, Ruling, Verdict
from auditor.reports.data.panel.judge_tests import cross_validate_peers, measure_judge_drift
from auditor.reports.data.report_source import load_source
from auditor.storage import results
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.support.synthetic_audit import populate


def test_drift_between_two_runs(db: Database) -> None:
    first = populate(db, name="first")
    second = populate(db, name="second")
    flipped = 0
    changed_verdicts: list[Verdict] = []
    for v in results.load_verdicts(db, second.id):
        if v.judge == "birch" and v.ruling is Ruling.INVALID:
            changed_verdicts.append(Verdict(v.judge, v.model, v.cell, v.sample, v.outcome, Ruling.VALID, key=v.key))
            flipped += 1
    save_records(db, second.id, changed_verdicts)
    rows = {row.judge: row for row in measure_judge_drift(db, first.name, db, second.name)}
    assert (rows["alder"].shift.value, rows["alder"].changed.value) == (0.0, 0.0)
    assert rows["birch"].changed.value == pytest.approx(flipped / rows["birch"].valid.n)
    assert rows["birch"].shift.ci_low is not None
    assert rows["birch"].shift.ci_low > 0
    assert rows["birch"].restated.value == 1.0

    traces = results.load_traces(db, second.id)
    reversed_traces = [
        replace(trace, text=trace.text and trace.text[::-1]) for trace in traces if trace.cell == traces[0].cell
    ]  # of the same length
    traces_without_text = [replace(trace, text=None) for trace in traces if trace.cell == traces[-1].cell]
    save_records(db, second.id, reversed_traces + traces_without_text)
    rows_after_change = {row.judge: row for row in measure_judge_drift(db, first.name, db, second.name)}
    judged_cells = {
        verdict.cell
        for verdict in results.load_verdicts(db, second.id)
        if verdict.judge == "birch" and verdict.outcome is Outcome.OK
    }
    assert {traces[0].cell, traces[-1].cell} < judged_cells
    assert rows_after_change["birch"].valid.n < rows["birch"].valid.n
    save_records(db, first.id, traces_without_text)  # unrecorded answers cannot be compared
    assert {r.judge: r.valid.n for r in measure_judge_drift(db, first.name, db, second.name)}[
        "birch"
    ] == rows_after_change["birch"].valid.n


def test_the_holdout_of_an_audit(db: Database) -> None:
    [row] = cross_validate_peers(load_source(db, populate(db, models=6, countries=8, topics=6).name), 50)
    assert (row.method, row.prediction.models) == ("direct", 6)
    assert row.prediction.unseen_cells.n == 6
    assert "6 models" in row.sentence
    [small_audit_row] = cross_validate_peers(load_source(db, populate(db, models=3, name="few").name), 50)
    assert "cells: fewer than 4 models" in small_audit_row.sentence
