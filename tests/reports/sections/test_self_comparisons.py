"""Samples, languages and methods of one model are compared as intervals and tests support."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.agreement.languages import (
    LanguageAgreementRow,
    LanguageCountriesRow,
    LanguageDifferenceRow,
    LanguagesReport,
    MethodDifferenceRow,
    UnevenLanguageRow,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import List, ListItem
from auditor.reports.number_format import format_number
from auditor.reports.sections.self_comparisons import (
    build_consistency_section,
    build_languages_section,
    describe_languages,
    describe_method_difference,
)
from tests.reports.sections.node_text import text_of
from tests.support.known import known


def test_samples_above_chance_have_a_sentence(report: Report) -> None:
    """The fixture's reasonings about other cells have a similarity of 0.38."""
    assert {format_number(row.chance.value) for row in report.self_consistency} == {"0.38"}
    text = text_of(build_consistency_section(report))
    assert "by chance, it would be 0.38" in text
    assert "Samples of a cell are more alike than reasonings about other countries and topics." in text
    assert "Self-consistency ranges from " in text
    same = [row.model_copy(update={"cosine": Estimate(1.0, 30, 0.9, 1.0)}) for row in report.self_consistency]
    text = text_of(build_consistency_section(report.model_copy(update={"self_consistency": same})))
    assert "Self-consistency is 1.00 for every model; by chance, it would be 0.38." in text


def test_models_that_were_not_compared_with_chance_are_not_called_better(report: Report) -> None:
    missing = Estimate(None, 0, reason="none of about the same length")
    first, *others = report.self_consistency
    partial = [first.model_copy(update={"chance": missing, "above_chance": missing}), *others]
    text = text_of(build_consistency_section(report.model_copy(update={"self_consistency": partial})))
    [sentence] = [part for part in text.split(". ") if "are more alike than reasonings" in part]
    assert others
    assert first.model not in sentence
    assert all(row.model in sentence for row in others)


DIFFERENCE = LanguageDifferenceRow(model="m", first="en", second="native", difference=Estimate(0.1, 9, 0.0, 0.2))
LANGUAGES = LanguagesReport(
    configured=["en", "native"],
    asked=[LanguageCountriesRow(language="ar", countries=["Egypt", "Jordan"])],
    fell_back=["Pakistan"],
    once=["Nigeria"],
    differences=[DIFFERENCE],
    agreement=[],
    small_regions=[],
    uneven=[UnevenLanguageRow(model="m", answers={"ar": (71, 100), "en": (98, 100)})],
)


def test_each_use_of_a_language_is_listed() -> None:
    assert [text_of(text) for text in describe_languages(LANGUAGES)] == [
        "Asked in “ar”: Egypt, Jordan.",
        "Asked in English, since their main languages have no prompts: Pakistan.",
        "Asked once and excluded from every difference, since the configured languages are the same there: Nigeria.",
        "The share of usable answers differs between languages, so some mean scores are based on fewer answers: "
        "m (ar 71%, en 98%).",
    ]


def test_agreement_by_language_names_what_differs_and_the_regions_left_out(report: Report) -> None:
    difference = Tested(0.052, 80, 0.031, 0.073, p_value=0.0001, adjusted_p_value=0.001)
    row = LanguageAgreementRow(
        model="m", first="en", second="native", region="South", countries=8,
        mae=difference, concordance=difference, pearson_r=difference,
    )  # fmt: skip
    languages = LANGUAGES.model_copy(update={"agreement": [row], "small_regions": ["Sea"]})
    section = known(build_languages_section(report.model_copy(update={"languages": languages})))
    assert "Not compared: Sea (fewer than 5 countries)." in text_of(section.blocks[-1])
    [findings] = [block for block in section.blocks[2:] if isinstance(block, List)]
    [item] = findings.items
    assert not isinstance(item, ListItem)
    assert text_of(item) == (
        "Farther from people in “native” than in “en”: m, South (difference in MAE = +0.052, 95% CI +0.031 to +0.073, "
        "80 cells)."
    )


def make_method_row(
    value: float | None = 0.2, low: float | None = 0.1, high: float | None = 0.3
) -> MethodDifferenceRow:
    p_value = None if low is None or high is None else 0.3 if low < 0 < high else 0.01
    reason = None if low is not None else "too few"
    difference = Tested(value, 40, low, high, reason, p_value=p_value, adjusted_p_value=p_value)
    return MethodDifferenceRow(model="m", measures=["echo"], difference=difference, direct_r=0.6, logprob_r=0.4)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (make_method_row(),
         "agrees better with people by its answers than by its log-probabilities (r = 0.60 for answers, 0.40 for "
         "log-probabilities by echo; Δr = +0.20, 95% CI +0.10 to +0.30, 40 cells)"),
        (make_method_row(-0.2, -0.3, -0.1), "agrees less with people by its answers"),
        (make_method_row(0.2, -0.1, 0.3),
         "shows no statistically distinguishable difference between answers and log-probabilities ("),
        (make_method_row(0.2, None, None), "Δr = +0.20, 40 cells, no 95% CI: too few"),
        (make_method_row(None, None, None), "cannot be compared: too few"),
    ],
)  # fmt: skip
def test_the_difference_is_described_by_its_interval(row: MethodDifferenceRow, text: str) -> None:
    assert text in describe_method_difference(row)
