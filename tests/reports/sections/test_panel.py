"""The words on kappa."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.panel import describe_kappa


@pytest.mark.parametrize(
    ("kappa", "words"),
    [
        (Estimate(0.26, 50, 0.1, 0.4), "Fleiss’ kappa = 0.26, 95% CI 0.10 to 0.40, 50 traces, with "),
        (Estimate(0.26, 50, reason="too few traces"),
         "Fleiss’ kappa = 0.26, 50 traces, no 95% CI: too few traces, with "),
        (Estimate(None, 0, reason="one judge"), "is not available: one judge."),
    ],
)  # fmt: skip
def test_kappa_has_its_interval_or_the_reason_why_there_is_none(report: Report, kappa: Estimate, words: str) -> None:
    assert words in describe_kappa(report.panel.model_copy(update={"fleiss_kappa": kappa}))
