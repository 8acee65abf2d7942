"""The fixtures of reports, which tests of the probes' figures and sections share."""

from __future__ import annotations

from tests.reports.conftest import db, population, report

__all__ = ["db", "population", "report"]
