"""The panel's certificate claims no more than its intervals support."""

from __future__ import annotations

import pytest

from auditor.metrics.estimate import Estimate
from auditor.reports.data.panel.certificate import write_certificate
from auditor.reports.data.report_schema import Report


def alpha(value: float | None, low: float | None, high: float | None) -> Estimate:
    return Estimate(value=value, n=50, ci_low=low, ci_high=high, reason=None if low is not None else "too few")


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (alpha(0.9, 0.85, 0.95), "can be relied on"),
        (alpha(0.75, 0.7, 0.8), "tentative conclusions"),
        (alpha(0.4, 0.2, 0.6), "not enough to rely on the verdict on a single trace"),
        (alpha(0.05, -0.1, 0.2), "not shown to agree beyond chance"),
        (alpha(0.4, None, None), "not known how reliable"),
        (alpha(None, None, None), "supports no conclusion"),
    ],
)
def test_the_certificate_claims_no_more_than_alphas_interval(report: Report, estimate: Estimate, words: str) -> None:
    panel = report.panel.model_copy(update={"krippendorff_alpha": estimate})
    assert words in write_certificate(panel)[0]


def test_a_skewed_prevalence_gives_a_warning(report: Report) -> None:
    prevalence = Estimate(value=0.93, n=50, ci_low=0.9, ci_high=0.95)
    certificate = " ".join(write_certificate(report.panel.model_copy(update={"prevalence": prevalence})))
    assert "93% of the verdicts are VALID" in certificate
    assert "AC1" in certificate
