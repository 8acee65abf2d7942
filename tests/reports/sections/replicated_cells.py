"""Cells of published tables with figures, for tests of their documents."""

from __future__ import annotations

from typing import Any

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.replication import NotRun, PublishedCell, RecomputedCell


def published(row: str = "GPT", column: str = "r", printed: str = "0.40", **fields: Any) -> PublishedCell:
    defaults: dict[str, Any] = {
        "table": "1", "title": "Agreement", "value": float(printed.rstrip("%") or 0) / (100 if "%" in printed else 1),
        "quote": printed, "place": "Table 1", "origin": "paper",
    }  # fmt: skip
    if not printed:
        defaults["value"] = None
    return PublishedCell(row=row, column=column, printed=printed, **{**defaults, **fields})


def filled(place: PublishedCell, value: float, **fields: Any) -> RecomputedCell:
    """A cell with a figure of ours on the data set WVS."""
    defaults: dict[str, Any] = {"data": "WVS", "mark": "same_definition", "audit": "rep"}
    difference = None if place.value is None else value - place.value * place.scale
    estimate = Estimate(value, 9, value - 0.1, value + 0.1)
    return RecomputedCell(published=place, recomputed=estimate, difference=difference, **{**defaults, **fields})


def own_figure(model: str, value: float, column: str = "r", **fields: Any) -> RecomputedCell:
    """A cell of a row of our model."""
    return filled(published(model, column, ""), value, is_own_row=True, model=model, **fields)


def missing(place: PublishedCell, reason: NotRun, **fields: Any) -> RecomputedCell:
    """A cell without a figure of ours."""
    return RecomputedCell(published=place, recomputed=None, difference=None, not_run=reason, mark="not_run", **fields)
