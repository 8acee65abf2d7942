"""Write the report's plots to files: self-contained SVG, PNG and PDF made from it, and Vega-Lite."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from markupsafe import Markup

from auditor.atomic_files import make_folder, write_atomically
from auditor.extras import load_extra
from auditor.reports.data.report_schema import Report
from auditor.reports.pages.report_view import ReportView
from auditor.reports.pages.vega_lite import iterate_vega_lite_specs
from auditor.text_safety import slugify

PlotFormat = Literal["svg", "png", "pdf", "vega"]

FILE_SUFFIXES: Mapping[PlotFormat, str] = {"svg": ".svg", "png": ".png", "pdf": ".pdf", "vega": ".vl.json"}
PNG_SCALE = 2
"""Pixels for each SVG unit."""
_CSS_RULE_PATTERN = re.compile(r"(?:^|(?<=\}))\s*((?:svg|\.t\d|rect\.)[^{}]*)\{([^{}]*)\}", re.MULTILINE)


def iterate_plots(report: Report) -> Iterator[tuple[str, Markup]]:
    """Yield (name, SVG) of every plot for which the report has figures."""
    view = ReportView(report)
    if not view.columns:
        return
    yield "agreement", view.forest_plot
    yield "regions", view.region_plot
    yield "self-consistency", view.consistency_plot
    if report.methods:
        yield "direct-and-logprob", view.method_plot
    if view.world_map.svg:
        yield "map", view.world_map.svg
    for column, picture in view.scatter_plots:
        yield f"scatter-{slugify(column.label)}", picture


def standalone_svg(plot_svg: Markup) -> str:
    """Convert a plot to a self-contained SVG file: add the page's CSS rules with the colours of the light theme."""
    width, height = _viewbox_size(plot_svg)
    opening_tag = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
    svg_body = str(plot_svg).replace("<svg", opening_tag, 1)
    style = f"<style>{_plot_stylesheet()} text {{ font-family: sans-serif; }}</style>"
    background = '<rect width="100%" height="100%" style="fill: #fff; stroke: none"/>'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + svg_body.replace(">", f">{style}{background}", 1) + "\n"


def write_plots(report: Report, folder: Path, plot_format: PlotFormat = "svg") -> list[Path]:
    """Write every plot to a folder, each file atomically. Plots of equal names get a numbered suffix.

    Args:
        plot_format: `svg`; `png` or `pdf`, which need the extra `plots`; `vega`, a Vega-Lite specification with data.

    Returns:
        Paths of the files.

    Raises:
        UsageError: the folder cannot be written to, or the extra is not installed.
    """
    plot_files = _render_plot_files(report, plot_format)
    make_folder(folder)
    written: list[Path] = []
    for name, content in plot_files:
        used_names = {path.name for path in written}
        candidate_names = (name if not i else f"{name}-{i + 1}" for i in range(len(used_names) + 1))
        path = folder / next(
            file_name
            for candidate in candidate_names
            if (file_name := f"{candidate}{FILE_SUFFIXES[plot_format]}") not in used_names
        )
        write_atomically(content, path)
        written.append(path)
    return written


def _render_plot_files(report: Report, plot_format: PlotFormat) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file, rendered one by one.

    Raises:
        UsageError: the extra `plots` is not installed; raised by the call, before the first file is rendered.
    """
    if plot_format == "vega":
        named_specs = (
            (name, json.dumps(spec, indent=1, ensure_ascii=False) + "\n")
            for name, spec in iterate_vega_lite_specs(report)
        )
        return ((name, text.encode()) for name, text in named_specs)
    named_svgs = ((name, standalone_svg(picture)) for name, picture in iterate_plots(report))
    if plot_format == "svg":
        return ((name, text.encode()) for name, text in named_svgs)
    vl_convert = load_extra("vl_convert", "plots")  # it converts Vega-Lite, and any SVG
    if plot_format == "png":
        return ((name, vl_convert.svg_to_png(text, scale=PNG_SCALE)) for name, text in named_svgs)
    return ((name, vl_convert.svg_to_pdf(text)) for name, text in named_svgs)


def _viewbox_size(plot_svg: Markup) -> tuple[float, float]:
    """Width and height of a plot, from its viewBox."""
    view_box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', str(plot_svg))
    assert view_box is not None
    return float(view_box[1]), float(view_box[2])


@cache
def _plot_stylesheet() -> str:
    """CSS rules of plots from the page's stylesheet, with the colour variables of the light theme filled in."""
    css = (resources.files("auditor.reports") / "templates" / "report.css").read_text(encoding="utf-8")
    light_theme = dict(re.findall(r"--([\w-]+):\s*([^;]+);", css.split("@media", 1)[0]))
    rules = " ".join(
        f"{_drop_legend_selectors(match[1])} {{ {match[2].strip()} }}"
        for match in _CSS_RULE_PATTERN.finditer(css.split("@media print")[0])
    )
    return re.sub(r"var\(--([\w-]+)\)", lambda match: light_theme.get(match[1], "currentColor"), rules)


def _drop_legend_selectors(selectors: str) -> str:
    """Drop the selectors of a CSS rule that are for the page's legends (`i.…`), which are not in the plot."""
    return ", ".join(selector.strip() for selector in selectors.split(",") if not selector.strip().startswith("i."))
