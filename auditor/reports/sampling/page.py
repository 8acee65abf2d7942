"""Page of a sampling experiment: a table, and a plot of accuracy, stability and cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from auditor.reports.data.sampling.experiment import SamplingExperiment, SettingRow
from auditor.reports.number_format import format_count, format_interval, format_number, format_percent, format_usd
from auditor.reports.pages.report_page import PagePlot, PageSection, PageTable, ReportPage
from auditor.text_safety import escape_invisible

PLOT_WIDTH, PLOT_HEIGHT, LEFT_MARGIN, BOTTOM_MARGIN, TOP_MARGIN, RIGHT_MARGIN = 760, 340, 60, 46, 16, 150
N_COLOURS = 10
ToPixels = Callable[[float, float], tuple[float, float]]
SETTING_LABELS = {"samples": "samples a cell", "temperature": "temperature"}
SETTING_RANGE_LABELS = {"samples": "{:g} and {:g} samples a cell", "temperature": "temperatures {:g} and {:g}"}


def build_sampling_page(experiment: SamplingExperiment) -> ReportPage:
    """Build the page of an experiment."""
    explanation = {
        "samples": "Fewer samples are random subsets of the recorded ones: the range of r and of the mean error is "
        "over these subsets, widened since they share samples, and says how far chance in the answers moves it; "
        "other countries and topics are no part of it.",
        "temperature": "Each temperature was asked anew; intervals are over countries and topics.",
    }[experiment.what]  # the setting that is varied
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
                "Accuracy, stability and cost",
                [explanation],
                plots=_build_plots(experiment),
                tables=[_build_table(experiment)],
            )
        ],
    )


def describe_experiment(experiment: SamplingExperiment) -> str:
    """Describe the change from the smallest to the largest setting, by model."""
    changes = []
    for model in dict.fromkeys(row.model for row in experiment.rows):
        model_rows = [row for row in experiment.rows if row.model == model and row.r.value is not None]
        if len(model_rows) > 1:
            first_row, last_row = model_rows[0], model_rows[-1]
            setting_range = SETTING_RANGE_LABELS[experiment.what].format(first_row.setting, last_row.setting)
            changes.append(
                f"{model}: r goes from {format_number(first_row.r.value)} to {format_number(last_row.r.value)} "
                f"and a cell's scatter from {format_number(first_row.spread, 3)} to "
                f"{format_number(last_row.spread, 3)} between {setting_range}"
            )
    return f"{'; '.join(changes[:4])}." if changes else "There are not two settings to compare."


def _build_table(experiment: SamplingExperiment) -> PageTable:
    """Build the table with one row per model and setting."""
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
            row.model, f"{row.setting:g}", format_number(row.r.value), _format_r_interval(row),
            format_number(row.mae.value), format_interval(row.mae.ci_low, row.mae.ci_high),
            format_number(row.spread, 3), format_percent(round(1000 * row.scored), 1000),
            format_count(row.calls), format_usd(row.usd),
        ]
        for row in experiment.rows
    ]  # fmt: skip
    caption = "Scatter: how far a cell's score moves when it is taken anew (standard deviation)."
    return PageTable(caption, [*columns, "Cells scored", "Calls", "Cost"], rows)


def _format_r_interval(row: SettingRow) -> str:
    return format_interval(row.r.ci_low, row.r.ci_high) if row.r.ci_low is not None else str(row.r.reason)


def _build_plots(experiment: SamplingExperiment) -> list[PagePlot]:
    """Build the plot of r against cost, or against calls where a price is unknown; empty where no r is known."""
    rows = [row for row in experiment.rows if row.r.value is not None]
    if not rows:
        return []
    has_prices = all(row.usd is not None for row in rows) and any(row.usd for row in rows)
    x_label = "US dollars" if has_prices else "calls"
    caption = (
        f"Right: more {x_label}. Up: nearer agreement with people (r). The larger the dot, the further a cell's score "
        f"moves when it is taken anew. Numbers beside dots are {SETTING_LABELS[experiment.what]}; lines are ranges of "
        "r."
    )
    return [PagePlot(_render_plot(rows, has_prices, x_label, caption), caption)]


def _render_plot(rows: Sequence[SettingRow], is_priced: bool, x_label: str, caption: str) -> Markup:
    """Draw an SVG of r against cost or calls: a dot per row, wider where scores scatter more, a colour per model."""
    models = list(dict.fromkeys(row.model for row in rows))
    xs = [float(row.usd or 0.0) if is_priced else float(row.calls) for row in rows]
    r_values = [
        r_value for row in rows for r_value in (row.r.value, row.r.ci_low, row.r.ci_high) if r_value is not None
    ]
    # A margin of 0.02 in r and of 5% in x, so that no dot lies on the frame.
    low, high = min(r_values) - 0.02, max(r_values) + 0.02
    x_max, max_spread = max(xs) * 1.05 or 1.0, max((row.spread or 0.0 for row in rows), default=0.0) or 1.0

    def to_pixels(x: float, y: float) -> tuple[float, float]:
        """Convert plot coordinates (cost or calls, r) to pixels."""
        x_pixels = LEFT_MARGIN + (PLOT_WIDTH - LEFT_MARGIN - RIGHT_MARGIN) * x / x_max
        return round(x_pixels, 1), round(
            TOP_MARGIN + (PLOT_HEIGHT - TOP_MARGIN - BOTTOM_MARGIN) * (high - y) / (high - low), 1
        )

    elements = [_render_axes(low, high, x_max, to_pixels, x_label)]
    for row, x in zip(rows, xs, strict=True):
        # The radius is 3 pixels without scatter, and up to 10 for the largest scatter.
        model_number = models.index(row.model)
        elements.append(
            _render_dot(
                row, to_pixels, x, f"var(--c{model_number % N_COLOURS + 1})", 3 + 7 * (row.spread or 0.0) / max_spread
            )
        )
    for i, model in enumerate(models):
        y = TOP_MARGIN + 14 + 18 * i
        colour = f"var(--c{i % N_COLOURS + 1})"
        elements.append(
            Markup('<circle cx="{}" cy="{}" r="5" style="fill:{}"/><text x="{}" y="{}">{}</text>').format(
                PLOT_WIDTH - RIGHT_MARGIN + 18,
                y - 4,
                colour,
                PLOT_WIDTH - RIGHT_MARGIN + 30,
                y,
                escape_invisible(model)[:18],
            )
        )
    svg = Markup('<svg class="interval" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>{}</svg>')
    return svg.format(PLOT_WIDTH, PLOT_HEIGHT, "Accuracy, stability and cost", caption, Markup("").join(elements))


def _render_axes(r_min: float, r_max: float, x_max: float, to_pixels: ToPixels, x_label: str) -> Markup:
    """Draw the grid lines and labels of both axes as SVG elements."""
    elements = []
    for value in axis_ticks(r_min, r_max):
        _, y = to_pixels(0, value)
        line = Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
            LEFT_MARGIN, PLOT_WIDTH - RIGHT_MARGIN, y, y
        )
        label = Markup('<text class="tick end" x="{}" y="{}">{}</text>').format(
            LEFT_MARGIN - 8, y + 4, format_number(value)
        )
        elements += [line, label]
    for value in axis_ticks(0.0, x_max):
        x, _ = to_pixels(value, r_min)
        tick = f"{value:,g}"
        elements.append(
            Markup('<text class="tick middle" x="{}" y="{}">{}</text>').format(
                x, PLOT_HEIGHT - BOTTOM_MARGIN + 18, tick
            )
        )
    elements.append(
        Markup('<text class="tick" x="{}" y="{}">{}</text>').format(
            LEFT_MARGIN, PLOT_HEIGHT - 8, f"{x_label}, and r upwards"
        )
    )
    return Markup("").join(elements)


def axis_ticks(low: float, high: float) -> list[float]:
    """Choose at most six tick values from low to high, in steps of 1, 2 or 5 times a power of ten."""
    # At most five steps: the largest power of ten below a fifth of the span, times the first factor that suffices.
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(step for n in (1, 2, 5, 10) if (step := n * power) >= (high - low) / 5)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _render_dot(row: SettingRow, to_pixels: ToPixels, x: float, colour: str, radius: float) -> Markup:
    """Draw a dot with the interval of r as a vertical line, labelled with the setting.

    `x` is the cost or number of calls; `radius` is in pixels.
    """
    r_value = row.r.value or 0.0
    cx, cy = to_pixels(x, r_value)
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
