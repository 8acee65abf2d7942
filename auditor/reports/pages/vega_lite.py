"""The report's plots as Vega-Lite specifications, which readers can restyle.

Each specification contains its data; its only external reference is the schema's address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from auditor.metrics.estimate import Estimate
from auditor.reports.data.estimate_conversion import has_rescaled_scores
from auditor.reports.data.report_schema import Report
from auditor.reports.pages import alignment_wording
from auditor.reports.pages.heat_maps import ScoreColumn
from auditor.reports.pages.report_view import ReportView
from auditor.reports.pages.world_map import layout_tiles, mean_error_by_country
from auditor.text_safety import slugify

VEGA_LITE_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
R_TITLE, R_DIFFERENCE_TITLE, MAE_TITLE, COSINE_TITLE = "Pearson r", "Δr", "MAE", "mean cosine"
TILE_SIZE_PX = 34
"""Width and height of a country's square on the map."""

VegaLiteSpec = dict[str, Any]
VegaLiteRow = Mapping[str, object]


def iterate_vega_lite_specs(report: Report) -> Iterator[tuple[str, VegaLiteSpec]]:
    """Yield (name, specification) of every plot for which the report has figures, named as in `iterate_plots`."""
    view = ReportView(report)
    if not view.columns:
        return
    alignment_rows = [
        {
            "name": column.label,
            "value": statement.row.pearson_r,
            **_interval_fields(alignment_wording.two_way_interval(statement.row)),
        }
        for column, statement in view.ranked_alignments
    ]
    region_rows = [row for row in report.regions.rows if not has_rescaled_scores(row.method)]
    yield "agreement", _interval_spec(alignment_rows, R_TITLE, (-1, 1))
    yield (
        "regions",
        _interval_spec(
            [
                _estimate_row(f"{view.column_label(row.method, row.model)}, {row.region}", row.mae)
                for row in region_rows
            ],
            MAE_TITLE,
        ),
    )
    consistency_rows = [
        _estimate_row(view.column_label(row.method, row.model), row.cosine) for row in report.self_consistency
    ]
    yield "self-consistency", _interval_spec(consistency_rows, COSINE_TITLE)
    if report.methods:
        yield (
            "direct-and-logprob",
            _interval_spec([_estimate_row(row.model, row.difference) for row in report.methods], R_DIFFERENCE_TITLE),
        )
    if tile_rows := _tile_rows(report):
        yield "map", _map_spec(tile_rows)
    for column in view.columns:
        yield f"scatter-{slugify(column.label)}", _scatter_spec(report, column)


def _estimate_row(name: str, estimate: Estimate) -> VegaLiteRow:
    """Data row of an interval plot: name, value, and the ends of the interval; None where missing."""
    return {"name": name, "value": estimate.value, **_interval_fields((estimate.ci_low, estimate.ci_high))}


def _interval_fields(interval: tuple[float | None, float | None]) -> dict[str, float | None]:
    """The ends of an interval (low, high) as fields of a data row."""
    return {"low": interval[0], "high": interval[1]}


def _interval_spec(rows: Sequence[VegaLiteRow], title: str, domain: Sequence[float] | None = None) -> VegaLiteSpec:
    """Specify a plot of a point and its 95% interval for each row; a row without a value has neither."""
    x: VegaLiteSpec = {"type": "quantitative", "title": f"{title}, with 95% interval"}
    if domain is not None:
        x["scale"] = {"domain": list(domain)}
    y = {"field": "name", "type": "nominal", "sort": None, "title": None}
    rule_layer = {"mark": "rule", "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y}}
    point_layer = {"mark": {"type": "point", "filled": True}, "encoding": {"x": x | {"field": "value"}, "y": y}}
    return _build_spec(rows, layer=[rule_layer, point_layer])


def _scatter_spec(report: Report, column: ScoreColumn) -> VegaLiteSpec:
    """Specify a scatter plot of the model's scores against people's."""
    rows = [
        {
            "country": cell.country,
            "topic": cell.topic,
            "people": cell.survey,
            "model": cell.scores[column.method].get(column.model),
        }
        for cell in report.audit.cells
    ]
    scored_rows = [row for row in rows if row["people"] is not None and row["model"] is not None]
    axis_titles = {"people": "what people say", "model": f"what {column.label} says"}
    x, y = (
        {"field": field, "type": "quantitative", "title": title, "scale": {"domain": [-1, 1]}}
        for field, title in axis_titles.items()
    )
    tooltip = [{"field": field} for field in ("country", "topic", "people", "model")]
    return _build_spec(scored_rows, mark="point", encoding={"x": x, "y": y, "tooltip": tooltip})


def _tile_rows(report: Report) -> list[VegaLiteRow]:
    """Data rows of the map: one per country with coordinates, with its position on the grid and its mean error."""
    mean_errors = mean_error_by_country(report.countries)
    return [
        {
            "country": tile.country,
            "code": tile.code,
            "column": tile.column,
            "row": tile.row,
            "mae": mean_errors[tile.country],
        }
        for tile in layout_tiles(list(mean_errors))[0]
    ]


def _map_spec(rows: Sequence[VegaLiteRow]) -> VegaLiteSpec:
    """Specify a tile map: a square for each country at its position on the report's map, coloured by MAE."""
    position = {
        axis: {
            "field": field,
            "type": "ordinal",
            "axis": None,
            "scale": {"domain": list(range(_axis_length(rows, field)))},
        }
        for axis, field in (("x", "column"), ("y", "row"))
    }
    colour = {"field": "mae", "type": "quantitative", "title": "mean error", "scale": {"scheme": "oranges"}}
    tooltip = [{"field": "country"}, {"field": "mae", "format": ".2f"}]
    square_layer = {"mark": "rect", "encoding": position | {"color": colour, "tooltip": tooltip}}
    code_layer = {"mark": {"type": "text", "fontSize": 9}, "encoding": position | {"text": {"field": "code"}}}
    return _build_spec(
        rows, layer=[square_layer, code_layer], width={"step": TILE_SIZE_PX}, height={"step": TILE_SIZE_PX}
    )


def _axis_length(rows: Iterable[VegaLiteRow], field: str) -> int:
    """Number of rows or columns of the grid: the largest index in a field, plus one."""
    return max(int(str(row[field])) for row in rows) + 1


def _build_spec(rows: Sequence[VegaLiteRow], **properties: object) -> VegaLiteSpec:
    """Build a specification from its data rows and other properties at its top level, such as `layer` and `mark`."""
    return {"$schema": VEGA_LITE_SCHEMA, "data": {"values": [dict(row) for row in rows]}, **properties}
