"""Log-probability scores are ordinal: the report gives their r, but no error that depends on distances."""

from __future__ import annotations

import re

import numpy as np
import pytest

from auditor.config import CheckSection
from auditor.domain import Cell, CellScore
from auditor.reports.data.build import build_report
from auditor.reports.data.gates.check import check_report
from auditor.reports.data.gates.estimates import CheckResult, GateStatus
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.reports.report_files import render_junit, render_paper_files
from auditor.reports.sections.agreement import describe_preference
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.conftest import survey_of

COUNTRIES = ("Germany", "France", "Sweden", "Norway", "Spain", "Egypt", "Nigeria", "Kenya", "India", "Japan")
STRETCHED_REASON = "log-probability scores are rescaled"


def build_stretched_report(db: Database, methods: tuple[str, ...]) -> Report:
    rng = np.random.default_rng(4)
    truth = {(country, t): float(rng.uniform(-0.5, 0.5)) for country in COUNTRIES for t in "abcdef"}
    survey = survey_of(truth)
    audit = audits.save_audit(
        db, name="both", config=None, config_hash=None, survey=survey, environment={"auditor": "0"}
    )
    rows = [
        CellScore(model, Cell(*cell), method, float(np.clip(2 * people + 0.2 * rng.normal(), -1, 1)), 1, 1)
        for method in methods
        for model in ("m", "n")
        for cell, people in truth.items()
    ]
    save_records(db, audit.id, rows)
    audits.set_stage(db, audit.id, audits.FINISHED)
    return build_report(db, "both")


def check_gates(report: Report) -> CheckResult:
    return check_report(
        report, CheckSection.model_validate({"max_mae": 2, "max_topic_mae": 2, "max_region_gap": 2, "min_pearson": 0})
    )


@pytest.fixture
def two_method_report(db: Database) -> Report:
    return build_stretched_report(db, ("direct", "logprob"))


def test_r_is_reported_and_every_error_is_missing_with_a_reason(two_method_report: Report) -> None:
    rows = {(row.method, row.model): row for row in two_method_report.alignment}
    direct_row, logprob_row = rows["direct", "m"], rows["logprob", "m"]
    assert (logprob_row.pearson_r.value or 0) > 0.5
    assert logprob_row.pearson_r.ci_low is not None
    errors = [logprob_row.bias, logprob_row.mae, logprob_row.rmse]
    errors += [p.mae for p in [*two_method_report.topics, *two_method_report.countries] if p.method == "logprob"]
    errors += [row.mae for row in two_method_report.regions.rows if row.method == "logprob"]
    errors += [g.mae_gap for g in two_method_report.regions.gaps if g.method == "logprob"]
    assert len(errors) > 20
    assert all(error.value is None and STRETCHED_REASON in (error.reason or "") for error in errors)
    assert direct_row.mae.value is not None
    assert all(p.mae.value is not None for p in two_method_report.topics if p.method == "direct")


def test_tiers_by_error_leave_out_stretched_scores(two_method_report: Report) -> None:
    parts = [p for p in two_method_report.tiers if p.method == "logprob"]
    assert [(p.by, bool(p.rows)) for p in parts] == [("r", True), ("MAE", False)]
    assert STRETCHED_REASON in describe_preference(parts[1])


def test_pages_report_no_errors_of_stretched_scores(two_method_report: Report) -> None:
    page, text = render_report(two_method_report, "html"), render_report(two_method_report, "markdown")
    assert "m (direct): score minus people’s score" in page
    assert "m (logprob): score minus people’s score" not in page
    assert re.search(
        r"n \(logprob\).*m \(logprob\).*: each has no mean absolute error, and orders countries and topics", text
    )
    topics = next(
        line for line in dict(render_paper_files(two_method_report))["topics.csv"].splitlines() if ",logprob," in line
    )
    assert re.fullmatch(r"a,m,logprob,10,,,,,,,0\.\d+,0\.\d+,0\.\d+", topics), (
        "an r with its interval, but no error or bias"
    )


def test_error_gates_are_skipped_for_stretched_scores(two_method_report: Report) -> None:
    check = check_gates(two_method_report)
    assert check.passed
    assert check.exit_code == 0
    skipped = [gate for gate in check.gates if gate.verdict is GateStatus.SKIPPED]
    assert {(g.name, g.subject) for g in skipped} == {
        (name, f"{model} (logprob)") for name in ("max_mae", "max_topic_mae", "max_region_gap") for model in "mn"
    }
    assert all(STRETCHED_REASON in g.message for g in skipped)
    assert f'skipped="{len(skipped)}"' in render_junit(check)


def test_gates_are_undecided_if_all_scores_are_stretched(db: Database) -> None:
    check = check_gates(build_stretched_report(db, ("logprob",)))
    assert check.exit_code == 4
    undecided = {gate.name for gate in check.gates if gate.verdict is GateStatus.UNDECIDED}
    assert undecided == {"max_mae", "max_topic_mae", "max_region_gap"}
    assert not [gate for gate in check.gates if gate.verdict is GateStatus.SKIPPED]


def test_a_report_of_stretched_scores_only_can_be_rendered(db: Database) -> None:
    report = build_stretched_report(db, ("logprob",))
    assert 'id="scatter"' in render_report(report, "html")
    assert 'id="where"' not in render_report(report, "html")
    assert render_report(report, "markdown")
