"""Document of the experiment `robustness`: would another design have said the same?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from auditor.metrics.designs.design_matrix import BASE_RUNS
from auditor.metrics.designs.run_effects import RUN_SOURCE
from auditor.reports.charts.specification_curve import Curve, CurvePoint, specification_curves
from auditor.reports.data.robustness import (
    WITHOUT_JUDGE,
    ChangedCellRow,
    ConfoundingRow,
    DesignAverageRow,
    DesignCountRow,
    DesignReport,
    LevelDifferenceRow,
    RankingChangeRow,
    RobustnessReport,
    VarianceSourceRow,
)
from auditor.reports.document import Block, Document, Figure, List, Paragraph, Quote, Section
from auditor.reports.number_format import (
    describe_adjusted_p_value,
    describe_estimate,
    format_count,
    format_interval,
    format_number,
    format_percent,
    format_signed,
    pluralize,
)
from auditor.reports.sections.experiments import build_experiment_document
from auditor.reports.sections.phrasing import join_with_and, list_counts, sort_by_p_value, tabulate

MAX_SENTENCES = 2
"""Findings of one kind that are stated; the table and the JSON output have all."""
MAX_MODELS = 3
N_QUOTED_CELLS = 2
MAX_QUOTED_WORDS = 9
MAX_ROWS = 3
"""Rows of the table that the page shows, those with the smallest p-values of MAE first."""
SOURCE_NAMES = {
    "model": "models",
    "cell": "cells",
    "model × cell": "model × cell",
    RUN_SOURCE: "choice × choice",
    "residual": "the rest",
}
"""Sources of variance that are not one choice, in words."""
NO_SCORE = "No run of the design has a score."


def build_robustness_document(report: RobustnessReport, remarks: Sequence[Block] = ()) -> Document:
    """Build the document: at most 600 words, one figure and one table.

    Args:
        remarks: on the design itself, such as what is confounded with what; shown last.
    """
    if not report.designs:
        return build_experiment_document(report.audit, "robustness", [], [], NO_SCORE)
    blocks: list[Block] = [Paragraph("The largest of many, noise included.", "note")]
    for row in report.changed[:N_QUOTED_CELLS]:
        blocks += _quote_pair(report, row)
    sections = [
        Section("designs", "Each model over the designs", [*_list_models(report), _plot_designs(report)]),
        Section("levels", "What each choice changes", _build_level_blocks(report)),
        Section("changed-cells", "The cells that change most", blocks),
    ]
    if remarks:
        sections.append(Section("design", "The design", remarks))
    findings = [*_describe_rankings(report), *_describe_levels(report)]
    return build_experiment_document(report.audit, "robustness", findings, sections, NO_SCORE)


def _describe_rankings(report: RobustnessReport) -> Iterator[str]:
    """Yield the rankings that are shown to change, and the differences that are shown to depend on a choice."""
    if not report.rankings:
        return
    rows = sort_by_p_value(report.rankings, lambda row: row.change)
    changes = [row for row in rows if row.test.is_change]
    yield from map(_describe_change, changes[:MAX_SENTENCES])
    if all(row.change.value is None for row in rows):
        yield f"Whether a ranking of two models changes with the design is not known: {rows[0].change.reason}."
    elif not changes:
        n_pairs = len({(row.test.first, row.test.second) for row in rows})
        n_choices = len({row.test.pair.factor for row in rows})
        yield (
            f"No ranking of two models is shown to change with the design ({pluralize(n_pairs, 'pair')} of models, "
            f"{pluralize(n_choices, 'choice')})."
        )
    dependent = [row for row in rows if row.change.is_significant and not row.test.is_change]
    for test in (row.test for row in dependent[: MAX_SENTENCES - len(changes)]):
        yield (
            f"How far {test.first} and {test.second} are apart depends on the {test.pair.factor}: their MAE differs by "
            f"{format_signed(test.at_first)} with “{test.pair.first}” and {format_signed(test.at_second)} with "
            f"“{test.pair.second}”."
        )


def _describe_change(row: RankingChangeRow) -> str:
    """State that a ranking changes, and which model is closer to people with which level."""
    test = row.test
    is_first = (test.at_first or 0.0) < 0
    better, other = (test.first, test.second) if is_first else (test.second, test.first)
    p_value = max(row.change.adjusted_p_value or 0.0, test.order_p_value or 0.0)
    change = replace(row.change, p_value=None, adjusted_p_value=p_value)
    return (
        f"The ranking of {test.first} and {test.second} changes with the {test.pair.factor}: {better} is closer to "
        f"people with “{test.pair.first}”, {other} with “{test.pair.second}” ({describe_adjusted_p_value(change)})."
    )


def _describe_levels(report: RobustnessReport) -> Iterator[str]:
    """Yield the largest difference in MAE between levels that is shown, and the number of others."""
    shown = [row for row in report.levels if row.mae.is_significant]
    shown.sort(key=lambda row: -abs(row.mae.value or 0.0))
    for row in shown[:1]:
        direction = "larger" if (row.mae.value or 0.0) > 0 else "smaller"
        yield (
            f"With “{row.second}” instead of “{row.first}” ({row.factor}), the MAE of {row.model} is {direction} "
            f"({describe_estimate('difference', row.mae)})."
        )
    if len(shown) > 1:
        n_others = len(shown) - 1
        yield f"{pluralize(n_others, 'further difference')} in MAE {'is' if n_others == 1 else 'are'} shown."
    if report.levels and all(row.mae.value is None for row in report.levels):
        yield (
            f"Whether a choice changes a model’s mean absolute error (MAE) is not known: {report.levels[0].mae.reason}."
        )
    elif report.levels and not shown:
        yield "No choice is shown to change a model’s mean absolute error (MAE)."
        if unknown := [row for row in report.levels if row.mae.value is None]:
            yield f"{len(unknown)} of {len(report.levels)} differences are not known: {unknown[0].mae.reason}."


def _list_models(report: RobustnessReport) -> list[Block]:
    """The figures over all designs, and in how many designs a model is closer to people than the next one."""
    rows = sorted(report.averages, key=lambda row: 9.0 if row.mae.value is None else row.mae.value)
    items = [_describe_average(row) for row in rows[:MAX_MODELS]]
    if len(rows) > MAX_MODELS:
        items.append(f"{pluralize(len(rows) - MAX_MODELS, 'further model')}: see the figure.")
    order = {row.model: i for i, row in enumerate(rows)}
    adjacent = [row for row in report.counts if order[row.second] == order[row.first] + 1]
    items += [_describe_count(row) for row in adjacent[:MAX_SENTENCES]]
    return [
        Paragraph("Mean absolute error (MAE) over all designs, with 95% CI, and range of single designs:"),
        List(items),
    ]


def _describe_average(row: DesignAverageRow) -> str:
    """State a model's MAE over all designs, and its range; or why there is none."""
    if row.mae.value is None:
        return f"{row.model}: not available ({row.mae.reason})."
    interval = "no CI" if row.mae.ci_low is None else format_interval(row.mae.ci_low, row.mae.ci_high)
    span = format_interval(row.lowest_mae, row.highest_mae)
    return f"{row.model}: {format_number(row.mae.value)} ({interval}); {span}."


def _describe_count(row: DesignCountRow) -> str:
    """State in how many designs the first model is closer to people."""
    return (
        f"{row.first} is closer to people than {row.second} in {row.better} of {pluralize(row.runs, 'design')} "
        f"(sampling alone would give {format_number(row.expected, 1)})."
    )


def _plot_designs(report: RobustnessReport) -> Figure:
    """The specification curve of each model."""
    names = list(report.runs[0].levels)
    levels = {name: list(dict.fromkeys(run.levels[name] for run in report.runs)) for name in names}
    factors = [(name, levels[name]) for name in names if len(levels[name]) > 1]
    runs = {run.number: run for run in report.runs}
    curves = []
    for model in report.models:
        rows = sorted(
            (row for row in report.designs if row.model == model and row.mae.value is not None),
            key=lambda row: row.mae.value or 0.0,
        )
        points = [
            CurvePoint(
                "the audit’s design" if row.run == report.runs[0].number else f"run {row.run}",
                row.mae.value or 0.0,
                row.mae.ci_low,
                row.mae.ci_high,
                tuple(options.index(runs[row.run].levels[name]) for name, options in factors),
                row.run == report.runs[0].number,
            )
            for row in rows
        ]
        curves += [Curve(model, points)] if points else []
    spec, narrow = (specification_curves(curves, factors, is_narrow=is_narrow) for is_narrow in (False, True))
    return Figure(
        "specification-curves",
        spec,
        "MAE of each model in every design",
        "; ".join(
            f"{curve.model}: MAE from {format_number(curve.points[0].value)} to {format_number(curve.points[-1].value)}"
            for curve in curves
        ),
        "Designs by MAE, each with its own 95% CI. Dark dot: the audit’s design; pale squares: its levels.",
        "level-differences",
        narrow,
    )


def _build_level_blocks(report: RobustnessReport) -> list[Block]:
    """The table of differences between levels, and where the variance of errors comes from."""
    rows = sort_by_p_value(report.levels, lambda row: row.mae)
    cut = f" The clearest {MAX_ROWS} of {format_count(len(rows))} rows; all: --json." if len(rows) > MAX_ROWS else ""
    table = tabulate(
        "level-differences",
        "Differences between levels",
        "Figures with the second level minus those with the first, in the same cells; gaps between the two most "
        f"different regions. 95% CIs hold jointly in a column, those of r and concordance singly.{cut}",
        rows[:MAX_ROWS],
        LevelDifferenceRow,
        {"levels": lambda row: f"{row.first} → {row.second}"},
    )
    blocks: list[Block] = [Paragraph(sentence) for sentence in _describe_sources(report.sources)]
    usable = report.answers - sum(report.lost.values())
    losses = f" ({list_counts(report.lost)})" if report.lost else ""
    n_runs = pluralize(len(report.runs), "run")
    return [
        table,
        *blocks,
        Paragraph(
            f"{n_runs} of the design, {pluralize(report.cells, 'cell')}; {format_count(usable)} of "
            f"{pluralize(report.answers, 'score')} are usable{losses}.",
            "note",
        ),
    ]


def _describe_sources(rows: Sequence[VarianceSourceRow]) -> Iterator[str]:
    """Yield one sentence on the shares of variance of absolute errors."""
    absolute = {row.source: row.absolute for row in rows if row.absolute is not None}
    total = sum(absolute.values())
    if total <= 0:
        return
    groups: dict[str, float] = {}
    choices: dict[str, float] = {}
    for source, variance in absolute.items():
        name = SOURCE_NAMES.get(source, "model × choice" if source.startswith("model × ") else "single choices")
        groups[name] = groups.get(name, 0.0) + variance
        if name == "single choices":
            choices[source] = variance
    largest = max(choices, key=lambda source: choices[source], default="")
    shares = [f"{name} {format_percent(round(1000 * value / total), 1000)}" for name, value in groups.items()]
    most = f" The largest choice is {largest}." if largest and choices[largest] > 0 else ""
    yield f"Variance of absolute errors: {join_with_and(shares)}.{most}"


def _quote_pair(report: RobustnessReport, row: ChangedCellRow) -> Iterator[Block]:
    """Yield the two answers of a cell, each with the level of a choice in which their designs differ."""
    levels = {run.number: run.levels for run in report.runs}
    change = row.change
    low, high = levels[change.low_run], levels[change.high_run]
    differing = [name for name in low if low[name] != high[name]]
    n_others = len(differing) - 1
    others = f", and {pluralize(n_others, 'more choice')} differ{'s' if n_others == 1 else ''}" if n_others else ""
    sides = (
        (f"{change.model} on {change.topic} in {change.country}: ", change.low_score, row.low_text, low, ""),
        ("Another design: ", change.high_score, row.high_text, high, others),
    )
    for heading, score, text, other, remark in sides:
        words = (text or "No text is recorded.").split()
        shortened = " ".join(words[:MAX_QUOTED_WORDS]) + (" …" if len(words) > MAX_QUOTED_WORDS else "")
        yield Quote(heading + format_signed(score), shortened, f"{differing[0]}: {other[differing[0]]}{remark}")


MAX_NAMED = 3
"""Confounded pairs that the page names; the JSON has all."""


def build_design_document(report: DesignReport) -> Document:
    """Build the document of the experiment; before a run was asked, the plan and its cost."""
    if report.figures is not None:
        return build_robustness_document(report.figures, list(_describe_design(report)))
    finding = (
        f"The design is not asked yet. {report.forecast} Add --ask to ask the models. "
        "Until then, no answer says whether another design would have given the same result."
    )
    levels = List([f"{factor}: {', '.join(levels)}." for factor, levels in report.factors.items()])
    blocks = [*_describe_design(report), Paragraph("The choices, the audit’s level first:"), levels]
    return build_experiment_document(
        report.audit, "robustness", [finding], [Section("design", "The design", blocks)], ""
    )


def _describe_design(report: DesignReport) -> Iterator[Block]:
    """Yield the remarks; short ones where the page has results, and so the numbers of runs and cells."""
    is_plan = report.figures is None
    asked = "all" if report.runs_per_cell == report.runs else f"{report.runs_per_cell}"
    total = f"{pluralize(report.runs, 'run')}, {pluralize(report.cells, 'cell')}. " if is_plan else ""
    yield Paragraph(
        f"{total}Each cell is asked in {asked} of the runs, with {pluralize(report.samples, 'sample')} of every model. "
        f"Run 0 has the audit’s settings.{_explain_few_runs(report)} {format_count(report.planned)} calls, "
        f"{format_count(report.recorded)} recorded."
    )
    if not is_plan and report.recorded < report.planned:
        yield Paragraph(f"To be sent with --ask: {report.forecast}")
    if report.omitted and is_plan:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in report.omitted.items())
        yield Paragraph(f"Left out: {reasons}.", "note")
    elif report.omitted:
        yield Paragraph(f"Left out (why: --json): {', '.join(report.omitted)}.", "note")
    if report.panels:
        yield Paragraph(_describe_panels(report))
    yield Paragraph(_describe_confounding(report))


def _explain_few_runs(report: DesignReport) -> str:
    """Say why a design has fewer than 16 runs; empty if it has not."""
    if report.runs >= BASE_RUNS:
        return ""
    return f" They are all combinations: {BASE_RUNS} runs would repeat some."


def _describe_panels(report: DesignReport) -> str:
    """State how many conflicts other panels settle, by the recorded verdicts."""
    audited, *others = report.panels
    sentence = f"The panel settles {audited.settled} of {pluralize(report.conflicts, 'conflict')}"
    without_one = [row for row in others if row.panel.startswith(WITHOUT_JUDGE)]
    variants = [f"{row.settled} {row.panel} ({row.changed} changed)" for row in others if row not in without_one]
    if without_one:
        settled = sorted(row.settled for row in without_one)
        span = f"{settled[0]}" if settled[0] == settled[-1] else f"{settled[0]} to {settled[-1]}"
        most = max(row.changed for row in without_one)
        variants.append(f"{span} without any one judge (at most {most} changed)")
    return f"{sentence}; by the recorded verdicts, {', '.join(variants)}." if variants else f"{sentence}."


def _describe_confounding(report: DesignReport) -> str:
    """State which effects the design does not separate."""
    n_pairs = sum(len(levels) == 2 for levels in report.factors.values())
    separate = "Choices of two levels have resolution IV. " if n_pairs > 1 else ""
    if not report.confounding:
        return f"{separate}No choice shares 5% or more with another, or with an interaction of two."
    named = "; ".join(map(_describe_pair, report.confounding[:MAX_NAMED]))
    n_others = len(report.confounding) - MAX_NAMED
    named += f"; {format_count(n_others)} more: --json" if n_others > 0 else ""
    return f"{separate}Partly confounded (largest squared correlation; at 1 inseparable): {named}."


def _describe_pair(row: ConfoundingRow) -> str:
    return f"{row.effect} with {' × '.join(row.other)} {format_number(row.share)}"
