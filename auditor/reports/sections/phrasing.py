"""Phrases that the sections share: labels of series, names in sentences, and estimates in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Inline, Name, Strong, Text
from auditor.reports.number_format import NumberStyle, format_styled, pluralize


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


def describe_estimate(
    symbol: str, estimate: Estimate, unit: str = "", *, digits: int = 2, style: NumberStyle = "decimal"
) -> str:
    """Format an estimate for a sentence, such as "r = 0.52, 95% CI 0.31 to 0.68, 25 cells".

    Args:
        symbol: what is estimated; empty for the value alone.
        unit: what n counts, in the singular; empty to leave n out.
    """
    prefix = f"{symbol} = " if symbol else ""
    if estimate.value is None:
        return f"{symbol + ' ' if symbol else ''}not available: {estimate.reason}"
    n_text = f", {pluralize(estimate.n, unit)}" if unit else ""
    return (
        f"{prefix}{format_styled(estimate.value, style, digits)}, {describe_interval(estimate, digits, style)}{n_text}"
    )


def describe_interval(estimate: Estimate, digits: int = 2, style: NumberStyle = "decimal") -> str:
    """Format an estimate's interval for a sentence, such as "95% CI 0.31 to 0.68", or say why there is none."""
    if estimate.ci_low is None or estimate.ci_high is None:
        return f"no 95% CI: {estimate.reason}"
    low, high = (format_styled(end, style, digits) for end in (estimate.ci_low, estimate.ci_high))
    return f"95% CI {low} to {high}"


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
