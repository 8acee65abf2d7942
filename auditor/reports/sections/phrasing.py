"""Phrases that the sections share: labels of series, names in sentences, and estimates in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Inline, Name, Status, Strong, Text
from auditor.reports.number_format import describe_estimate as describe_estimate
from auditor.reports.number_format import describe_interval as describe_interval


@dataclass(frozen=True, slots=True)
class SeriesLabels:
    """Labels of the report's series of scores, each of one model by one method."""

    shows_method: bool
    """Whether the report has scores by several methods, so that a label needs the method."""

    @classmethod
    def of(cls, report: Report) -> Self:
        """The labels of a report."""
        return cls(len({row.method for row in report.alignment}) > 1)

    def label(self, method: str, model: str) -> str:
        """Label of one series: the model, followed by the method if the report has several."""
        return f"{model} ({method})" if self.shows_method else model


def join_names(names: Iterable[str], separator: str = ", ") -> list[Inline]:
    """Join names by commas or another separator, each isolated from the text around it."""
    nodes: list[Inline] = []
    for name in names:
        nodes += [separator, Name(name)] if nodes else [Name(name)]
    return nodes


def name_finding(name: str, predicate: Text) -> list[Inline]:
    """A sentence whose subject is a name in bold, such as a model's, with a full stop."""
    nodes: Sequence[Inline] = (
        [predicate] if isinstance(predicate, str) or not isinstance(predicate, Sequence) else predicate
    )
    return [Strong(Name(name)), " ", *nodes, "."]


def compare_interval(estimate: Estimate, reference: float | None) -> Status:
    """Whether an interval lies above a reference, below it or includes it; neutral if either is missing."""
    if reference is None or estimate.ci_low is None or estimate.ci_high is None:
        return "neutral"
    return "positive" if estimate.ci_low > reference else "negative" if estimate.ci_high < reference else "unclear"
