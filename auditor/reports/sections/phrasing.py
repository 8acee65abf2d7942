"""Phrases that the sections share: labels of series, names in sentences, findings, and intervals in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from auditor.metrics.estimate import Estimate, Tested
from auditor.reports.data.rescaled_scores import has_rescaled_scores
from auditor.reports.document import Code, Inline, List, ListItem, Name, Section, Status, Strong, Text
from auditor.reports.number_format import (
    describe_estimate as describe_estimate,
    describe_interval as describe_interval,
    format_count,
    format_number,
    pluralize,
)
from auditor.text_safety import slugify

if TYPE_CHECKING:
    from auditor.reports.data.agreement.alignment import AlignmentRow
    from auditor.reports.data.report_schema import Report

# --- series of scores -------------------------------------------------------------------------------------------


class SeriesRow(Protocol):
    """A row of the report about one series of scores: one model by one method."""

    @property
    def method(self) -> str: ...
    @property
    def model(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SeriesLabels:
    """Labels of the report's series of scores; unique in a report."""

    shows_method: bool
    """Whether the report has scores by several methods, so that a label needs the method."""

    @classmethod
    def of(cls, report: Report) -> Self:
        """The labels of a report."""
        return cls(len({row.method for row in report.alignment}) > 1)

    def label(self, row: SeriesRow) -> str:
        """Label of a row's series: the model, followed by the method if the report has several."""
        return f"{row.model} ({row.method})" if self.shows_method else row.model


def list_series_with_errors(report: Report) -> list[AlignmentRow]:
    """The series whose distance from people is known: those whose scores are not rescaled within the model."""
    return [row for row in report.alignment if not has_rescaled_scores(row.method)]


def slugify_unique(labels: Iterable[str]) -> list[str]:
    """The labels as parts of figure ids and file names, each a different one."""
    slugs: list[str] = []
    for label in labels:
        slug = slugify(label)
        candidates = (slug, *(f"{slug}-{i}" for i in range(2, len(slugs) + 3)))
        slugs.append(next(candidate for candidate in candidates if candidate not in slugs))
    return slugs


# --- sentences --------------------------------------------------------------------------------------------------


def join_texts(texts: Iterable[Text], separator: str = ", ") -> list[Inline]:
    """Join texts by commas or another separator."""
    nodes: list[Inline] = []
    for text in texts:
        nodes += [separator] if nodes else []
        nodes += text if isinstance(text, Sequence) and not isinstance(text, str) else [text]
    return nodes


def join_names(names: Iterable[str], separator: str = ", ") -> list[Inline]:
    """Join names by commas or another separator, each isolated from the text around it."""
    return join_texts(map(Name, names), separator)


def join_with_and(parts: Sequence[str]) -> str:
    """Join phrases by commas, and the last by "and"."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def join_first(labels: Sequence[str], noun: str = "", max_labels: int = 4) -> str:
    """Join the first labels by commas, followed by the number of the others, such as "and 3 more models"."""
    n_others = len(labels) - max_labels
    others = pluralize(n_others, f"more {noun}") if noun else f"{format_count(n_others)} more"
    return ", ".join(labels[:max_labels]) + (f" and {others}" if n_others > 0 else "")


def list_counts(counts: Mapping[str, int]) -> str:
    """List counts with their causes, such as "3 refused, 1 rate limited"."""
    return ", ".join(f"{format_count(n)} {cause.replace('_', ' ')}" for cause, n in counts.items())


def name_finding(name: str, predicate: Text) -> list[Inline]:
    """A sentence whose subject is a name in bold, such as a model's, with a full stop."""
    return join_texts([Strong(Name(name)), " ", predicate, "."], separator="")


def build_finding(name: str, predicate: Text, status: Status = "neutral") -> ListItem:
    """A list's sentence whose subject is a name in bold, with the finding's status."""
    return ListItem(name_finding(name, predicate), status)


def find_first_finding(section: Section) -> ListItem | Text | None:
    """The first item of a section's first list of findings; None without any."""
    lists = (block for block in section.blocks if isinstance(block, List) and block.is_findings and block.items)
    return next((findings.items[0] for findings in lists), None)


def group_findings(findings: Iterable[tuple[str, str, Status]]) -> list[ListItem]:
    """One item for each predicate, with the names that it holds for, such as "a, b: agrees well with people."."""
    names: dict[tuple[str, Status], list[str]] = {}
    for name, predicate, status in findings:
        names.setdefault((predicate, status), []).append(name)
    return [
        ListItem(
            name_finding(group[0], predicate)
            if len(group) == 1
            else [*join_texts([Strong(Name(name)) for name in group]), f": {predicate}."],
            status,
        )
        for (predicate, status), group in names.items()
    ]


def compare_interval(estimate: Estimate, reference: float | None = 0.0) -> Status:
    """Whether an interval lies above a reference (positive), below it (negative) or includes it (unclear).

    Neutral without an interval or a reference.
    """
    if reference is None or estimate.ci_low is None or estimate.ci_high is None:
        return "neutral"
    return "positive" if estimate.ci_low > reference else "negative" if estimate.ci_high < reference else "unclear"


def compare_test(test: Tested) -> Status:
    """Whether a tested figure is above 0 (positive) or below it (negative), given all tests of its family, or unclear.

    Neutral without a test.
    """
    if test.adjusted_p_value is None or test.value is None:
        return "neutral"
    return "unclear" if not test.is_significant else "positive" if test.value > 0 else "negative"


def describe_correction(test: Tested) -> str:
    """Say why a test is not significant though its interval, that of one test alone, excludes 0; else empty."""
    if test.adjusted_p_value is None or test.is_significant or compare_interval(test) == "unclear":
        return ""
    return f"; not beyond chance given all tests of this kind, p = {format_number(test.adjusted_p_value)}"


def mark_code(sentence: str) -> list[Inline]:
    """Convert the parts of a sentence that are between backticks to code; an empty list for an empty sentence."""
    return [Code(part) if i % 2 else part for i, part in enumerate(sentence.split("`")) if part]
