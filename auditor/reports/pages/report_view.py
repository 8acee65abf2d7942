"""Derive from a report what its page shows: sorted tables, plots and labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from markupsafe import Markup

from auditor.domain import ENGLISH
from auditor.metrics.estimate import Estimate
from auditor.reports.data.agreement.languages import LanguagesReport
from auditor.reports.data.agreement.tiers import TierRanking
from auditor.reports.data.coverage.schema import CoverageRow
from auditor.reports.data.estimate_conversion import has_rescaled_scores
from auditor.reports.data.measurement_schema import BaselineRow, GainRow
from auditor.reports.data.report_schema import CellReport, Report
from auditor.reports.number_format import format_estimate, pluralize
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
from auditor.reports.pages.svg_charts import IntervalMark
from auditor.reports.pages.world_map import WorldMap
from auditor.reports.panel.tables import PanelTable, build_panel_tables

MAX_TOOLTIPS = 4000
"""With more points in all scatter plots together, points have no tooltips."""
MAX_PORTRAIT_COLUMNS = 15
"""Columns of a heat map that fit a page in portrait orientation."""
MAX_PREFERENCES = 3
"""Rankings named at the top of the page; the section on tiers has the others."""
MAX_REFUSAL_ROWS = 20
"""Topics or countries in a plot of refusals; the tables have all."""
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
    """The content of a report's page, derived from the report."""

    max_printed_conflicts = 20
    """Conflicts listed when the page is printed."""

    max_refusal_rows = MAX_REFUSAL_ROWS
    max_preferences = MAX_PREFERENCES

    def __init__(self, report: Report) -> None:
        """Label the series of scores of the report; everything else is derived when it is first needed."""
        self.report = report
        has_several_methods = len({row.method for row in report.alignment}) > 1
        self.columns = [
            ScoreColumn(row.method, row.model, f"{row.model} ({row.method})" if has_several_methods else row.model)
            for row in report.alignment
        ]
        self.has_several_methods = has_several_methods

    @cached_property
    def columns_with_errors(self) -> list[ScoreColumn]:
        """Series of scores that have an error: those whose scores are not rescaled within the model."""
        return [column for column in self.columns if not has_rescaled_scores(column.method)]

    @cached_property
    def ranked_alignments(self) -> list[tuple[ScoreColumn, AlignmentStatement]]:
        """Series of scores with their alignment in words, by r in descending order; those without r last."""
        statements = zip(self.columns, map(alignment_wording.describe_alignment, self.report.alignment), strict=True)
        return sorted(statements, key=lambda entry: 2.0 if entry[1].row.pearson_r is None else -entry[1].row.pearson_r)

    @property
    def preferences(self) -> list[TierRanking]:
        """Rankings of models by mean error: over all countries first, then by region."""
        return [ranking for ranking in self.report.tiers if ranking.by == "MAE"]

    @property
    def baseline_comparisons(self) -> list[tuple[ScoreColumn, GainRow, list[BaselineRow]]]:
        """Each series of scores with its agreement within topics and the baselines on its cells."""
        gains = self.report.gain or []
        return [
            (
                column,
                row,
                [
                    baseline
                    for baseline in self.report.baselines
                    if (baseline.method, baseline.model) == (column.method, column.model)
                ],
            )
            for column, row in zip(self.columns, gains, strict=True)
        ]

    @property
    def missing_interval_reasons(self) -> list[str]:
        """Distinct reasons why estimates in the table of baselines have no interval."""
        estimates = [
            estimate
            for _, row, baselines in self.baseline_comparisons
            for estimate in (
                row.within_topics,
                *(
                    baseline_estimate
                    for baseline in baselines
                    for baseline_estimate in (baseline.pearson_r, baseline.mae)
                ),
            )
        ]
        return list(
            dict.fromkeys(estimate.reason for estimate in estimates if estimate.ci_low is None and estimate.reason)
        )

    @property
    def languages(self) -> LanguagesReport | None:
        """The report on languages; None if English is the only configured language."""
        languages = self.report.languages
        return None if languages is None or languages.configured == [ENGLISH] else languages

    def column_label(self, method: str, model: str) -> str:
        """Label of a series of scores: the model, followed by the method if the report has several methods."""
        return f"{model} ({method})" if self.has_several_methods else model

    @cached_property
    def world_map(self) -> WorldMap:
        """Map of the mean error by country."""
        return WorldMap(self.report)

    @property
    def table_of_contents(self) -> list[tuple[str, str]]:
        """(id, title) of the sections that the page contains."""
        report = self.report
        is_present = {
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
        return [(key, title) for key, title in SECTION_TITLES.items() if is_present.get(key, True)]

    @property
    def forest_plot(self) -> Markup:
        """Plot of r with its 95% interval for each series of scores."""
        marks = [
            IntervalMark(
                column.label,
                row.pearson_r,
                *alignment_wording.two_way_interval(row),
                format_mark_annotation(row.pearson_r, *alignment_wording.two_way_interval(row)),
                (row.ci_low, row.ci_high),
            )
            for column, row in ((column, statement.row) for column, statement in self.ranked_alignments)
        ]
        description = "; ".join(f"{column.label} {statement.text}" for column, statement in self.ranked_alignments)
        return svg_charts.interval_plot(
            marks, svg_charts.CORRELATION_AXIS, "Agreement with people, r and 95% interval", description
        )

    @property
    def scatter_plots(self) -> list[tuple[ScoreColumn, Markup]]:
        """Scatter plot of people's scores against the model's, for each series of scores."""
        cells = self.report.audit.cells
        with_tooltips = len(cells) * len(self.columns) <= MAX_TOOLTIPS
        return [(column, self._scatter_plot(column, cells, with_tooltips)) for column in self.columns]

    def _scatter_plot(self, column: ScoreColumn, cells: Sequence[CellReport], with_tooltips: bool) -> Markup:
        """Plot one series' scores against people's on the cells that have both."""
        points = []
        for cell in cells:
            model_score = cell.scores[column.method].get(column.model)
            if cell.survey is not None and model_score is not None:
                tooltip = (
                    f"{cell.country}, {cell.topic}: {format_score_pair(cell.survey, model_score)}"
                    if with_tooltips
                    else ""
                )
                points.append((cell.survey, model_score, tooltip))
        title = f"What people say against what {column.label} says"
        return svg_charts.scatter_plot(
            points, title, f"{pluralize(len(points), 'cell')}; on the diagonal both say the same."
        )

    @property
    def refusal_plots(self) -> list[tuple[str, Markup]]:
        """(group noun, plot) of the share of refusals by topic and by country, for those with the largest shares."""
        refusals = self.report.refusals
        if refusals is None or not refusals.total.value:
            return []
        topic_noun = "topic" if self.report.task is None else "item"
        groups = ((topic_noun, refusals.topics), ("country", refusals.countries))
        return [
            (
                group_noun,
                self._share_plot(
                    [(row.name, row.share) for row in rows[:MAX_REFUSAL_ROWS]], f"Share refused by {group_noun}"
                ),
            )
            for group_noun, rows in groups
            if rows
        ]

    @property
    def method_plot(self) -> Markup:
        """Plot of Δr, r of direct answers minus r of log-probabilities, with its 95% interval for each model."""
        labelled_differences = [(row.model, row.difference) for row in self.report.methods]
        title = "r when asked less r by log-probabilities, and 95% interval"
        return svg_charts.interval_plot(
            [build_interval_mark(*labelled_difference) for labelled_difference in labelled_differences],
            svg_charts.R_DIFFERENCE_AXIS,
            title,
            describe_estimates(labelled_differences),
        )

    @property
    def region_plot(self) -> Markup:
        """Plot of MAE with its 95% interval for each series of scores and region."""
        rows = self.report.regions.rows
        return self._error_plot(
            [
                (f"{self.column_label(row.method, row.model)}, {row.region}", row.mae)
                for row in rows
                if not has_rescaled_scores(row.method)
            ],
            "MAE",
        )

    @property
    def consistency_plot(self) -> Markup:
        """Plot of self-consistency with its 95% interval for each series of scores."""
        rows = [(self.column_label(row.method, row.model), row.cosine) for row in self.report.self_consistency]
        return self._share_plot(rows, "Self-consistency, mean cosine and 95% interval")

    @property
    def semantic_plot(self) -> Markup:
        """Plot of each model's consistency under paraphrase, and below each the value expected by chance."""
        semantic, marks, descriptions = self.report.semantic, [], []
        for row in semantic.models if semantic else ():
            chance_score = row.length_matched if row.length_matched.mean is not None else row.shuffled
            marks.append(build_interval_mark(row.model, row.consistency))
            marks.append(
                IntervalMark(
                    "by chance",
                    chance_score.mean,
                    chance_score.low,
                    chance_score.high,
                    format_mark_annotation(chance_score.mean, chance_score.low, chance_score.high),
                )
            )
            descriptions.append(f"{row.model} {format_estimate(row.consistency)}")
        title = "Consistency under paraphrase, mean score and 95% interval"
        return svg_charts.interval_plot(marks, svg_charts.SHARE_AXIS, title, "; ".join(descriptions))

    @property
    def accuracy_plot(self) -> Markup | None:
        """Plot of each model's share of correct answers; None if no correct answers are known."""
        rows = [(row.model, row.accuracy) for row in (self.report.task.models if self.report.task else ())]
        if all(accuracy.value is None for _, accuracy in rows):
            return None
        return self._share_plot(rows, "Share of right answers and 95% interval")

    @property
    def peer_plot(self) -> Markup:
        """Plot of peer agreement with its 95% interval for each model."""
        rows = [(row.model, row.agreement) for row in self.report.peer_agreement]
        return self._share_plot(rows, "Peer agreement, share VALID and 95% interval")

    @property
    def panel_tables(self) -> list[PanelTable]:
        """Tables on the panel of judges."""
        return build_panel_tables(self.report.panel)

    def _share_plot(self, rows: Sequence[tuple[str, Estimate]], title: str) -> Markup:
        """Plot of shares, from 0 to 1, with their 95% intervals."""
        return svg_charts.interval_plot(
            [build_interval_mark(*row) for row in rows], svg_charts.SHARE_AXIS, title, describe_estimates(rows)
        )

    def _error_plot(self, rows: Sequence[tuple[str, Estimate]], axis_label: str) -> Markup:
        """Plot of mean absolute errors with their 95% intervals."""
        axis = svg_charts.error_axis(
            (estimate.ci_high if estimate.ci_high is not None else estimate.value for _, estimate in rows), axis_label
        )
        title = "Mean absolute difference from people, and 95% interval"
        return svg_charts.interval_plot(
            [build_interval_mark(*row) for row in rows], axis, title, describe_estimates(rows)
        )

    def coverage_bar(self, row: CoverageRow) -> Markup:
        """Stacked bar of one coverage row: usable, lost by cause, not recorded."""
        segments = [("ok", row.ok), *((f"loss-{name}", n) for name, n in row.losses.items()), ("missing", row.missing)]
        return svg_charts.stacked_bar(segments, f"{row.ok} of {row.planned} usable")

    @property
    def heat_maps(self) -> list[HeatMap]:
        """For each series of scores, a heat map of the model's score minus people's by country and topic."""
        cells = self.report.audit.cells
        countries = list(dict.fromkeys(cell.country for cell in cells))
        topics = list(dict.fromkeys(cell.topic for cell in cells))
        cell_by_place = {(cell.country, cell.topic): cell for cell in cells}
        has_country_rows = len(topics) < len(countries)
        row_names, column_names = (countries, topics) if has_country_rows else (topics, countries)
        expand_all = len(self.columns_with_errors) <= MAX_EXPANDED_HEAT_MAPS
        return [
            HeatMap(
                column=column,
                row_kind="country" if has_country_rows else "topic",
                columns=column_names,
                rows=[
                    (
                        row_name,
                        [
                            build_heat_map_cell(
                                cell_by_place.get(
                                    (row_name, column_name) if has_country_rows else (column_name, row_name)
                                ),
                                column,
                            )
                            for column_name in column_names
                        ],
                    )
                    for row_name in row_names
                ],
                expanded=expand_all or i == 0,
            )
            for i, column in enumerate(self.columns_with_errors)
        ]

    @property
    def needs_landscape(self) -> bool:
        """Whether heat maps have too many columns for a page in portrait orientation."""
        countries = {cell.country for cell in self.report.audit.cells}
        return min(len(countries), len({cell.topic for cell in self.report.audit.cells})) > MAX_PORTRAIT_COLUMNS

    @property
    def topic_table(self) -> GroupErrorTable:
        """Errors by topic, largest first."""
        return build_error_table(self.report.topics)

    @property
    def country_table(self) -> GroupErrorTable:
        """Errors by country, largest first."""
        return build_error_table(self.report.countries)

    @property
    def loss_causes(self) -> list[str]:
        """Distinct causes of unusable answers in the audit."""
        return list(dict.fromkeys(name for row in self.report.coverage.models for name in row.losses))
