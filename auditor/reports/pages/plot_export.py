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

from auditor.atomic_files import make_folder, write_whole
from auditor.extras import load_extra
from auditor.reports.pages.report_view import View
from auditor.reports.pages.vega_lite import specs
from auditor.reports.report_schema import Report
from auditor.text_safety import slug

Form = Literal["svg", "png", "pdf", "vega"]

SUFFIXES: Mapping[Form, str] = {"svg": ".svg", "png": ".png", "pdf": ".pdf", "vega": ".vl.json"}
SCALE = 2
"""Pixels for each unit of a plot."""
_RULE = re.compile(r"(?:^|(?<=\}))\s*((?:svg|\.t\d|rect\.)[^{}]*)\{([^{}]*)\}", re.MULTILINE)


def plots(report: Report) -> Iterator[tuple[str, Markup]]:
    """Name and picture of every plot that the report has figures for."""
    view = View(report)
    if not view.columns:
        return
    yield "agreement", view.forest
    yield "regions", view.region_plot
    yield "self-consistency", view.consistency_plot
    if report.methods:
        yield "direct-and-logprob", view.method_plot
    if view.world.svg:
        yield "map", view.world.svg
    for column, picture in view.scatters:
        yield f"scatter-{slug(column.label)}", picture


def standalone(picture: Markup) -> str:
    """A plot as an SVG file that needs nothing beside it: the page's own rules, with the colours of the light theme."""
    width, height = _size(picture)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
    body = str(picture).replace("<svg", head, 1)
    style = f"<style>{_style()} text {{ font-family: sans-serif; }}</style>"
    paper = '<rect width="100%" height="100%" style="fill: #fff; stroke: none"/>'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + body.replace(">", f">{style}{paper}", 1) + "\n"


def write_plots(report: Report, folder: Path, form: Form = "svg") -> list[Path]:
    """Write every plot to a folder; each file appears whole or not at all.

    Args:
        form: `svg`; `png` and `pdf`, which the extra `plots` draws of it; `vega`, the figures and how to draw them.

    Raises:
        UsageError: the folder cannot be written to, or the extra is not installed.
    """
    drawn = _files(report, form)
    make_folder(folder)
    written: list[Path] = []
    for name, content in drawn:
        taken = {path.name for path in written}
        numbered = (name if not i else f"{name}-{i + 1}" for i in range(len(taken) + 1))
        path = folder / next(file for at in numbered if (file := f"{at}{SUFFIXES[form]}") not in taken)
        write_whole(content, path)
        written.append(path)
    return written


def _files(report: Report, form: Form) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file; what draws it is looked for at once."""
    if form == "vega":
        told = ((name, json.dumps(spec, indent=1, ensure_ascii=False) + "\n") for name, spec in specs(report))
        return ((name, text.encode()) for name, text in told)
    made = ((name, standalone(picture)) for name, picture in plots(report))
    if form == "svg":
        return ((name, text.encode()) for name, text in made)
    library = load_extra("vl_convert", "plots")  # it converts Vega-Lite, and any SVG
    if form == "png":
        return ((name, library.svg_to_png(text, scale=SCALE)) for name, text in made)
    return ((name, library.svg_to_pdf(text)) for name, text in made)


def _size(picture: Markup) -> tuple[float, float]:
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', str(picture))
    assert found is not None
    return float(found[1]), float(found[2])


@cache
def _style() -> str:
    css = (resources.files("auditor.reports") / "templates" / "report.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--([\w-]+):\s*([^;]+);", css.split("@media", 1)[0]))
    rules = " ".join(f"{_selectors(m[1])} {{ {m[2].strip()} }}" for m in _RULE.finditer(css.split("@media print")[0]))
    return re.sub(r"var\(--([\w-]+)\)", lambda m: light.get(m[1], "currentColor"), rules)


def _selectors(text: str) -> str:
    return ", ".join(part.strip() for part in text.split(",") if not part.strip().startswith("i."))
