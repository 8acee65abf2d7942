"""Whether judges agree is said by one figure."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.panel import build_panel_section
from tests.reports.sections.node_text import text_of
from tests.support.known import known
from tests.support.report_changes import change


@pytest.mark.parametrize(
    ("alpha", "sentence"),
    [
        (Estimate(0.26, 50, 0.1, 0.4),
         "The judges agree with each other beyond chance (FIGURES 0.26, 95% CI 0.10 to 0.40)."),
        (Estimate(-0.26, 50, -0.4, -0.1),
         "The judges agree with each other less than by chance (FIGURES −0.26, 95% CI −0.40 to −0.10)."),
        (Estimate(0.1, 50, -0.1, 0.4),
         "The agreement of the judges is not statistically distinguishable from chance (FIGURES 0.10"),
        (Estimate(None, 0, reason="one judge"), "It is not known whether the judges agree beyond chance ("),
    ],
)  # fmt: skip
def test_the_section_says_by_alpha_alone_whether_judges_agree(report: Report, alpha: Estimate, sentence: str) -> None:
    """Near 0, kappa and alpha would contradict each other."""
    changes: dict[str, Any] = {"panel__krippendorff_alpha": alpha, "panel__fleiss_kappa": Estimate(0.7, 50, 0.6, 0.8)}
    text = text_of(known(build_panel_section(change(report, **changes))))
    assert sentence.replace("FIGURES", "Krippendorff’s alpha =") in text
    assert "Fleiss’ kappa = 0.7" not in text
