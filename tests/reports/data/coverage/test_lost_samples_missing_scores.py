"""Missing figures have the recorded cause as their reason, not a later symptom such as too few pairs."""

from __future__ import annotations

import pytest

from auditor.domain import Cell, CellScore, LogprobMeasure
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.conftest import survey_of

CELLS = [(c, t) for c in ("Germany", "Japan", "Nigeria", "Brazil", "Egypt") for t in "vwxyz"]
TRUTH = {cell: (i % 7 - 3) / 4 for i, cell in enumerate(CELLS)}
RAW: dict[str, list[float | None]] = {
    "flat": [0.3] * 25,
    "once": [0.3] + [None] * 24,
    "half": [None] * 25,
    "mute": [None] * 25,
}
EXPECTED_REASONS = {
    "flat": "differ equally on every cell",
    "once": "only one cell has all its comparisons",
    "half": "no cell has all its comparisons",
    "mute": "log-probabilities cannot be measured",
}


@pytest.fixture
def report(db: Database) -> Report:
    audit = audits.save_audit(db, name="x", config=None, config_hash=None, survey=survey_of(TRUTH), environment={})
    rows = [CellScore("level", Cell(*cell), "direct", 0.5, n_ok=1, n_planned=1) for cell in CELLS]
    rows += [CellScore(m, Cell(*cell), "direct", TRUTH[cell], n_ok=1, n_planned=1) for m in RAW for cell in CELLS]
    for model, values in RAW.items():
        measure = None if model == "mute" else LogprobMeasure.CHOICE
        rows += [
            CellScore(model, Cell(*cell), "logprob", None, n_ok=0, n_planned=10, raw=value, measure=measure)
            for cell, value in zip(CELLS, values, strict=True)
        ]
    save_records(db, audit.id, rows)
    return build_report(db, "x")


def test_scores_that_could_not_be_scaled_have_the_recorded_reason_in_every_section(report: Report) -> None:
    for row in report.alignment:
        if row.method == "logprob":
            assert EXPECTED_REASONS[row.model] in str(row.pearson_r.reason)
    for place in (*report.topics, *report.countries):
        if place.method == "logprob":
            assert EXPECTED_REASONS[place.model] in str(place.mae.reason)
    for region in report.regions.rows:
        if region.method == "logprob":
            assert EXPECTED_REASONS[region.model] in str(region.pearson_r.reason)
    for both in report.methods:
        assert EXPECTED_REASONS[both.model] in str(both.difference.reason)
    assert "fewer than 3 pairs" not in render_report(report, "markdown") + render_report(report, "html")


def test_a_model_with_constant_scores_has_a_reason_in_alignment_and_in_tiers(report: Report) -> None:
    [level] = [row for row in report.alignment if row.model == "level"]
    assert level.pearson_r.reason == "the model gives every cell the same score"
    by_r = next(part for part in report.tiers if part.by == "r" and part.method == "direct")
    assert by_r.reason == "level has no r on the cells that all have: it gives every cell the same score"
