"""Cells of a published table with our figures."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.metrics.estimate import Estimate
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.experiment import FigureSource
from auditor.reports.data.replication import Departure, Mark, NotRun, PublishedCell, RecomputedCell


def fill_cell(
    published: PublishedCell,
    estimate: Estimate,
    measured: Sequence[MeasuredAudit],
    source: FigureSource,
    model: str,
    mark: Mark,
    departures: Sequence[Departure],
) -> RecomputedCell:
    """A cell with our figure, or with the reason why the report has none."""
    data = ", ".join(audit.name for audit in measured)
    if estimate.value is None:
        return explain_cell(published, "no_value", source, data=data, model=model, detail=estimate.reason or "")
    is_published = published.value is not None
    return RecomputedCell(
        published=published,
        recomputed=estimate,
        difference=estimate.value - (published.value or 0) * published.scale if is_published else None,
        detail=", ".join(filter(None, (data, source.label, model if published.printed else ""))),
        data=data,
        unit=source.label,
        model=model,
        audit=", ".join(audit.report.audit.name for audit in measured),
        mark=mark,
        departures=[departure.id for departure in departures],
    )


def explain_cell(
    published: PublishedCell,
    reason: NotRun,
    source: FigureSource | None = None,
    *,
    data: str = "",
    model: str = "",
    detail: str = "",
) -> RecomputedCell:
    """A cell without a figure of ours.

    Args:
        data: name of the survey or data set.
        detail: more on the reason.
    """
    unit = source.label if source else ""
    place = "" if reason == "no_audit" else ", ".join(filter(None, (data, unit, model if published.printed else "")))
    return RecomputedCell(
        published=published,
        recomputed=None,
        difference=None,
        not_run=reason,
        detail=": ".join(filter(None, (place, detail))),
        data=data,
        unit=unit,
        model=model,
        mark="not_run",
    )
