"""Estimates within a text have their interval and n, or the reason why they are missing."""

from __future__ import annotations

import pytest

from auditor.metrics.estimate import Estimate
from auditor.reports.document import InlineEstimate
from auditor.reports.render.text_layout import flatten_text


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        (InlineEstimate(Estimate(0.52, 25, 0.31, 0.68)), "0.52 (95% CI 0.31 to 0.68, n 25)"),
        (InlineEstimate(Estimate(0.52, 25, reason="too few"), 1), "0.5 (n 25, no 95% CI: too few)"),
        (InlineEstimate(Estimate(0.5, 4, 0.2, 0.8), 0, "percent"), "50% (95% CI 20% to 80%, n 4)"),
        (InlineEstimate(Estimate(None, 0, reason="too few")), "not available: too few"),
    ],
)
def test_estimates_in_sentences(node: InlineEstimate, shown: str) -> None:
    assert flatten_text(node) == shown
