"""The report’s JSON schema in docs is current, and reports are valid under it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.reports.data.report_schema import Report, render_json_schema
from auditor.reports.output import render_report
from auditor.storage.database import Database
from tests.reports.hostile_report import hostile_report

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = Path(__file__).parents[3] / "docs" / "report.schema.json"


def test_the_schema_in_docs_is_current() -> None:
    how_to_fix = "run: make schema"
    assert SCHEMA.read_text(encoding="utf-8") == render_json_schema(), how_to_fix


def test_reports_follow_the_schema(db: Database, report: Report) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    for valid_report in (report, hostile_report(db)):
        jsonschema.validate(json.loads(render_report(valid_report, "json")), schema)


def test_the_schema_rejects_an_unknown_key(report: Report) -> None:
    schema = json.loads(render_json_schema())
    report_with_stray_key = json.loads(render_report(report, "json")) | {"stray": 1}
    assert next(jsonschema.Draft202012Validator(schema).iter_errors(report_with_stray_key), None) is not None
