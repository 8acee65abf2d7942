"""Forms of the report, and its schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.errors import UsageError
from auditor.reports.audit_status import load_audit_status
from auditor.reports.json_schema import render_json_schema
from auditor.reports.pages.render import render_report
from auditor.reports.pages.run_summary import summary_columns, summary_rows
from auditor.reports.report_schema import Report
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.hostile_report import hostile_report

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = Path(__file__).parents[3] / "docs" / "report.schema.json"


@pytest.mark.parametrize("form", ["html", "json", "markdown"])
def test_equal_reports_give_equal_texts(report: Report, form: str) -> None:
    assert render_report(report, form) == render_report(report, form)


def test_json_is_the_report(report: Report) -> None:
    assert Report.model_validate_json(render_report(report, "json")) == report


def test_unknown_form(report: Report) -> None:
    with pytest.raises(UsageError, match="'pdf' is no report format"):
        render_report(report, "pdf")


def test_the_schema_in_docs_is_current() -> None:
    mend = "run: python -m auditor.reports.json_schema > docs/report.schema.json"
    assert SCHEMA.read_text(encoding="utf-8") == render_json_schema(), mend


def test_reports_follow_the_schema(db: Database, report: Report) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    for found in (report, hostile_report(db)):
        jsonschema.validate(json.loads(render_report(found, "json")), schema)


def test_the_schema_refuses_a_stray_key(report: Report) -> None:
    schema = json.loads(render_json_schema())
    data = json.loads(render_report(report, "json")) | {"stray": 1}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


def test_summary_has_a_row_for_each_model(report: Report) -> None:
    rows = summary_rows(report)
    assert [row[0] for row in rows] == ["alder", "birch", "cedar"]
    assert all(len(row) == len(summary_columns()) for row in rows)


def test_summary_leaves_out_what_is_not_known(db: Database) -> None:
    row = dict(
        zip(
            summary_columns(),
            summary_rows(import_scores(db, {("Egypt", "a"): 0.1}, {("m", "Egypt", "a"): 0.2}))[0],
            strict=True,
        )
    )
    assert row["MAE"] == "0.10"
    assert row["cells"] == "1"
    assert [row[k] for k in ("r", "95% CI", "p", "self-cons.", "peers")] == [None] * 5


def test_status_counts_what_is_there(population: tuple[Database, Audit], report: Report) -> None:
    found = load_audit_status(*population)
    total = {row.stage: row for row in report.coverage.total}
    assert (found["traces_ok"], found["verdicts_ok"]) == (total["direct"].ok, total["review"].ok)
    assert found["open"] == report.conflicts.states["open"] + report.conflicts.states["disputed"]
    assert found["cost_usd"] == report.cost.total.usd
    assert found["unpriced"] == report.cost.total.unpriced > 0
    json.dumps(found)


def test_status_of_an_audit_without_calls(db: Database) -> None:
    import_scores(db, {("Egypt", "a"): 0.1}, {("m", "Egypt", "a"): 0.2})
    assert load_audit_status(db, audits.get_audit(db, "imported"))["cost_usd"] is None
