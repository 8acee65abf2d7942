"""Whom models refuse to speak about, and how often they had to be asked twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from auditor.domain import Outcome
from auditor.metrics.two_way_means import two_way_share
from auditor.reports.estimate_conversion import clustered_to_estimate
from auditor.reports.measurement_schema import Estimate, ReportModel
from auditor.reports.report_source import ReportSource
from auditor.storage.count_queries import OutcomeCount

ANSWER_OUTCOMES = frozenset(o.value for o in Outcome if o.is_answer)


class RefusalRow(ReportModel):
    """How often an answer about something was a refusal."""

    name: str
    """The model, country or topic."""
    share: Estimate
    """Refusals / answers, over all models; those that never came are in neither. Interval over countries and topics,
    or over cells, where there are too few of them."""


class RefusalsReport(ReportModel):
    """Refusals to the direct question, most often refused first."""

    total: Estimate
    models: list[RefusalRow]
    countries: list[RefusalRow]
    topics: list[RefusalRow]


class ReaskRow(ReportModel):
    """How often a model's answer could not be read, and it was asked once more."""

    model: str
    asked: int
    read: int
    """Of these, how many then had a score."""


def build_refusals_report(source: ReportSource) -> RefusalsReport | None:
    """Refusals by model, country and topic; None where no answer to a direct question is recorded."""
    answered = [t for t in source.trace_counts if t.outcome in ANSWER_OUTCOMES]
    if not answered:
        return None
    return RefusalsReport(
        total=_refusal_share(answered),
        models=_build_refusal_rows(answered, lambda t: t.model),
        countries=[] if source.survey.task else _build_refusal_rows(answered, lambda t: t.country),
        topics=_build_refusal_rows(answered, lambda t: t.topic),
    )


def build_reask_rows(source: ReportSource) -> list[ReaskRow]:
    """One row for each model that was asked once more."""
    return [ReaskRow(model=r.model, asked=r.asked, read=r.repaired) for r in source.repair_counts]


def _build_refusal_rows(
    outcome_counts: Iterable[OutcomeCount], group_key: Callable[[OutcomeCount], str]
) -> list[RefusalRow]:
    groups: dict[str, list[OutcomeCount]] = {}
    for tally in outcome_counts:
        groups.setdefault(group_key(tally), []).append(tally)
    rows = [RefusalRow(name=name, share=_refusal_share(tallies)) for name, tallies in groups.items()]
    return sorted(rows, key=lambda row: (-(row.share.value or 0.0), row.name))


def _refusal_share(outcome_counts: Iterable[OutcomeCount]) -> Estimate:
    refused, total = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for tally in outcome_counts:
        cell = (tally.country, tally.topic)
        refused[cell] += tally.n * (tally.outcome == Outcome.REFUSED.value)
        total[cell] += tally.n
    countries, topics = zip(*total, strict=True)
    found = two_way_share([refused[cell] for cell in total], list(total.values()), countries, topics)
    return clustered_to_estimate(found, "no answer is recorded")
