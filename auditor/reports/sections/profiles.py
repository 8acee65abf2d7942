"""Profiles of models by country and topic: where a model is wrong, and in which direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from auditor.metrics.estimate import Estimate
from auditor.reports.document import Figure, HeatMap, HeatMapCell
from auditor.reports.number_format import describe_estimate, format_signed
from auditor.reports.sections.estimate_plots import build_interval_figure

SHADE_BOUNDS = (0.1, 0.3, 0.5, 0.7)
"""Absolute differences of scores at which the shade of a cell changes."""
LOW_LABEL, HIGH_LABEL = "stricter than people", "more permissive than people"
MAX_ROWS = 12
"""Rows of a profile; the table has all."""
NO_SCORE = HeatMapCell(None, "×", "no score of the model or of people", "no_answer")

EstimatesBySeries = Mapping[str, Estimate]
"""Estimates by the label of their series."""


def build_profile(
    noun: str, bias: Mapping[str, EstimatesBySeries], labels: Sequence[str], *, show_legend: bool
) -> Figure | HeatMap:
    """Show the signed difference from people by country or topic, largest first: of one model as a plot with intervals.

    Args:
        noun: `country` or `topic`.
        bias: mean signed differences by country or topic, largest first.
        labels: the series of scores; several are shown as the columns of a heat map.
    """
    title = f"Difference from people by {noun}"
    shown = [*bias][:MAX_ROWS]
    if len(labels) == 1:
        estimates = [(name, bias[name][labels[0]]) for name in shown if labels[0] in bias[name]]
        axis = "← stricter than people · more permissive →"
        return build_interval_figure(f"profile-{noun}", title, estimates, axis, table_id=f"difference-by-{noun}")
    rows = [(name, [_build_cell(bias[name].get(label)) for label in labels]) for name in shown]
    states: dict[str, str] = {NO_SCORE.state: NO_SCORE.tooltip} if any(NO_SCORE in cells for _, cells in rows) else {}
    return HeatMap(
        label=f"{title}: each model’s mean score minus people’s",
        columns=labels,
        rows=rows,
        bounds=SHADE_BOUNDS,
        low_label=LOW_LABEL,
        high_label=HIGH_LABEL,
        state_labels=states,
        show_legend=show_legend,
    )


def sort_by_size(estimates: Mapping[str, EstimatesBySeries]) -> dict[str, EstimatesBySeries]:
    """Countries or topics by the mean absolute value of their estimates, largest first; those without any are last."""
    return dict(sorted(estimates.items(), key=lambda item: -_mean_size(item[1])))


def format_short_difference(difference: float) -> str:
    """Format a difference with two decimals and no leading zero; empty for one that has no colour."""
    return format_signed(difference).replace("0.", ".") if abs(difference) >= SHADE_BOUNDS[0] else ""


def _mean_size(estimates: EstimatesBySeries) -> float:
    """Mean absolute value of the estimates; -1 without one."""
    return fmean([abs(estimate.value) for estimate in estimates.values() if estimate.value is not None] or [-1.0])


def _build_cell(estimate: Estimate | None) -> HeatMapCell:
    """The heat map's cell of one estimate."""
    if estimate is None or estimate.value is None:
        return NO_SCORE
    tooltip = describe_estimate("", estimate, "cell", style="signed")
    return HeatMapCell(estimate.value, format_short_difference(estimate.value), tooltip)
