"""Conflicts between two methods of one model, within and beyond the sampling noise."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from auditor.domain import Cell, CellScore, Conflict, ConflictKind, ConflictState
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.storage import audits, results
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.conftest import survey_of
from tests.support.synthetic_audit import populate


def report_of_two_methods(db: Database, direct: Sequence[float], logprob: Sequence[float]) -> Report:
    """The report of an audit in which `alder` has scores by two methods, one per topic of one country."""
    config = populate(db, models=2, name="config").config
    cells = [Cell("Japan", f"t{i}") for i in range(len(direct))]
    audit = audits.save_audit(
        db,
        name="methods",
        config=config,
        config_hash="x",
        survey=survey_of({(c.country, c.topic): 0.1 * i for i, c in enumerate(cells)}),
        environment={},
    )
    scores = [
        CellScore("alder", c, m, s)
        for m, xs in (("direct", direct), ("logprob", logprob))
        for c, s in zip(cells, xs, strict=True)
    ]
    save_records(db, audit.id, [*scores, *(CellScore("birch", cell, "direct", 0.9) for cell in cells)])
    return build_report(db, "methods")


def test_conflicts_between_two_methods_of_a_model_are_counted(db: Database) -> None:
    report = report_of_two_methods(db, [0.5, 0.2, -0.4, 0.9], [-0.5, 0.1, -0.9, 0.9])
    row = next(r for r in report.conflicts.between_methods if r.model == "alder")
    assert (row.conflicts.value, row.conflicts.n, row.opposite) == (0.5, 4, 1)
    assert row.largest == [("Japan", "t0", 0.5, -0.5), ("Japan", "t2", -0.4, -0.9)]
    text = render_report(report, "markdown")
    assert re.search(
        r"^\| alder \| direct \| logprob \| 50% \(7% to 93% for these cells; n 4; .*\) \| 1 \|$", text, re.MULTILINE
    )
    assert "third quartile of this audit’s differences is" in text


def test_conflicts_within_sampling_noise_are_reported(db: Database) -> None:
    audit = populate(db)
    rows = results.load_conflicts(db, audit.id)
    marked = [
        Conflict(
            c.cell, c.left, c.right, c.score_left, c.score_right, c.kind, c.state, c.seats, within_noise=i % 2 == 0
        )
        for i, c in enumerate(rows)
    ]
    results.replace_conflicts(db, audit.id, marked)
    report = build_report(db, audit.name)
    assert report.conflicts.within_noise.value == pytest.approx(0.5, abs=0.05)
    majority = sum(c.state is ConflictState.MAJORITY for c in marked if c.kind is not ConflictKind("logic"))
    assert report.conflicts.settled.value == pytest.approx(majority / len(marked))
    assert "differ by no more than that noise" in render_report(report, "markdown")
