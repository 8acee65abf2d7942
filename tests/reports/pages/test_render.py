"""Output formats of the report."""

from __future__ import annotations

import pytest

from auditor.errors import UsageError
from auditor.reports.data.report_schema import Report
from auditor.reports.pages.render import render_report


@pytest.mark.parametrize("form", ["html", "json", "markdown"])
def test_equal_reports_give_equal_texts(report: Report, form: str) -> None:
    assert render_report(report, form) == render_report(report, form)


def test_json_is_the_report(report: Report) -> None:
    assert Report.model_validate_json(render_report(report, "json")) == report


def test_unknown_form(report: Report) -> None:
    with pytest.raises(UsageError, match="'pdf' is no report format"):
        render_report(report, "pdf")
