"""The section on languages lists where each was used, and the differences between them."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.agreement.languages import (
    LanguageAgreementRow,
    LanguageCountriesRow,
    LanguageDifferenceRow,
    LanguagesReport,
    UnevenLanguageRow,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import List, ListItem, Name, Table, Text
from auditor.reports.document.blocks import flatten_inline
from auditor.reports.sections.self_comparisons import build_languages_section, describe_languages
from tests.reports.sections.block_access import cells_of

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


def flatten(text: Text) -> str:
    """A text without the isolation of its names."""
    assert isinstance(text, Sequence)
    return "".join(node.text if isinstance(node, Name) else str(node) for node in text)


def test_each_use_of_a_language_is_listed() -> None:
    assert [flatten(text) for text in describe_languages(LANGUAGES)] == [
        "Asked in “ar”: Egypt, Jordan.",
        "Asked in English, since their main languages have no prompts: Pakistan.",
        "Asked once and excluded from every difference, since the configured languages are the same there: Nigeria.",
        "The share of usable answers differs between languages, so some mean scores are based on fewer answers: "
        "m (ar 71%, en 98%).",
    ]


def test_only_uses_that_occur_are_listed() -> None:
    languages = LANGUAGES.model_copy(update={"fell_back": [], "once": [], "uneven": []})
    assert len(list(describe_languages(languages))) == 1


def test_differences_are_a_table(report: Report) -> None:
    section = build_languages_section(report.model_copy(update={"languages": LANGUAGES}))
    assert section is not None
    [table] = [block for block in section.blocks if isinstance(block, Table)]
    assert cells_of(table) == [["m", "en", "native", DIFFERENCE.difference]]


def test_no_section_for_english_alone(report: Report) -> None:
    for languages in (None, LANGUAGES.model_copy(update={"configured": ["en"]})):
        assert build_languages_section(report.model_copy(update={"languages": languages})) is None


def test_agreement_by_language_names_what_differs_and_the_regions_left_out(report: Report) -> None:
    difference = Tested(0.052, 80, 0.031, 0.073, p_value=0.0001, adjusted_p_value=0.001)
    row = LanguageAgreementRow(
        model="m", first="en", second="native", region="South", countries=8,
        mae=difference, concordance=difference, pearson_r=difference,
    )  # fmt: skip
    languages = LANGUAGES.model_copy(update={"agreement": [row], "small_regions": ["Sea"]})
    section = build_languages_section(report.model_copy(update={"languages": languages}))
    assert section is not None
    table = section.blocks[-1]
    assert isinstance(table, Table)
    assert cells_of(table) == [["m", "en", "native", "South", 8, difference, difference, difference]]
    assert "Not compared: Sea (fewer than 5 countries)." in flatten_inline(table.caption)
    [findings] = [block for block in section.blocks[2:] if isinstance(block, List)]
    [item] = findings.items
    assert not isinstance(item, ListItem)
    assert flatten(item) == (
        "Farther from people in “native” than in “en”: m, South (difference in MAE = +0.052, 95% CI +0.031 to +0.073, "
        "80 cells)."
    )
