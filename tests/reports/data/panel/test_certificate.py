"""The panel’s certificate claims no more than its intervals and adjusted tests support."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.judges.accuracy import Evidence, JudgeDifference, missing_difference
from auditor.reports.data.panel.certificate import describe_biases, write_certificate
from auditor.reports.data.panel.schema import JudgeRow
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


FIELDS = [name for name, field in JudgeRow.model_fields.items() if field.annotation is JudgeDifference]


def difference(value: float, p_value: float, evidence: Evidence) -> JudgeDifference:
    return JudgeDifference(
        value, 90, value - 0.1, value + 0.1, resampled=("country", "topic"), evidence=evidence, p_value=p_value
    )


def rows_with(report: Report, differences: list[dict[str, JudgeDifference]]) -> list[JudgeRow]:
    """Rows of judges a, b, ... with these differences only, and p-values adjusted over all of them."""
    adjusted = iter(adjust_tests((c for by_field in differences for c in by_field.values()), "bias"))
    missing = {field: missing_difference("not measured") for field in FIELDS}
    return [
        report.panel.judges[0].model_copy(
            update={"judge": name, **missing, **{field: next(adjusted) for field in by_field}}
        )
        for name, by_field in zip("abcde", differences, strict=False)
    ]


def test_biases_and_associations_are_separate_sentences(report: Report) -> None:
    rows = rows_with(
        report,
        [
            {"leniency": difference(0.2, 0.001, "panel"), "verbosity": difference(0.3, 0.0001, "association")},
            {"leniency": difference(0.2, 0.03, "panel"), "verbosity": difference(-0.3, 0.2, "association")},
            {"padding": difference(-0.15, 0.0, "experiment")},
        ],
    )
    biases, associations = describe_biases(rows)
    assert "c says VALID less often when the same trace is padded (−15 percentage points, 95% CI −25 to −5" in biases
    assert "a is more lenient than the median judge on the same traces (+20 percentage points" in biases
    assert "95% CI +10 to +30, p = 0.001, adjusted p = 0.003)" in biases
    assert "if more than half of the judges have none" in biases
    assert "b is" not in biases  # 0.03 is not significant among five tests
    assert "do not show a bias" in associations
    assert "a says VALID more often for longer traces" in associations
    assert "b says" not in associations
    assert all("adjusted for 5 tests (Holm)" in sentence for sentence in (biases, associations))


@pytest.mark.parametrize(
    ("field", "evidence", "words"),
    [
        ("leniency", "truth", "a says VALID less often than the known truth of the same answers"),
        ("verbosity_against_truth", "truth", "a favours shorter traces beyond what the truth of the answers explains"),
        ("own_family", "association", "a is stricter with its own model family"),
        ("order", "association", "a is stricter in the later half of its verdicts"),
    ],
)
def test_each_difference_has_a_phrase(report: Report, field: str, evidence: Evidence, words: str) -> None:
    *others, sentence = describe_biases(rows_with(report, [{field: difference(-0.2, 0.0001, evidence)}]))
    assert words in sentence
    assert others == (["No bias of the judges was tested."] if evidence == "association" else [])
    assert ("more than half" in sentence) == (evidence == "panel")


def test_without_a_significant_difference_no_judge_is_named(report: Report) -> None:
    rows = rows_with(
        report, [{"leniency": difference(0.2, 0.04, "panel")}, {"leniency": difference(0.1, 0.9, "panel")}]
    )
    [sentence] = describe_biases(rows)
    assert sentence == ("No judge is shown to have a bias (none of 2 tests). P-values are adjusted for 2 tests (Holm).")
    untested = [
        row.model_copy(update={"leniency": replace(row.leniency, adjusted_p_value=None, p_value=None)}) for row in rows
    ]
    assert list(describe_biases(untested)) == ["No bias of the judges was tested."]
    assert list(describe_biases([])) == []


def test_tests_of_biases_and_associations_are_counted_apart(report: Report) -> None:
    rows = rows_with(
        report,
        [
            {"leniency": difference(0.2, 0.9, "panel"), "verbosity": difference(0.3, 0.8, "association")},
            {"verbosity": difference(0.1, 0.7, "association"), "order": difference(0.1, 0.6, "association")},
        ],
    )
    biases, associations = describe_biases(rows)
    assert biases.startswith("No judge is shown to have a bias (none of 1 test).")
    assert associations.startswith(
        "No association of verdicts with length, model family or order is statistically distinguishable"
    )
    assert "(none of 3 tests)" in associations
    assert all("adjusted for 4 tests (Holm)" in sentence for sentence in (biases, associations))
