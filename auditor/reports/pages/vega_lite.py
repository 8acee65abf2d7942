"""The report's plots as Vega-Lite: their figures and how they are drawn, for whoever wants to draw them otherwise.

Each specification holds its data and names nothing outside itself but the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from auditor.reports.estimate_conversion import is_stretched
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages import alignment_wording
from auditor.reports.pages.heat_maps import Column
from auditor.reports.pages.report_view import View
from auditor.reports.pages.world_map import mean_errors, tiles
from auditor.reports.report_schema import Report
from auditor.text_safety import slug

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
R, DELTA, MAE, COSINE = "Pearson r", "Δr", "MAE", "mean cosine"
TILE = 34
"""Pixels of a country's square."""

Spec = dict[str, Any]
Row = Mapping[str, object]


def specs(report: Report) -> Iterator[tuple[str, Spec]]:
    """Name and specification of every plot that the report has figures for, by the names of `plots`."""
    view = View(report)
    if not view.columns:
        return
    ranked = [
        {"name": column.label, "value": answer.row.pearson_r, **_ends(alignment_wording.span(answer.row))}
        for column, answer in view.ranked
    ]
    regions = [r for r in report.regions.rows if not is_stretched(r.method)]
    yield "agreement", _intervals(ranked, R, (-1, 1))
    yield "regions", _intervals([_row(f"{view.label(r.method, r.model)}, {r.region}", r.mae) for r in regions], MAE)
    steady = [_row(view.label(r.method, r.model), r.cosine) for r in report.self_consistency]
    yield "self-consistency", _intervals(steady, COSINE)
    if report.methods:
        yield "direct-and-logprob", _intervals([_row(r.model, r.difference) for r in report.methods], DELTA)
    if placed := _tiles(report):
        yield "map", _map(placed)
    for column in view.columns:
        yield f"scatter-{slug(column.label)}", _scatter(report, column)


def _row(name: str, estimate: Estimate) -> Row:
    return {"name": name, "value": estimate.value, **_ends((estimate.ci_low, estimate.ci_high))}


def _ends(span: tuple[float | None, float | None]) -> dict[str, float | None]:
    return {"low": span[0], "high": span[1]}


def _intervals(rows: Sequence[Row], title: str, domain: Sequence[float] | None = None) -> Spec:
    """A dot and its 95% interval for each row; a row without a value has neither."""
    x: Spec = {"type": "quantitative", "title": f"{title}, with 95% interval"}
    if domain is not None:
        x["scale"] = {"domain": list(domain)}
    y = {"field": "name", "type": "nominal", "sort": None, "title": None}
    rule = {"mark": "rule", "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y}}
    dot = {"mark": {"type": "point", "filled": True}, "encoding": {"x": x | {"field": "value"}, "y": y}}
    return _spec(rows, layer=[rule, dot])


def _scatter(report: Report, column: Column) -> Spec:
    rows = [
        {"country": c.country, "topic": c.topic, "people": c.survey, "model": c.scores[column.method].get(column.model)}
        for c in report.audit.cells
    ]
    both = [row for row in rows if row["people"] is not None and row["model"] is not None]
    axes = {"people": "what people say", "model": f"what {column.label} says"}
    x, y = (
        {"field": field, "type": "quantitative", "title": title, "scale": {"domain": [-1, 1]}}
        for field, title in axes.items()
    )
    tip = [{"field": field} for field in ("country", "topic", "people", "model")]
    return _spec(both, mark="point", encoding={"x": x, "y": y, "tooltip": tip})


def _tiles(report: Report) -> list[Row]:
    values = mean_errors(report.countries)
    return [
        {"country": t.country, "code": t.code, "column": t.column, "row": t.row, "mae": values[t.country]}
        for t in tiles(list(values))[0]
    ]


def _map(rows: Sequence[Row]) -> Spec:
    """A square for each country, where it lies on the report's map."""
    place = {
        axis: {"field": field, "type": "ordinal", "axis": None, "scale": {"domain": list(range(_extent(rows, field)))}}
        for axis, field in (("x", "column"), ("y", "row"))
    }
    colour = {"field": "mae", "type": "quantitative", "title": "mean error", "scale": {"scheme": "oranges"}}
    tip = [{"field": "country"}, {"field": "mae", "format": ".2f"}]
    squares = {"mark": "rect", "encoding": place | {"color": colour, "tooltip": tip}}
    codes = {"mark": {"type": "text", "fontSize": 9}, "encoding": place | {"text": {"field": "code"}}}
    return _spec(rows, layer=[squares, codes], width={"step": TILE}, height={"step": TILE})


def _extent(rows: Iterable[Row], field: str) -> int:
    return max(int(str(row[field])) for row in rows) + 1


def _spec(rows: Sequence[Row], **drawn: object) -> Spec:
    return {"$schema": SCHEMA, "data": {"values": [dict(row) for row in rows]}, **drawn}
