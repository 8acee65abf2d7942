"""What the page shows, made from the report: tables in the order they are read, plots, and short texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from markupsafe import Markup

from auditor.domain import ENGLISH
from auditor.reports.agreement.languages import LanguagesReport
from auditor.reports.agreement.tiers import TierRanking
from auditor.reports.coverage.schema import CoverageRow
from auditor.reports.estimate_conversion import has_rescaled_scores
from auditor.reports.measurement_schema import BaselineRow, Estimate, GainRow
from auditor.reports.pages import alignment_wording, svg_charts
from auditor.reports.pages.alignment_wording import AlignmentStatement
from auditor.reports.pages.heat_maps import (
    MAX_EXPANDED_HEAT_MAPS,
    GroupErrorTable,
    HeatMap,
    ScoreColumn,
    build_error_table,
    build_heat_map_cell,
    format_score_pair,
)
from auditor.reports.pages.interval_marks import build_interval_mark, describe_estimates, format_mark_annotation
from auditor.reports.pages.number_format import format_estimate, pluralize
from auditor.reports.pages.svg_charts import IntervalMark
from auditor.reports.pages.world_map import WorldMap
from auditor.reports.panel.tables import PanelTable, build_panel_tables
from auditor.reports.report_schema import CellReport, Report

MAX_TOOLTIPS = 4000
"""Points of all scatter plots together that still get a tooltip each."""
MAX_PORTRAIT_COLUMNS = 15
"""Columns of a heat map that fit an upright page."""
MAX_PREFERENCES = 3
"""Of all countries and of regions, those that the answer on top names; the section on tiers has the others."""
MAX_REFUSAL_ROWS = 20
"""Topics and countries in the plots of refusals; the tables have all."""
SECTION_TITLES = {
    "answer": "Agreement with people",
    "task": "The answers",
    "telling": "Peers and truth",
    "items": "Item by item",
    "prefer": "Tiers",
    "worth": "What it is worth",
    "methods": "Asked or read",
    "where": "Differences",
    "scatter": "Cell by cell",
    "regions": "Regions",
    "languages": "Languages",
    "map": "Map",
    "places": "Topics and countries",
    "consistency": "Consistency",
    "semantic": "Other words",
    "logic": "Logic",
    "panel": "The panel",
    "conflicts": "Conflicts",
    "refusals": "Refusals",
    "coverage": "Coverage",
    "cost": "Cost",
    "made": "How it was made",
}


class ReportView:
    """The report as the page shows it."""

    max_printed_conflicts = 20
    """Conflicts listed in print."""

    max_refusal_rows = MAX_REFUSAL_ROWS
    max_preferences = MAX_PREFERENCES

    def __init__(self, report: Report) -> None:
        self.report = report
        several = len({row.method for row in report.alignment}) > 1
        self.columns = [
            ScoreColumn(row.method, row.model, f"{row.model} ({row.method})" if several else row.model)
            for row in report.alignment
        ]
        self.has_several_methods = several

    @cached_property
    def columns_with_errors(self) -> list[ScoreColumn]:
        """Series whose distance from people says something."""
        return [column for column in self.columns if not has_rescaled_scores(column.method)]

    @cached_property
    def ranked_alignments(self) -> list[tuple[ScoreColumn, AlignmentStatement]]:
        """Series of scores by r, largest first; those without r last."""
        rows = zip(self.columns, map(alignment_wording.describe_alignment, self.report.alignment), strict=True)
        return sorted(rows, key=lambda item: 2.0 if item[1].row.pearson_r is None else -item[1].row.pearson_r)

    @property
    def preferences(self) -> list[TierRanking]:
        """The rankings by mean error, which say what to prefer: over all countries, then by region."""
        return [part for part in self.report.tiers if part.by == "MAE"]

    @property
    def baseline_comparisons(self) -> list[tuple[ScoreColumn, GainRow, list[BaselineRow]]]:
        """Every series of scores with its agreement within topics and the baselines on its cells."""
        gains = self.report.gain or []
        return [
            (column, row, [b for b in self.report.baselines if (b.method, b.model) == (column.method, column.model)])
            for column, row in zip(self.columns, gains, strict=True)
        ]

    @property
    def missing_interval_reasons(self) -> list[str]:
        """Why some figures beside the baselines have no interval."""
        figures = [
            e
            for _, row, rows in self.baseline_comparisons
            for e in (row.within_topics, *(f for b in rows for f in (b.pearson_r, b.mae)))
        ]
        return list(dict.fromkeys(e.reason for e in figures if e.ci_low is None and e.reason))

    @property
    def languages(self) -> LanguagesReport | None:
        """The languages of the audit; None where nothing but English was asked in."""
        part = self.report.languages
        return None if part is None or part.configured == [ENGLISH] else part

    def column_label(self, method: str, model: str) -> str:
        """How a series of scores is called on the page."""
        return f"{model} ({method})" if self.has_several_methods else model

    @cached_property
    def world_map(self) -> WorldMap:
        """The map of mean errors."""
        return WorldMap(self.report)

    @property
    def table_of_contents(self) -> list[tuple[str, str]]:
        """The sections that the page has: id and title."""
        report = self.report
        there = {
            "answer": bool(report.audit.survey.title),
            "task": report.task is not None,
            "telling": report.task is not None and report.task.telling is not None,
            "items": report.task is not None,
            "semantic": report.semantic is not None,
            "conflicts": bool(report.audit.survey.title) or report.task is not None,
            "coverage": bool(report.coverage.total),
            "prefer": bool(report.tiers),
            "worth": bool(self.columns),
            "methods": bool(report.methods),
            "refusals": report.refusals is not None,
            "where": bool(self.columns_with_errors),
            "scatter": bool(self.columns),
            "regions": bool(self.columns),
            "languages": self.languages is not None,
            "map": bool(self.world_map.svg),
            "places": bool(self.columns_with_errors),
            "consistency": bool(report.self_consistency),
            "logic": report.logic is not None,
            "panel": bool(report.panel.judges),
        }
        return [(key, title) for key, title in SECTION_TITLES.items() if there.get(key, True)]

    @property
    def forest_plot(self) -> Markup:
        """r with its interval for every model."""
        marks = [
            IntervalMark(
                c.label,
                r.pearson_r,
                *alignment_wording.two_way_interval(r),
                format_mark_annotation(r.pearson_r, *alignment_wording.two_way_interval(r)),
                (r.ci_low, r.ci_high),
            )
            for c, r in ((c, a.row) for c, a in self.ranked_alignments)
        ]
        said = "; ".join(f"{c.label} {a.text}" for c, a in self.ranked_alignments)
        return svg_charts.interval_plot(
            marks, svg_charts.CORRELATION_AXIS, "Agreement with people, r and 95% interval", said
        )

    @property
    def scatter_plots(self) -> list[tuple[ScoreColumn, Markup]]:
        """People against each model."""
        cells = self.report.audit.cells
        tips = len(cells) * len(self.columns) <= MAX_TOOLTIPS
        return [(c, self._scatter_plot(c, cells, tips)) for c in self.columns]

    def _scatter_plot(self, column: ScoreColumn, cells: Sequence[CellReport], with_tooltips: bool) -> Markup:
        points = []
        for cell in cells:
            y = cell.scores[column.method].get(column.model)
            if cell.survey is not None and y is not None:
                tip = f"{cell.country}, {cell.topic}: {format_score_pair(cell.survey, y)}" if with_tooltips else ""
                points.append((cell.survey, y, tip))
        title = f"What people say against what {column.label} says"
        return svg_charts.scatter_plot(
            points, title, f"{pluralize(len(points), 'cell')}; on the diagonal both say the same."
        )

    @property
    def refusal_plots(self) -> list[tuple[str, Markup]]:
        """Share of refusals, by topic and by country, of those that are refused most."""
        part = self.report.refusals
        if part is None or not part.total.value:
            return []
        topic = "topic" if self.report.task is None else "item"
        groups = ((topic, part.topics), ("country", part.countries))
        return [
            (what, self._share_plot([(r.name, r.share) for r in rows[:MAX_REFUSAL_ROWS]], f"Share refused by {what}"))
            for what, rows in groups
            if rows
        ]

    @property
    def method_plot(self) -> Markup:
        """Δr with its interval for every model."""
        rows = [(r.model, r.difference) for r in self.report.methods]
        title = "r when asked less r by log-probabilities, and 95% interval"
        return svg_charts.interval_plot(
            [build_interval_mark(*row) for row in rows], svg_charts.R_DIFFERENCE_AXIS, title, describe_estimates(rows)
        )

    @property
    def region_plot(self) -> Markup:
        rows = self.report.regions.rows
        return self._error_plot(
            [
                (f"{self.column_label(r.method, r.model)}, {r.region}", r.mae)
                for r in rows
                if not has_rescaled_scores(r.method)
            ],
            "MAE",
        )

    @property
    def consistency_plot(self) -> Markup:
        rows = [(self.column_label(r.method, r.model), r.cosine) for r in self.report.self_consistency]
        return self._share_plot(rows, "Self-consistency, mean cosine and 95% interval")

    @property
    def semantic_plot(self) -> Markup:
        """Every model's score under paraphrase, and beneath it what chance would give."""
        part, marks, told = self.report.semantic, [], []
        for row in part.models if part else ():
            null = row.length_matched if row.length_matched.mean is not None else row.shuffled
            marks.append(build_interval_mark(row.model, row.consistency))
            marks.append(
                IntervalMark(
                    "by chance", null.mean, null.low, null.high, format_mark_annotation(null.mean, null.low, null.high)
                )
            )
            told.append(f"{row.model} {format_estimate(row.consistency)}")
        title = "Consistency under paraphrase, mean score and 95% interval"
        return svg_charts.interval_plot(marks, svg_charts.SHARE_AXIS, title, "; ".join(told))

    @property
    def accuracy_plot(self) -> Markup | None:
        """Share of right answers of every model; None where nothing is said to be right."""
        rows = [(r.model, r.accuracy) for r in (self.report.task.models if self.report.task else ())]
        if all(found.value is None for _, found in rows):
            return None
        return self._share_plot(rows, "Share of right answers and 95% interval")

    @property
    def peer_plot(self) -> Markup:
        rows = [(r.model, r.agreement) for r in self.report.peer_agreement]
        return self._share_plot(rows, "Peer agreement, share VALID and 95% interval")

    @property
    def panel_tables(self) -> list[PanelTable]:
        return build_panel_tables(self.report.panel)

    def _share_plot(self, rows: Sequence[tuple[str, Estimate]], title: str) -> Markup:
        return svg_charts.interval_plot(
            [build_interval_mark(*row) for row in rows], svg_charts.SHARE_AXIS, title, describe_estimates(rows)
        )

    def _error_plot(self, rows: Sequence[tuple[str, Estimate]], axis_label: str) -> Markup:
        axis = svg_charts.error_axis((e.ci_high if e.ci_high is not None else e.value for _, e in rows), axis_label)
        title = "Mean absolute difference from people, and 95% interval"
        return svg_charts.interval_plot(
            [build_interval_mark(*row) for row in rows], axis, title, describe_estimates(rows)
        )

    def coverage_bar(self, row: CoverageRow) -> Markup:
        """What became of what was planned, as one bar."""
        parts = [("ok", row.ok), *((f"loss-{name}", n) for name, n in row.losses.items()), ("missing", row.missing)]
        return svg_charts.stacked_bar(parts, f"{row.ok} of {row.planned} usable")

    @property
    def heat_maps(self) -> list[HeatMap]:
        """For every model, model minus people on every cell."""
        cells = self.report.audit.cells
        countries = list(dict.fromkeys(c.country for c in cells))
        topics = list(dict.fromkeys(c.topic for c in cells))
        found = {(c.country, c.topic): c for c in cells}
        flat = len(topics) < len(countries)
        down, across = (countries, topics) if flat else (topics, countries)
        unfolded = len(self.columns_with_errors) <= MAX_EXPANDED_HEAT_MAPS
        return [
            HeatMap(
                column=column,
                row_kind="country" if flat else "topic",
                columns=across,
                rows=[
                    (
                        row,
                        [
                            build_heat_map_cell(found.get((row, name) if flat else (name, row)), column)
                            for name in across
                        ],
                    )
                    for row in down
                ],
                expanded=unfolded or i == 0,
            )
            for i, column in enumerate(self.columns_with_errors)
        ]

    @property
    def needs_landscape(self) -> bool:
        """Whether heat maps need a page on its side."""
        countries = {c.country for c in self.report.audit.cells}
        return min(len(countries), len({c.topic for c in self.report.audit.cells})) > MAX_PORTRAIT_COLUMNS

    @property
    def topic_table(self) -> GroupErrorTable:
        return build_error_table(self.report.topics)

    @property
    def country_table(self) -> GroupErrorTable:
        return build_error_table(self.report.countries)

    @property
    def loss_causes(self) -> list[str]:
        """Outcomes that cost something anywhere in the audit."""
        return list(dict.fromkeys(name for row in self.report.coverage.models for name in row.losses))
