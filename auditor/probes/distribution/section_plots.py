"""Figures of the section on distributions: examples of cells, gaps between groups, and steering by groups' names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.probes.distribution.figures.schema import (
    DistributionCellRow,
    DistributionGroupRow,
    DistributionReport,
)
from auditor.reports.charts.opinion_plots import Ridge, Step, gap_plot, ridge_plot, steering_plot
from auditor.reports.document import Block, Disclosure, Figure, FigureGrid
from auditor.reports.number_format import describe_estimate, format_number, pluralize
from auditor.reports.sections.phrasing import slugify_unique

MODES = {
    "verbalized": "stated shares",
    "sampled": "sampled answers",
    "tokens": "next-token probabilities",
}
RANKS = {"closest": "closest", "middle": "middling", "furthest": "furthest"}
MAX_OPEN_PLOTS = 4
"""Plots of gaps that are shown at once; further ones are in a disclosure."""


def build_examples(distribution: DistributionReport, ends: tuple[str, str]) -> list[Block]:
    """Ridge plots of the closest, middling and furthest cells of each model and mode; the first is open.

    Args:
        ends: meanings of the two ends of the scale.
    """
    by_series: dict[tuple[str, str], list[DistributionCellRow]] = {}
    for row in distribution.cells:
        by_series.setdefault((row.model, row.mode), []).append(row)
    plots: list[tuple[str, list[DistributionCellRow], Sequence[str]]] = []
    for (model, mode), rows in by_series.items():
        by_scale: dict[tuple[str, ...], list[DistributionCellRow]] = {}
        for row in rows:
            by_scale.setdefault(tuple(distribution.scales.get(row.topic, distribution.points)), []).append(row)
        for points, of_scale in by_scale.items():
            scale = f", answers {points[0]} to {points[-1]}" if len(by_scale) > 1 else ""
            plots.append((f"{model}, {MODES[mode]}{scale}", of_scale, points))
    slugs = slugify_unique([name for name, _, _ in plots])
    figures = [
        _build_ridges(f"opinions-{slug}", name, rows, points, () if distribution.scales else ends)
        for slug, (name, rows, points) in zip(slugs, plots, strict=True)
    ]
    return _open_first(figures)


def build_gap_figures(distribution: DistributionReport) -> list[Block]:
    """Scatter plots of gaps, people against model, for each two groups."""
    rows = [row for row in distribution.groups if row.people_gaps]
    titles = [f"{row.model}, {MODES[row.mode]}: {name_groups(row)}" for row in rows]
    figures = [
        Figure(
            f"gaps-{slug}",
            gap_plot(row.people_gaps, row.model_gaps),
            title,
            f"Gaps of the model against people’s in {pluralize(row.n, 'cell')}; slope of the gaps: "
            f"{describe_estimate('', row.slope)}.",
            f"slope {format_number(row.slope.value)}" if row.slope.value is not None else "slope not available",
            "distribution-groups",
        )
        for slug, title, row in zip(slugify_unique(titles), titles, rows, strict=True)
    ]
    if not figures:
        return []
    blocks: list[Block] = [FigureGrid(figures[:MAX_OPEN_PLOTS])]
    if others := figures[MAX_OPEN_PLOTS:]:
        blocks.append(Disclosure(pluralize(len(others), "more plot"), [FigureGrid(others)]))
    return blocks


def build_steering_figures(distribution: DistributionReport, ends: tuple[str, str]) -> list[Block]:
    """Plots of where naming each group moves a model's answers; the first is open.

    Args:
        ends: meanings of the two ends of the scale.
    """
    by_series: dict[tuple[str, str], dict[str, Step]] = {}
    for row in distribution.groups:
        steps = by_series.setdefault((row.model, row.mode), {})
        steps.update({label: step for label, step in _list_steps(row) if label not in steps})
    present = {key: list(steps.values()) for key, steps in by_series.items() if steps}
    names = [f"{model}, {MODES[mode]}" for model, mode in present]
    figures = [
        Figure(
            f"steering-{slug}",
            steering_plot(steps, ends),
            f"{name}: from the country to the group",
            "; ".join(
                f"{step.label}: the model moves from {format_number(step.before)} to {format_number(step.after)}, "
                f"people are at {format_number(step.people)}"
                for step in steps
            ),
            f"{name}. Mean answers over countries and topics, as shares of the scale.",
            "distribution-groups",
            steering_plot(steps, ends, is_narrow=True),
        )
        for slug, name, steps in zip(slugify_unique(names), names, present.values(), strict=True)
    ]
    return _open_first(figures)


def name_groups(row: DistributionGroupRow) -> str:
    """The two groups, in the order of the subtraction."""
    return f"{row.dimension}: {row.second} minus {row.first}"


def _build_ridges(
    figure_id: str, name: str, rows: Sequence[DistributionCellRow], points: Sequence[str], ends: Sequence[str]
) -> Figure:
    """The ridge plot of one model and mode; `ends` is empty where topics have different ones."""
    meanings = f" {points[0]}: {ends[0]}; {points[-1]}: {ends[1]}." if ends else ""
    ridges = [Ridge(f"{row.country}, {row.topic}", row.people, row.answers) for row in rows]
    counts = [sum(row.rank == rank for row in rows) for rank in RANKS]
    return Figure(
        figure_id,
        ridge_plot(ridges, points),
        f"{name}: people’s answers and the model’s",
        "; ".join(f"{row.country}, {row.topic}: W1 {format_number(row.w1)}" for row in rows),
        f"{name}. From the top: the {counts[0]} cells in which the model is closest to people, {counts[1]} in the "
        f"middle, and the {counts[2]} in which it is furthest.{meanings}",
        "distribution-cells",
        ridge_plot(ridges, points, is_narrow=True),
    )


def _list_steps(row: DistributionGroupRow) -> Iterator[tuple[str, Step]]:
    """Yield the steps of a row's two groups that have a figure, with their labels."""
    for step in row.steps:
        if step.before is not None and step.after is not None and step.people is not None:
            label = f"{row.dimension}: {step.group}"
            yield label, Step(label, step.before, step.after, step.people)


def _open_first(figures: Sequence[Figure]) -> list[Block]:
    """The first figure, and the others in disclosures."""
    return [*figures[:1], *(Disclosure(figure.title, [figure]) for figure in figures[1:])]
