"""Refusals by model, country and topic, and answers that had to be asked for again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from auditor.domain import Outcome
from auditor.metrics.estimate import Estimate
from auditor.metrics.two_way_means import two_way_share
from auditor.reports.data.estimate_conversion import clustered_to_estimate
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import ReportSource
from auditor.storage.count_queries import OutcomeCount

ANSWER_OUTCOMES = frozenset(o.value for o in Outcome if o.is_answer)


class RefusalRow(ReportModel):
    """Share of refusals for one model, country or topic."""

    name: str
    """The model, country or topic."""
    share: Estimate
    """Refusals / answers; failed requests are in neither. Interval over countries and topics, or over cells where there
    are too few countries or topics."""


class RefusalsReport(ReportModel):
    """Refusals to the direct question, most often refused first."""

    total: Estimate
    models: list[RefusalRow]
    countries: list[RefusalRow]
    topics: list[RefusalRow]


class ReaskRow(ReportModel):
    """Answers of one model that could not be read and were asked for again."""

    model: str
    asked: int
    read: int
    """Second requests whose answer had a score."""


def build_refusals_report(source: ReportSource) -> RefusalsReport | None:
    """Compute shares of refusals by model, country and topic; None without an answer to a direct question."""
    answer_counts = [count for count in source.trace_counts if count.outcome in ANSWER_OUTCOMES]
    if not answer_counts:
        return None
    return RefusalsReport(
        total=_refusal_share(answer_counts),
        models=_build_refusal_rows(answer_counts, lambda count: count.model),
        countries=[] if source.survey.task else _build_refusal_rows(answer_counts, lambda count: count.country),
        topics=_build_refusal_rows(answer_counts, lambda count: count.topic),
    )


def build_reask_rows(source: ReportSource) -> list[ReaskRow]:
    """Build one row per model whose unreadable answers were asked for again."""
    return [ReaskRow(model=counts.model, asked=counts.asked, read=counts.repaired) for counts in source.repair_counts]


def _build_refusal_rows(
    outcome_counts: Iterable[OutcomeCount], group_key: Callable[[OutcomeCount], str]
) -> list[RefusalRow]:
    """Build one row per group of answers, largest share of refusals first; `group_key` returns the group's name."""
    groups: dict[str, list[OutcomeCount]] = {}
    for count in outcome_counts:
        groups.setdefault(group_key(count), []).append(count)
    rows = [RefusalRow(name=name, share=_refusal_share(group)) for name, group in groups.items()]
    return sorted(rows, key=lambda row: (-(row.share.value or 0.0), row.name))


def _refusal_share(outcome_counts: Iterable[OutcomeCount]) -> Estimate:
    """Share of refusals among the answers, with an interval over countries and topics."""
    refused, total = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for count in outcome_counts:
        cell = (count.country, count.topic)
        refused[cell] += count.n * (count.outcome == Outcome.REFUSED.value)
        total[cell] += count.n
    countries, topics = zip(*total, strict=True)
    share = two_way_share([refused[cell] for cell in total], list(total.values()), countries, topics)
    return clustered_to_estimate(share, "no answer is recorded")
