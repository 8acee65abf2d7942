"""Phrases that the sections share: an interval is compared with a reference."""

from __future__ import annotations

import pytest

from auditor.metrics.estimate import Estimate
from auditor.reports.document import Status
from auditor.reports.sections.phrasing import compare_interval

ESTIMATE = Estimate(0.2, 9, 0.1, 0.3)


@pytest.mark.parametrize(
    ("estimate", "reference", "status"),
    [
        (ESTIMATE, 0.0, "positive"),
        (ESTIMATE, 0.5, "negative"),
        (ESTIMATE, 0.15, "unclear"),
        (ESTIMATE, None, "neutral"),
        (Estimate(0.2, 9, reason="few"), 0.0, "neutral"),
        (Estimate(None, 0, reason="nothing was measured"), 0.0, "neutral"),
    ],
)
def test_an_interval_that_includes_the_reference_is_on_neither_side(
    estimate: Estimate, reference: float | None, status: Status
) -> None:
    assert compare_interval(estimate, reference) == status
