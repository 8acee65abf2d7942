"""Whom models refuse to speak about, and how often they had to be asked twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from auditor.domain import Outcome
from auditor.metrics.two_way_means import crossed_share
from auditor.reports.estimate_conversion import clustered
from auditor.reports.measurement_schema import Estimate, Part
from auditor.reports.report_source import Source
from auditor.storage.count_queries import OutcomeTally

ANSWERS = frozenset(o.value for o in Outcome if o.is_answer)


class RefusalRow(Part):
    """How often an answer about something was a refusal."""

    name: str
    """The model, country or topic."""
    share: Estimate
    """Refusals / answers, over all models; those that never came are in neither. Interval over countries and topics,
    or over cells, where there are too few of them."""


class RefusalsPart(Part):
    """Refusals to the direct question, most often refused first."""

    total: Estimate
    models: list[RefusalRow]
    countries: list[RefusalRow]
    topics: list[RefusalRow]


class ReaskRow(Part):
    """How often a model's answer could not be read, and it was asked once more."""

    model: str
    asked: int
    read: int
    """Of these, how many then had a score."""


def refusals(source: Source) -> RefusalsPart | None:
    """Refusals by model, country and topic; None where no answer to a direct question is recorded."""
    answered = [t for t in source.traces if t.outcome in ANSWERS]
    if not answered:
        return None
    return RefusalsPart(
        total=_share(answered),
        models=_rows(answered, lambda t: t.model),
        countries=[] if source.survey.task else _rows(answered, lambda t: t.country),
        topics=_rows(answered, lambda t: t.topic),
    )


def repairs(source: Source) -> list[ReaskRow]:
    """One row for each model that was asked once more."""
    return [ReaskRow(model=r.model, asked=r.asked, read=r.read) for r in source.repairs]


def _rows(answered: Iterable[OutcomeTally], by: Callable[[OutcomeTally], str]) -> list[RefusalRow]:
    groups: dict[str, list[OutcomeTally]] = {}
    for tally in answered:
        groups.setdefault(by(tally), []).append(tally)
    rows = [RefusalRow(name=name, share=_share(tallies)) for name, tallies in groups.items()]
    return sorted(rows, key=lambda row: (-(row.share.value or 0.0), row.name))


def _share(tallies: Iterable[OutcomeTally]) -> Estimate:
    refused, total = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for tally in tallies:
        cell = (tally.country, tally.topic)
        refused[cell] += tally.n * (tally.outcome == Outcome.REFUSED.value)
        total[cell] += tally.n
    countries, topics = zip(*total, strict=True)
    found = crossed_share([refused[cell] for cell in total], list(total.values()), countries, topics)
    return clustered(found, "no answer is recorded")
