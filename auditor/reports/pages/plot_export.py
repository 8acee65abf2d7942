"""The report's plots as files of their own: SVG with its colours in it, PNG and PDF of that, and Vega-Lite."""

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
from auditor.reports.pages.report_view import ReportView
from auditor.reports.pages.vega_lite import iterate_vega_lite_specs
from auditor.reports.report_schema import Report
from auditor.text_safety import slugify

PlotFormat = Literal["svg", "png", "pdf", "vega"]

FILE_SUFFIXES: Mapping[PlotFormat, str] = {"svg": ".svg", "png": ".png", "pdf": ".pdf", "vega": ".vl.json"}
PNG_SCALE = 2
"""Pixels for each unit of a plot."""
_CSS_RULE_PATTERN = re.compile(r"(?:^|(?<=\}))\s*((?:svg|\.t\d|rect\.)[^{}]*)\{([^{}]*)\}", re.MULTILINE)


def iterate_plots(report: Report) -> Iterator[tuple[str, Markup]]:
    """Name and picture of every plot that the report has figures for."""
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
    """A plot as an SVG file that needs nothing beside it: the page's own rules, with the colours of the light theme."""
    width, height = _viewbox_size(plot_svg)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
    body = str(plot_svg).replace("<svg", head, 1)
    style = f"<style>{_plot_stylesheet()} text {{ font-family: sans-serif; }}</style>"
    paper = '<rect width="100%" height="100%" style="fill: #fff; stroke: none"/>'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + body.replace(">", f">{style}{paper}", 1) + "\n"


def write_plots(report: Report, folder: Path, plot_format: PlotFormat = "svg") -> list[Path]:
    """Write every plot to a folder; each file appears whole or not at all.

    Args:
        form: `svg`; `png` and `pdf`, which the extra `plots` draws of it; `vega`, the figures and how to draw them.

    Raises:
        UsageError: the folder cannot be written to, or the extra is not installed.
    """
    drawn = _render_plot_files(report, plot_format)
    make_folder(folder)
    written: list[Path] = []
    for name, content in drawn:
        taken = {path.name for path in written}
        numbered = (name if not i else f"{name}-{i + 1}" for i in range(len(taken) + 1))
        path = folder / next(file for at in numbered if (file := f"{at}{FILE_SUFFIXES[plot_format]}") not in taken)
        write_atomically(content, path)
        written.append(path)
    return written


def _render_plot_files(report: Report, plot_format: PlotFormat) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file; what draws it is looked for at once."""
    if plot_format == "vega":
        told = (
            (name, json.dumps(spec, indent=1, ensure_ascii=False) + "\n")
            for name, spec in iterate_vega_lite_specs(report)
        )
        return ((name, text.encode()) for name, text in told)
    made = ((name, standalone_svg(picture)) for name, picture in iterate_plots(report))
    if plot_format == "svg":
        return ((name, text.encode()) for name, text in made)
    library = load_extra("vl_convert", "plots")  # it converts Vega-Lite, and any SVG
    if plot_format == "png":
        return ((name, library.svg_to_png(text, scale=PNG_SCALE)) for name, text in made)
    return ((name, library.svg_to_pdf(text)) for name, text in made)


def _viewbox_size(plot_svg: Markup) -> tuple[float, float]:
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', str(plot_svg))
    assert found is not None
    return float(found[1]), float(found[2])


@cache
def _plot_stylesheet() -> str:
    css = (resources.files("auditor.reports") / "templates" / "report.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--([\w-]+):\s*([^;]+);", css.split("@media", 1)[0]))
    rules = " ".join(
        f"{_drop_legend_selectors(m[1])} {{ {m[2].strip()} }}"
        for m in _CSS_RULE_PATTERN.finditer(css.split("@media print")[0])
    )
    return re.sub(r"var\(--([\w-]+)\)", lambda m: light.get(m[1], "currentColor"), rules)


def _drop_legend_selectors(selectors: str) -> str:
    return ", ".join(part.strip() for part in selectors.split(",") if not part.strip().startswith("i."))
