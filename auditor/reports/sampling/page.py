"""An experiment on the direct probe as a page: accuracy, stability and cost on one plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from auditor.reports.pages.number_format import count, interval, number, share, usd
from auditor.reports.pages.report_page import Chapter, Grid, Page, Plot
from auditor.reports.sampling.section import SettingRow, Settings
from auditor.text_safety import visible

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 340, 60, 46, 16, 150
COLOURS = 10
Place = Callable[[float, float], tuple[float, float]]
WHAT = {"samples": "samples a cell", "temperature": "temperature"}
BETWEEN = {"samples": "{:g} and {:g} samples a cell", "temperature": "temperatures {:g} and {:g}"}


def page_of(found: Settings) -> Page:
    """The whole experiment."""
    text = {
        "samples": "Fewer samples are random subsets of the recorded ones: the range of r and of the mean error is "
        "over these subsets, widened since they share samples, and says how far chance in the answers moves it; "
        "other countries and topics are no part of it.",
        "temperature": "Each temperature was asked anew; intervals are over countries and topics.",
    }[found.what]
    return Page(
        kicker="Experiment",
        title=f"{found.audit}: {WHAT[found.what]}",
        subtitle=f"{count(found.cells)} cells",
        answer=headline(found),
        warnings=[
            f"{found.what} = {setting} is not there: {f'{count(n)} calls are missing' if n else 'it was not asked'}; "
            "--ask asks for what is missing."
            for setting, n in found.missing.items()
        ],
        chapters=[Chapter("Accuracy, stability and cost", [text], plots=_plots(found), grids=[_grid(found)])],
    )


def headline(found: Settings) -> str:
    """What the least and the largest setting come to, model by model."""
    told = []
    for model in dict.fromkeys(row.model for row in found.rows):
        mine = [row for row in found.rows if row.model == model and row.r.value is not None]
        if len(mine) > 1:
            first, last = mine[0], mine[-1]
            between = BETWEEN[found.what].format(first.setting, last.setting)
            told.append(
                f"{model}: r goes from {number(first.r.value)} to {number(last.r.value)} and a cell's scatter from "
                f"{number(first.spread, 3)} to {number(last.spread, 3)} between {between}"
            )
    return f"{'; '.join(told[:4])}." if told else "There are not two settings to compare."


def _grid(found: Settings) -> Grid:
    columns = ["Model", WHAT[found.what].capitalize(), "r", "Range of r", "MAE", "Range of MAE", "Scatter of a cell"]
    rows = [
        [
            r.model, f"{r.setting:g}", number(r.r.value), _between(r), number(r.mae.value),
            interval(r.mae.ci_low, r.mae.ci_high), number(r.spread, 3), share(round(1000 * r.scored), 1000),
            count(r.calls), usd(r.usd),
        ]
        for r in found.rows
    ]  # fmt: skip
    caption = "Scatter: how far a cell's score moves when it is taken anew (standard deviation)."
    return Grid(caption, [*columns, "Cells scored", "Calls", "Cost"], rows)


def _between(row: SettingRow) -> str:
    return interval(row.r.ci_low, row.r.ci_high) if row.r.ci_low is not None else str(row.r.reason)


def _plots(found: Settings) -> list[Plot]:
    rows = [row for row in found.rows if row.r.value is not None]
    if not rows:
        return []
    priced = all(row.usd is not None for row in rows) and any(row.usd for row in rows)
    what = "US dollars" if priced else "calls"
    caption = (
        f"Right: more {what}. Up: nearer agreement with people (r). The larger the dot, the further a cell's score "
        f"moves when it is taken anew. Numbers beside dots are {WHAT[found.what]}; lines are ranges of r."
    )
    return [Plot(_svg(rows, priced, what, caption), caption)]


def _svg(rows: Sequence[SettingRow], priced: bool, what: str, caption: str) -> Markup:
    models = list(dict.fromkeys(row.model for row in rows))
    xs = [float(row.usd or 0.0) if priced else float(row.calls) for row in rows]
    ends = [v for row in rows for v in (row.r.value, row.r.ci_low, row.r.ci_high) if v is not None]
    low, high = min(ends) - 0.02, max(ends) + 0.02
    most, widest = max(xs) * 1.05 or 1.0, max((row.spread or 0.0 for row in rows), default=0.0) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * x / most
        return round(across, 1), round(TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low), 1)

    parts = [_axes(low, high, most, place, what)]
    for row, x in zip(rows, xs, strict=True):
        at = models.index(row.model)
        parts.append(_dot(row, place, x, f"var(--c{at % COLOURS + 1})", 3 + 7 * (row.spread or 0.0) / widest))
    for i, model in enumerate(models):
        y = TOP + 14 + 18 * i
        colour = f"var(--c{i % COLOURS + 1})"
        parts.append(
            Markup('<circle cx="{}" cy="{}" r="5" style="fill:{}"/><text x="{}" y="{}">{}</text>').format(
                WIDTH - RIGHT + 18, y - 4, colour, WIDTH - RIGHT + 30, y, visible(model)[:18]
            )
        )
    frame = Markup('<svg class="interval" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>{}</svg>')
    return frame.format(WIDTH, HEIGHT, "Accuracy, stability and cost", caption, Markup("").join(parts))


def _axes(low: float, high: float, most: float, place: Place, what: str) -> Markup:
    parts = []
    for value in round_steps(low, high):
        _, y = place(0, value)
        line = Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(LEFT, WIDTH - RIGHT, y, y)
        told = Markup('<text class="tick end" x="{}" y="{}">{}</text>').format(LEFT - 8, y + 4, number(value))
        parts += [line, told]
    for value in round_steps(0.0, most):
        x, _ = place(value, low)
        tick = f"{value:,g}"
        parts.append(Markup('<text class="tick middle" x="{}" y="{}">{}</text>').format(x, HEIGHT - BOTTOM + 18, tick))
    parts.append(
        Markup('<text class="tick" x="{}" y="{}">{}</text>').format(LEFT, HEIGHT - 8, f"{what}, and r upwards")
    )
    return Markup("").join(parts)


def round_steps(low: float, high: float) -> list[float]:
    """Round numbers from low to high at even steps of 1, 2 or 5 times a power of ten, at most six of them."""
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(step for n in (1, 2, 5, 10) if (step := n * power) >= (high - low) / 5)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _dot(row: SettingRow, place: Place, x: float, colour: str, size: float) -> Markup:
    value = row.r.value or 0.0
    cx, cy = place(x, value)
    whisker = Markup("")
    if row.r.ci_low is not None and row.r.ci_high is not None:
        (_, top), (_, bottom) = place(x, row.r.ci_high), place(x, row.r.ci_low)
        whisker = Markup('<line x1="{}" x2="{}" y1="{}" y2="{}" style="stroke:{};stroke-width:2;opacity:.5"/>').format(
            cx, cx, top, bottom, colour
        )
    return whisker + Markup(
        '<circle cx="{}" cy="{}" r="{}" style="fill:{};fill-opacity:.75"><title>{}</title></circle>'
        '<text class="tick" x="{}" y="{}">{}</text>'
    ).format(cx, cy, round(size, 1), colour, visible(row.model), cx + size + 3, cy + 4, f"{row.setting:g}")
