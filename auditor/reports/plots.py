"""The report's plots as files of their own: SVG with its colours in it, and through a browser PNG and PDF."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from markupsafe import Markup

from auditor.errors import UsageError
from auditor.reports.model import Report
from auditor.reports.render import write_report
from auditor.reports.views import View
from auditor.text import slug

Form = Literal["svg", "png", "pdf"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SCALE = 2
"""Pixels for each unit of a plot."""
TIME_LIMIT_S = 120
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
    return '<?xml version="1.0" encoding="utf-8"?>\n' + body.replace(">", f">{style}", 1) + "\n"


def write_plots(report: Report, folder: Path, form: Form = "svg") -> list[Path]:
    """Write every plot to a folder; each file appears whole or not at all.

    Args:
        form: `svg`; `png` and `pdf` are made by a browser.

    Raises:
        UsageError: the folder cannot be written to, or there is no browser for PNG and PDF.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror}.", "Name a folder of yours.") from None
    browser = None if form == "svg" else _browser()
    written: list[Path] = []
    for name, picture in plots(report):
        taken = {path.name for path in written}
        at = next(
            n for i in range(len(taken) + 1) if f"{(n := name if not i else f'{name}-{i + 1}')}.{form}" not in taken
        )
        path = folder / f"{at}.{form}"
        if browser is None:
            write_report(standalone(picture), path)
        else:
            _print(browser, picture, path, form)
        written.append(path)
    return written


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


def _browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise UsageError("PNG and PDF are drawn by a browser, and there is none.", "Install chromium, or take svg.")
    return found


def _print(browser: str, picture: Markup, path: Path, form: Form) -> None:
    width, height = (round(side) + 16 for side in _size(picture))
    with tempfile.TemporaryDirectory() as folder:
        page, made = Path(folder) / "plot.html", Path(folder) / path.name
        size = f"@page {{ size: {width}px {height}px; margin: 0; }} body {{ margin: 8px; background: #fff; }}"
        body = standalone(picture).split("\n", 1)[1]
        page.write_text(f"<!doctype html><meta charset=utf-8><style>{size}</style>{body}", encoding="utf-8")
        how = ["--no-pdf-header-footer", f"--print-to-pdf={made}"]
        if form == "png":
            how = [f"--screenshot={made}", f"--window-size={width},{height}", f"--force-device-scale-factor={SCALE}"]
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *how, page.as_uri()]
        done = subprocess.run(words, capture_output=True, timeout=TIME_LIMIT_S, check=False)
        if not made.is_file():
            raise UsageError(f"{path}: {browser} drew nothing (exit {done.returncode}).", "Take svg instead.")
        shutil.copyfile(made, path.with_name(f".{path.name}.part"))
        path.with_name(f".{path.name}.part").replace(path)
