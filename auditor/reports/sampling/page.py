"""An experiment on the direct probe as a page: accuracy, stability and cost on one plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from auditor.reports.pages.number_format import format_count, format_interval, format_number, format_percent, format_usd
from auditor.reports.pages.report_page import PagePlot, PageSection, PageTable, ReportPage
from auditor.reports.sampling.section import SamplingExperiment, SettingRow
from auditor.text_safety import escape_invisible

PLOT_WIDTH, PLOT_HEIGHT, LEFT_MARGIN, BOTTOM_MARGIN, TOP_MARGIN, RIGHT_MARGIN = 760, 340, 60, 46, 16, 150
N_COLOURS = 10
ToPixels = Callable[[float, float], tuple[float, float]]
SETTING_LABELS = {"samples": "samples a cell", "temperature": "temperature"}
SETTING_RANGE_LABELS = {"samples": "{:g} and {:g} samples a cell", "temperature": "temperatures {:g} and {:g}"}


def build_sampling_page(experiment: SamplingExperiment) -> ReportPage:
    """The whole experiment."""
    text = {
        "samples": "Fewer samples are random subsets of the recorded ones: the range of r and of the mean error is "
        "over these subsets, widened since they share samples, and says how far chance in the answers moves it; "
        "other countries and topics are no part of it.",
        "temperature": "Each temperature was asked anew; intervals are over countries and topics.",
    }[experiment.what]
    return ReportPage(
        kicker="Experiment",
        title=f"{experiment.audit}: {SETTING_LABELS[experiment.what]}",
        subtitle=f"{format_count(experiment.cells)} cells",
        headline=describe_experiment(experiment),
        warnings=[
            f"{experiment.what} = {setting} is not there: "
            f"{f'{format_count(n)} calls are missing' if n else 'it was not asked'}; --ask asks for what is missing."
            for setting, n in experiment.missing.items()
        ],
        sections=[
            PageSection(
                "Accuracy, stability and cost", [text], plots=_build_plots(experiment), tables=[_build_grid(experiment)]
            )
        ],
    )


def describe_experiment(experiment: SamplingExperiment) -> str:
    """What the least and the largest setting come to, model by model."""
    told = []
    for model in dict.fromkeys(row.model for row in experiment.rows):
        mine = [row for row in experiment.rows if row.model == model and row.r.value is not None]
        if len(mine) > 1:
            first, last = mine[0], mine[-1]
            between = SETTING_RANGE_LABELS[experiment.what].format(first.setting, last.setting)
            told.append(
                f"{model}: r goes from {format_number(first.r.value)} to {format_number(last.r.value)} and a cell's "
                f"scatter from {format_number(first.spread, 3)} to {format_number(last.spread, 3)} between {between}"
            )
    return f"{'; '.join(told[:4])}." if told else "There are not two settings to compare."


def _build_grid(experiment: SamplingExperiment) -> PageTable:
    columns = [
        "Model",
        SETTING_LABELS[experiment.what].capitalize(),
        "r",
        "Range of r",
        "MAE",
        "Range of MAE",
        "Scatter of a cell",
    ]
    rows = [
        [
            r.model, f"{r.setting:g}", format_number(r.r.value), _format_r_interval(r), format_number(r.mae.value),
            format_interval(r.mae.ci_low, r.mae.ci_high), format_number(r.spread, 3),
            format_percent(round(1000 * r.scored), 1000), format_count(r.calls), format_usd(r.usd),
        ]
        for r in experiment.rows
    ]  # fmt: skip
    caption = "Scatter: how far a cell's score moves when it is taken anew (standard deviation)."
    return PageTable(caption, [*columns, "Cells scored", "Calls", "Cost"], rows)


def _format_r_interval(row: SettingRow) -> str:
    return format_interval(row.r.ci_low, row.r.ci_high) if row.r.ci_low is not None else str(row.r.reason)


def _build_plots(experiment: SamplingExperiment) -> list[PagePlot]:
    rows = [row for row in experiment.rows if row.r.value is not None]
    if not rows:
        return []
    priced = all(row.usd is not None for row in rows) and any(row.usd for row in rows)
    what = "US dollars" if priced else "calls"
    caption = (
        f"Right: more {what}. Up: nearer agreement with people (r). The larger the dot, the further a cell's score "
        f"moves when it is taken anew. Numbers beside dots are {SETTING_LABELS[experiment.what]}; lines are ranges of "
        "r."
    )
    return [PagePlot(_render_plot(rows, priced, what, caption), caption)]


def _render_plot(rows: Sequence[SettingRow], is_priced: bool, x_label: str, caption: str) -> Markup:
    models = list(dict.fromkeys(row.model for row in rows))
    xs = [float(row.usd or 0.0) if is_priced else float(row.calls) for row in rows]
    ends = [v for row in rows for v in (row.r.value, row.r.ci_low, row.r.ci_high) if v is not None]
    low, high = min(ends) - 0.02, max(ends) + 0.02
    most, widest = max(xs) * 1.05 or 1.0, max((row.spread or 0.0 for row in rows), default=0.0) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT_MARGIN + (PLOT_WIDTH - LEFT_MARGIN - RIGHT_MARGIN) * x / most
        return round(across, 1), round(
            TOP_MARGIN + (PLOT_HEIGHT - TOP_MARGIN - BOTTOM_MARGIN) * (high - y) / (high - low), 1
        )

    parts = [_render_axes(low, high, most, place, x_label)]
    for row, x in zip(rows, xs, strict=True):
        at = models.index(row.model)
        parts.append(_render_dot(row, place, x, f"var(--c{at % N_COLOURS + 1})", 3 + 7 * (row.spread or 0.0) / widest))
    for i, model in enumerate(models):
        y = TOP_MARGIN + 14 + 18 * i
        colour = f"var(--c{i % N_COLOURS + 1})"
        parts.append(
            Markup('<circle cx="{}" cy="{}" r="5" style="fill:{}"/><text x="{}" y="{}">{}</text>').format(
                PLOT_WIDTH - RIGHT_MARGIN + 18,
                y - 4,
                colour,
                PLOT_WIDTH - RIGHT_MARGIN + 30,
                y,
                escape_invisible(model)[:18],
            )
        )
    frame = Markup('<svg class="interval" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>{}</svg>')
    return frame.format(PLOT_WIDTH, PLOT_HEIGHT, "Accuracy, stability and cost", caption, Markup("").join(parts))


def _render_axes(r_min: float, r_max: float, x_max: float, to_pixels: ToPixels, x_label: str) -> Markup:
    parts = []
    for value in axis_ticks(r_min, r_max):
        _, y = to_pixels(0, value)
        line = Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
            LEFT_MARGIN, PLOT_WIDTH - RIGHT_MARGIN, y, y
        )
        told = Markup('<text class="tick end" x="{}" y="{}">{}</text>').format(
            LEFT_MARGIN - 8, y + 4, format_number(value)
        )
        parts += [line, told]
    for value in axis_ticks(0.0, x_max):
        x, _ = to_pixels(value, r_min)
        tick = f"{value:,g}"
        parts.append(
            Markup('<text class="tick middle" x="{}" y="{}">{}</text>').format(
                x, PLOT_HEIGHT - BOTTOM_MARGIN + 18, tick
            )
        )
    parts.append(
        Markup('<text class="tick" x="{}" y="{}">{}</text>').format(
            LEFT_MARGIN, PLOT_HEIGHT - 8, f"{x_label}, and r upwards"
        )
    )
    return Markup("").join(parts)


def axis_ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high at even steps of 1, 2 or 5 times a power of ten, at most six of them."""
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(step for n in (1, 2, 5, 10) if (step := n * power) >= (high - low) / 5)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _render_dot(row: SettingRow, to_pixels: ToPixels, x: float, colour: str, radius: float) -> Markup:
    value = row.r.value or 0.0
    cx, cy = to_pixels(x, value)
    whisker = Markup("")
    if row.r.ci_low is not None and row.r.ci_high is not None:
        (_, top), (_, bottom) = to_pixels(x, row.r.ci_high), to_pixels(x, row.r.ci_low)
        whisker = Markup('<line x1="{}" x2="{}" y1="{}" y2="{}" style="stroke:{};stroke-width:2;opacity:.5"/>').format(
            cx, cx, top, bottom, colour
        )
    return whisker + Markup(
        '<circle cx="{}" cy="{}" r="{}" style="fill:{};fill-opacity:.75"><title>{}</title></circle>'
        '<text class="tick" x="{}" y="{}">{}</text>'
    ).format(cx, cy, round(radius, 1), colour, escape_invisible(row.model), cx + radius + 3, cy + 4, f"{row.setting:g}")
