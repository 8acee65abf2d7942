"""The section on the languages that models were asked in."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.domain import ENGLISH
from auditor.reports.data.agreement.languages import LanguagesReport, UnevenLanguageRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Column, List, Section, Text
from auditor.reports.number_format import format_percent
from auditor.reports.sections.phrasing import join_names
from auditor.reports.sections.tables import tabulate


def build_languages_section(report: Report) -> Section | None:
    """Build the section on languages; None if English is the only configured language."""
    languages = report.languages
    if languages is None or languages.configured == [ENGLISH]:
        return None
    table = tabulate(
        "languages",
        "Difference between languages",
        "Mean score in the second language minus that in the first, over the cells in which the two are different "
        "languages; n counts cells. A positive difference is more permissive. Intervals are 95% CIs over countries and "
        "topics. A difference whose interval includes zero is not statistically distinguishable from zero.",
        languages.differences,
        [
            Column("Model", "name"),
            Column("First language", key="first"),
            Column("Second language", key="second"),
            Column("Difference in score", "estimate", "difference", style="signed"),
        ],
    )
    blocks: list[Block] = [List([*describe_languages(languages)]), *([table] if languages.differences else [])]
    return Section("languages", "Effect of the language", blocks, "Languages")


def describe_languages(languages: LanguagesReport) -> Iterator[Text]:
    """Yield the countries asked in each language, fallbacks to English, exclusions, and models with uneven answers."""
    groups = [(f"Asked in “{use.language}”", use.countries) for use in languages.asked]
    groups += [
        ("Asked in English, since their main languages have no prompts", languages.fell_back),
        (
            "Asked once and excluded from every difference, since the configured languages are the same there",
            languages.once,
        ),
        (
            "The share of usable answers differs between languages, so that some mean scores rest on fewer answers",
            [f"{row.model} ({_format_usable_shares(row)})" for row in languages.uneven],
        ),
    ]
    return ([f"{label}: ", *join_names(names), "."] for label, names in groups if names)


def _format_usable_shares(row: UnevenLanguageRow) -> str:
    """List the share of usable answers of a model in each language, such as "en 98%, ar 71%"."""
    return ", ".join(f"{code} {format_percent(ok, planned)}" for code, (ok, planned) in row.answers.items())
