"""Refusals by model, country and topic, and answers that had to be asked for again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal

from auditor.domain import Outcome
from auditor.metrics.estimate import ShareEstimate
from auditor.metrics.unit_means import ShareTable, shares_over_units
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.sampling_units import sampling_units
from auditor.storage.count_queries import OutcomeCount

ANSWER_OUTCOMES = frozenset(o.value for o in Outcome if o.is_answer and o is not Outcome.EXCLUDED)


class RefusalRow(ReportModel):
    """Share of refusals for one model, country or topic."""

    name: str
    """The model, country or topic."""
    share: ShareEstimate
    """Refusals / answers; failed requests and excluded answers are in neither. A country's interval is over other
    topics, a topic's over other countries."""


class RefusalsReport(ReportModel):
    """Refusals to the direct question, most often refused first."""

    total: ShareEstimate
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
    answer_counts = [count for count in _count_first_outcomes(source) if count.outcome in ANSWER_OUTCOMES]
    if not answer_counts:
        return None
    return RefusalsReport(
        total=shares_over_units([_share_table(answer_counts)])[0],
        models=_build_refusal_rows(answer_counts, "model"),
        countries=[] if source.survey.task else _build_refusal_rows(answer_counts, "country"),
        topics=_build_refusal_rows(answer_counts, "topic"),
    )


def build_reask_rows(source: ReportSource) -> list[ReaskRow]:
    """Build one row per model whose unreadable answers were asked for again."""
    asked, read = Counter[str](), Counter[str]()
    for count in source.trace_counts:
        asked[count.model] += count.asked_again
        read[count.model] += count.asked_again * (count.outcome == Outcome.OK)
    return [ReaskRow(model=model, asked=n, read=read[model]) for model, n in sorted(asked.items()) if n]


def _count_first_outcomes(source: ReportSource) -> list[OutcomeCount]:
    """Count the traces by model, cell and outcome; questions that were asked again by their first outcome."""
    counts = Counter[tuple[str, str, str, str]]()
    for count in source.trace_counts:
        counts[count.model, count.country, count.topic, count.outcome] += count.n
    for repeat in source.trace_repeats:
        unit = (repeat.model, repeat.country, repeat.topic)
        counts[*unit, Outcome.OK.value] -= repeat.answered
        counts[*unit, repeat.first_outcome] += repeat.answered
    return [OutcomeCount(*group, n) for group, n in counts.items() if n]


def _build_refusal_rows(
    answer_counts: Sequence[OutcomeCount], group_by: Literal["model", "country", "topic"]
) -> list[RefusalRow]:
    """Build one row per model, country or topic, the largest share of refusals first."""
    groups: dict[str, list[OutcomeCount]] = defaultdict(list)
    for count in answer_counts:
        groups[getattr(count, group_by)].append(count)
    shares = shares_over_units([_share_table(group, group_by) for group in groups.values()])
    rows = [RefusalRow(name=name, share=share) for name, share in zip(groups, shares, strict=True)]
    return sorted(rows, key=lambda row: (-(row.share.value or 0.0), row.name))


def _share_table(answer_counts: Sequence[OutcomeCount], group_by: str = "") -> ShareTable:
    """Refusals and answers with the units that are resampled: countries and topics, or items, but not `group_by`."""
    units = sampling_units([count.country for count in answer_counts], [count.topic for count in answer_counts])
    return ShareTable(
        [count.n * (count.outcome == Outcome.REFUSED.value) for count in answer_counts],
        [count.n for count in answer_counts],
        {unit: labels for unit, labels in units.items() if unit != group_by},
    )
