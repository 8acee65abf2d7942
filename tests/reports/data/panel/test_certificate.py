"""The panel's certificate claims no more than its intervals support."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.panel.certificate import write_certificate
from auditor.reports.data.report_schema import Report


def alpha(value: float | None, low: float | None, high: float | None) -> Estimate:
    if low is None:
        return Estimate(value, 50, reason="an interval needs at least 5 countries and 5 topics, but there are 4 topics")
    return Estimate(value, 50, low, high, resampled=("country", "topic"))


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (alpha(0.9, 0.85, 0.95), "single traces are consistent. Only labels by people show whether they are right."),
        (alpha(0.75, 0.7, 0.8), "tentative conclusions"),
        (alpha(0.4, 0.2, 0.6), "too little to rely on verdicts on single traces"),
        (alpha(0.05, -0.1, 0.2), "not shown to agree beyond chance"),
        (alpha(0.4, None, None), "How consistent the verdicts are is not known"),
        (alpha(None, None, None), "supports no conclusion"),
    ],
)
def test_the_certificate_claims_no_more_than_alphas_interval(report: Report, estimate: Estimate, words: str) -> None:
    panel = report.panel.model_copy(update={"krippendorff_alpha": estimate})
    assert words in write_certificate(panel)[0]


def test_agreement_alone_never_makes_verdicts_reliable(report: Report) -> None:
    panel = report.panel.model_copy(update={"krippendorff_alpha": alpha(0.99, 0.98, 1.0)})
    assert "reliable" not in " ".join(write_certificate(panel))


def test_the_certificate_says_what_the_interval_is_about_or_plainly_that_there_is_none(report: Report) -> None:
    first = [
        write_certificate(report.panel.model_copy(update={"krippendorff_alpha": estimate}))[0]
        for estimate in (alpha(0.9, 0.85, 0.95), alpha(0.4, None, None))
    ]
    assert first[0].endswith("The interval is for other countries and topics like these.")
    assert first[1].endswith(
        "alpha is 0.40 for 50 traces, without a 95% CI (an interval needs at least 5 countries and 5 topics, "
        "but there are 4 topics)."
    )


@pytest.mark.parametrize(
    ("change", "is_named"),
    [
        (Tested(0.1, 50, 0.02, 0.18, p_value=0.01, adjusted_p_value=0.04), True),
        (Tested(0.1, 50, 0.02, 0.18, p_value=0.01, adjusted_p_value=0.06), False),  # only its own interval excludes 0
        (Tested(-0.1, 50, -0.18, -0.02, adjusted_p_value=0.001), False),  # the others agree worse without it
        (Tested(0.1, 50, reason="too few countries", adjusted_p_value=None), False),
    ],
)
def test_a_judge_that_disagrees_more_is_named_only_after_correction(
    report: Report, change: Tested, is_named: bool
) -> None:
    judge = report.panel.judges[0].model_copy(update={"alpha_change": change})
    others = [
        row.model_copy(update={"alpha_change": Tested(0.0, 50, -0.1, 0.1, p_value=1.0, adjusted_p_value=1.0)})
        for row in report.panel.judges[1:]
    ]
    certificate = write_certificate(report.panel.model_copy(update={"judges": [judge, *others]}))
    sentences = [sentence for sentence in certificate if "disagrees more" in sentence]
    assert len(sentences) == is_named
    if is_named:
        assert sentences[0].startswith(
            f"{judge.judge} disagrees more with the other judges than they do with each other"
        )
        assert "higher by 0.10 (95% CI 0.02 to 0.18; p = 0.040, corrected for 3 judges" in sentences[0]


def test_a_skewed_prevalence_gives_a_warning(report: Report) -> None:
    prevalence = Estimate(value=0.93, n=50, ci_low=0.9, ci_high=0.95)
    certificate = " ".join(write_certificate(report.panel.model_copy(update={"prevalence": prevalence})))
    assert "93% of the verdicts are VALID" in certificate
    assert "AC1" in certificate
