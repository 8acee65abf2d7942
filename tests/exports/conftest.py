"""Fixture with the report that the tests of experiment trackers export."""

from __future__ import annotations

import pytest

from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from tests.support.inspect_logs import SyntheticDatabase


@pytest.fixture(scope="module")
def report(made_audit: SyntheticDatabase) -> Report:
    return build_report(made_audit.db, "population")
