"""Four topics are too few for a two-way interval: sentences, exports and gates report none."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from auditor.config import CheckSection
from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.gates.check import check_report
from auditor.reports.data.gates.estimates import GateStatus
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Row
from auditor.reports.output import render_report
from auditor.reports.report_files import render_paper_files
from auditor.reports.sections.agreement import classify_alignment, describe_alignment
from auditor.reports.sections.run_summary import build_run_summary
from auditor.storage.database import Database
from tests.reports.conftest import import_scores


@pytest.fixture
def few_topics_report(db: Database) -> Report:
    """The report of 40 countries by 4 topics in which r is high only because of the topics' levels."""
    topics, rng = {"a": 0.4, "b": -0.3, "c": 0.2, "d": -0.5}, np.random.default_rng(1)
    truth = {(f"c{i}", t): level + 0.05 * rng.normal() for i in range(40) for t, level in topics.items()}
    scores = {("m", *cell): topics[cell[1]] * 0.9 + 0.05 * rng.normal() for cell in truth}
    return import_scores(db, truth, scores)


def test_the_model_is_not_judged_without_an_interval(few_topics_report: Report) -> None:
    [row] = few_topics_report.alignment
    assert (row.pearson_r.ci_low, row.pearson_r.ci_high, row.pearson_r.p_value) == (None, None, None)
    assert (row.fisher_ci_low or 0) > 0.8, "Fisher's interval has a key of its own"
    assert classify_alignment(row) == "neutral"
    assert "no 95% CI: an interval needs at least 5 countries and 5 topics" in describe_alignment(row)
    for text in (render_report(few_topics_report, "html"), render_report(few_topics_report, "markdown")):
        assert "cannot be judged" in text
        assert "agrees with people" not in text


def test_exports_leave_interval_columns_empty(few_topics_report: Report) -> None:
    [row] = csv.DictReader(io.StringIO(dict(render_paper_files(few_topics_report))["alignment.csv"]))
    assert {row[name] for name in ("r_low", "r_high", "p", "mae_low", "mae_high")} == {""}
    assert float(row["r"]) == few_topics_report.alignment[0].pearson_r.value
    [summary] = build_run_summary(few_topics_report)
    [cells] = summary.rows
    assert not isinstance(cells, Row)
    _, _, mae, _, r, *_ = cells
    for cell, figure in ((mae, few_topics_report.alignment[0].mae), (r, few_topics_report.alignment[0].pearson_r)):
        assert isinstance(cell, Estimate)
        assert (cell.value, cell.ci_low, cell.ci_high) == (figure.value, None, None)


def test_confident_gates_are_undecided_and_others_compare_the_value(few_topics_report: Report) -> None:
    gates_by_confident = {}
    for confident in (False, True):
        thresholds = CheckSection.model_validate({"min_pearson": 0.3, "max_mae": 0.9, "confident": confident})
        gates_by_confident[confident] = {gate.name: gate for gate in check_report(few_topics_report, thresholds).gates}
    assert [gates_by_confident[False][n].verdict for n in ("min_pearson", "max_mae")] == [GateStatus.PASSED] * 2
    assert [gates_by_confident[True][n].verdict for n in ("min_pearson", "max_mae")] == [GateStatus.UNDECIDED] * 2
    assert "an interval needs at least 5 countries and 5 topics" in gates_by_confident[True]["min_pearson"].message
