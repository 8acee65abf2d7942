"""The report's plots as Vega-Lite: their figures and how they are drawn, for whoever wants to draw them otherwise.

Each specification holds its data and names nothing outside itself but the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from auditor.reports.estimate_conversion import has_rescaled_scores
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages import alignment_wording
from auditor.reports.pages.heat_maps import ScoreColumn
from auditor.reports.pages.report_view import ReportView
from auditor.reports.pages.world_map import layout_tiles, mean_error_by_country
from auditor.reports.report_schema import Report
from auditor.text_safety import slugify

VEGA_LITE_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
R_TITLE, R_DIFFERENCE_TITLE, MAE_TITLE, COSINE_TITLE = "Pearson r", "Δr", "MAE", "mean cosine"
TILE_SIZE_PX = 34
"""Pixels of a country's square."""

VegaLiteSpec = dict[str, Any]
VegaLiteRow = Mapping[str, object]


def iterate_vega_lite_specs(report: Report) -> Iterator[tuple[str, VegaLiteSpec]]:
    """Name and specification of every plot that the report has figures for, by the names of `plots`."""
    view = ReportView(report)
    if not view.columns:
        return
    ranked = [
        {
            "name": column.label,
            "value": answer.row.pearson_r,
            **_interval_fields(alignment_wording.two_way_interval(answer.row)),
        }
        for column, answer in view.ranked_alignments
    ]
    regions = [r for r in report.regions.rows if not has_rescaled_scores(r.method)]
    yield "agreement", _interval_spec(ranked, R_TITLE, (-1, 1))
    yield (
        "regions",
        _interval_spec(
            [_estimate_row(f"{view.column_label(r.method, r.model)}, {r.region}", r.mae) for r in regions], MAE_TITLE
        ),
    )
    steady = [_estimate_row(view.column_label(r.method, r.model), r.cosine) for r in report.self_consistency]
    yield "self-consistency", _interval_spec(steady, COSINE_TITLE)
    if report.methods:
        yield (
            "direct-and-logprob",
            _interval_spec([_estimate_row(r.model, r.difference) for r in report.methods], R_DIFFERENCE_TITLE),
        )
    if placed := _tile_rows(report):
        yield "map", _map_spec(placed)
    for column in view.columns:
        yield f"scatter-{slugify(column.label)}", _scatter_spec(report, column)


def _estimate_row(name: str, estimate: Estimate) -> VegaLiteRow:
    return {"name": name, "value": estimate.value, **_interval_fields((estimate.ci_low, estimate.ci_high))}


def _interval_fields(interval: tuple[float | None, float | None]) -> dict[str, float | None]:
    return {"low": interval[0], "high": interval[1]}


def _interval_spec(rows: Sequence[VegaLiteRow], title: str, domain: Sequence[float] | None = None) -> VegaLiteSpec:
    """A dot and its 95% interval for each row; a row without a value has neither."""
    x: VegaLiteSpec = {"type": "quantitative", "title": f"{title}, with 95% interval"}
    if domain is not None:
        x["scale"] = {"domain": list(domain)}
    y = {"field": "name", "type": "nominal", "sort": None, "title": None}
    rule = {"mark": "rule", "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y}}
    dot = {"mark": {"type": "point", "filled": True}, "encoding": {"x": x | {"field": "value"}, "y": y}}
    return _build_spec(rows, layer=[rule, dot])


def _scatter_spec(report: Report, column: ScoreColumn) -> VegaLiteSpec:
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
    return _build_spec(both, mark="point", encoding={"x": x, "y": y, "tooltip": tip})


def _tile_rows(report: Report) -> list[VegaLiteRow]:
    values = mean_error_by_country(report.countries)
    return [
        {"country": t.country, "code": t.code, "column": t.column, "row": t.row, "mae": values[t.country]}
        for t in layout_tiles(list(values))[0]
    ]


def _map_spec(rows: Sequence[VegaLiteRow]) -> VegaLiteSpec:
    """A square for each country, where it lies on the report's map."""
    place = {
        axis: {
            "field": field,
            "type": "ordinal",
            "axis": None,
            "scale": {"domain": list(range(_axis_length(rows, field)))},
        }
        for axis, field in (("x", "column"), ("y", "row"))
    }
    colour = {"field": "mae", "type": "quantitative", "title": "mean error", "scale": {"scheme": "oranges"}}
    tip = [{"field": "country"}, {"field": "mae", "format": ".2f"}]
    squares = {"mark": "rect", "encoding": place | {"color": colour, "tooltip": tip}}
    codes = {"mark": {"type": "text", "fontSize": 9}, "encoding": place | {"text": {"field": "code"}}}
    return _build_spec(rows, layer=[squares, codes], width={"step": TILE_SIZE_PX}, height={"step": TILE_SIZE_PX})


def _axis_length(rows: Iterable[VegaLiteRow], field: str) -> int:
    return max(int(str(row[field])) for row in rows) + 1


def _build_spec(rows: Sequence[VegaLiteRow], **properties: object) -> VegaLiteSpec:
    return {"$schema": VEGA_LITE_SCHEMA, "data": {"values": [dict(row) for row in rows]}, **properties}
