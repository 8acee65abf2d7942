"""What the page shows, made from the report: tables in the order they are read, plots, and short texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from markupsafe import Markup

from auditor.domain import ENGLISH
from auditor.reports.agreement.languages import LanguagesPart
from auditor.reports.agreement.tiers import TiersPart
from auditor.reports.coverage.schema import CoverageRow
from auditor.reports.estimate_conversion import is_stretched
from auditor.reports.measurement_schema import BaselineRow, Estimate, GainRow
from auditor.reports.pages import alignment_wording, svg_charts
from auditor.reports.pages.alignment_wording import Answer
from auditor.reports.pages.heat_maps import OPEN_PLATES, Column, HeatMap, PlaceTable, both, heat, place_table
from auditor.reports.pages.interval_marks import mark, note, told
from auditor.reports.pages.number_format import plural, with_interval
from auditor.reports.pages.svg_charts import Mark
from auditor.reports.pages.world_map import World
from auditor.reports.panel.tables import PanelTable, panel_tables
from auditor.reports.report_schema import CellPart, Report

MAX_TIPS = 4000
"""Points of all scatter plots together that still get a tooltip each."""
MAX_UPRIGHT = 15
"""Columns of a heat map that fit an upright page."""
MOST_PREFERENCES = 3
"""Of all countries and of regions, those that the answer on top names; the section on tiers has the others."""
MOST_REFUSED = 20
"""Topics and countries in the plots of refusals; the tables have all."""
SECTIONS = {
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


class View:
    """The report as the page shows it."""

    on_paper = 20
    """Conflicts listed in print."""

    most_refused = MOST_REFUSED
    most_preferences = MOST_PREFERENCES

    def __init__(self, report: Report) -> None:
        self.report = report
        several = len({row.method for row in report.alignment}) > 1
        self.columns = [
            Column(row.method, row.model, f"{row.model} ({row.method})" if several else row.model)
            for row in report.alignment
        ]
        self.several_methods = several

    @cached_property
    def distant(self) -> list[Column]:
        """Series whose distance from people says something."""
        return [column for column in self.columns if not is_stretched(column.method)]

    @cached_property
    def ranked(self) -> list[tuple[Column, Answer]]:
        """Series of scores by r, largest first; those without r last."""
        rows = zip(self.columns, map(alignment_wording.answer, self.report.alignment), strict=True)
        return sorted(rows, key=lambda item: 2.0 if item[1].row.pearson_r is None else -item[1].row.pearson_r)

    @property
    def preferences(self) -> list[TiersPart]:
        """The rankings by mean error, which say what to prefer: over all countries, then by region."""
        return [part for part in self.report.tiers if part.by == "MAE"]

    @property
    def worth(self) -> list[tuple[Column, GainRow, list[BaselineRow]]]:
        """Every series of scores with its agreement within topics and the baselines on its cells."""
        gains = self.report.gain or []
        return [
            (column, row, [b for b in self.report.baselines if (b.method, b.model) == (column.method, column.model)])
            for column, row in zip(self.columns, gains, strict=True)
        ]

    @property
    def worth_reasons(self) -> list[str]:
        """Why some figures beside the baselines have no interval."""
        figures = [
            e
            for _, row, rows in self.worth
            for e in (row.within_topics, *(f for b in rows for f in (b.pearson_r, b.mae)))
        ]
        return list(dict.fromkeys(e.reason for e in figures if e.ci_low is None and e.reason))

    @property
    def languages(self) -> LanguagesPart | None:
        """The languages of the audit; None where nothing but English was asked in."""
        part = self.report.languages
        return None if part is None or part.configured == [ENGLISH] else part

    def label(self, method: str, model: str) -> str:
        """How a series of scores is called on the page."""
        return f"{model} ({method})" if self.several_methods else model

    @cached_property
    def world(self) -> World:
        """The map of mean errors."""
        return World(self.report)

    @property
    def contents(self) -> list[tuple[str, str]]:
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
            "where": bool(self.distant),
            "scatter": bool(self.columns),
            "regions": bool(self.columns),
            "languages": self.languages is not None,
            "map": bool(self.world.svg),
            "places": bool(self.distant),
            "consistency": bool(report.self_consistency),
            "logic": report.logic is not None,
            "panel": bool(report.panel.judges),
        }
        return [(key, title) for key, title in SECTIONS.items() if there.get(key, True)]

    @property
    def forest(self) -> Markup:
        """r with its interval for every model."""
        marks = [
            Mark(
                c.label,
                r.pearson_r,
                *alignment_wording.span(r),
                note(r.pearson_r, *alignment_wording.span(r)),
                (r.ci_low, r.ci_high),
            )
            for c, r in ((c, a.row) for c, a in self.ranked)
        ]
        said = "; ".join(f"{c.label} {a.text}" for c, a in self.ranked)
        return svg_charts.interval_plot(
            marks, svg_charts.CORRELATION, "Agreement with people, r and 95% interval", said
        )

    @property
    def scatters(self) -> list[tuple[Column, Markup]]:
        """People against each model."""
        cells = self.report.audit.cells
        tips = len(cells) * len(self.columns) <= MAX_TIPS
        return [(c, self._scatter(c, cells, tips)) for c in self.columns]

    def _scatter(self, column: Column, cells: Sequence[CellPart], tips: bool) -> Markup:
        points = []
        for cell in cells:
            y = cell.scores[column.method].get(column.model)
            if cell.survey is not None and y is not None:
                tip = f"{cell.country}, {cell.topic}: {both(cell.survey, y)}" if tips else ""
                points.append((cell.survey, y, tip))
        title = f"What people say against what {column.label} says"
        return svg_charts.scatter(points, title, f"{plural(len(points), 'cell')}; on the diagonal both say the same.")

    @property
    def refusal_plots(self) -> list[tuple[str, Markup]]:
        """Share of refusals, by topic and by country, of those that are refused most."""
        part = self.report.refusals
        if part is None or not part.total.value:
            return []
        topic = "topic" if self.report.task is None else "item"
        groups = ((topic, part.topics), ("country", part.countries))
        return [
            (what, self._shares([(r.name, r.share) for r in rows[:MOST_REFUSED]], f"Share refused by {what}"))
            for what, rows in groups
            if rows
        ]

    @property
    def method_plot(self) -> Markup:
        """Δr with its interval for every model."""
        rows = [(r.model, r.difference) for r in self.report.methods]
        title = "r when asked less r by log-probabilities, and 95% interval"
        return svg_charts.interval_plot([mark(*row) for row in rows], svg_charts.DIFFERENCE, title, told(rows))

    @property
    def region_plot(self) -> Markup:
        rows = self.report.regions.rows
        return self._errors(
            [(f"{self.label(r.method, r.model)}, {r.region}", r.mae) for r in rows if not is_stretched(r.method)], "MAE"
        )

    @property
    def consistency_plot(self) -> Markup:
        rows = [(self.label(r.method, r.model), r.cosine) for r in self.report.self_consistency]
        return self._shares(rows, "Self-consistency, mean cosine and 95% interval")

    @property
    def semantic_plot(self) -> Markup:
        """Every model's score under paraphrase, and beneath it what chance would give."""
        part, marks, told = self.report.semantic, [], []
        for row in part.models if part else ():
            null = row.length_matched if row.length_matched.mean is not None else row.shuffled
            marks.append(mark(row.model, row.consistency))
            marks.append(Mark("by chance", null.mean, null.low, null.high, note(null.mean, null.low, null.high)))
            told.append(f"{row.model} {with_interval(row.consistency)}")
        title = "Consistency under paraphrase, mean score and 95% interval"
        return svg_charts.interval_plot(marks, svg_charts.SHARE, title, "; ".join(told))

    @property
    def accuracy_plot(self) -> Markup | None:
        """Share of right answers of every model; None where nothing is said to be right."""
        rows = [(r.model, r.accuracy) for r in (self.report.task.models if self.report.task else ())]
        if all(found.value is None for _, found in rows):
            return None
        return self._shares(rows, "Share of right answers and 95% interval")

    @property
    def peer_plot(self) -> Markup:
        rows = [(r.model, r.agreement) for r in self.report.peer_agreement]
        return self._shares(rows, "Peer agreement, share VALID and 95% interval")

    @property
    def panel_tables(self) -> list[PanelTable]:
        return panel_tables(self.report.panel)

    def _shares(self, rows: Sequence[tuple[str, Estimate]], title: str) -> Markup:
        return svg_charts.interval_plot([mark(*row) for row in rows], svg_charts.SHARE, title, told(rows))

    def _errors(self, rows: Sequence[tuple[str, Estimate]], label: str) -> Markup:
        axis = svg_charts.error_axis((e.ci_high if e.ci_high is not None else e.value for _, e in rows), label)
        title = "Mean absolute difference from people, and 95% interval"
        return svg_charts.interval_plot([mark(*row) for row in rows], axis, title, told(rows))

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
        unfolded = len(self.distant) <= OPEN_PLATES
        return [
            HeatMap(
                column=column,
                rows_are="country" if flat else "topic",
                columns=across,
                rows=[
                    (row, [heat(found.get((row, name) if flat else (name, row)), column) for name in across])
                    for row in down
                ],
                unfolded=unfolded or i == 0,
            )
            for i, column in enumerate(self.distant)
        ]

    @property
    def wide_maps(self) -> bool:
        """Whether heat maps need a page on its side."""
        countries = {c.country for c in self.report.audit.cells}
        return min(len(countries), len({c.topic for c in self.report.audit.cells})) > MAX_UPRIGHT

    @property
    def topic_table(self) -> PlaceTable:
        return place_table(self.report.topics)

    @property
    def country_table(self) -> PlaceTable:
        return place_table(self.report.countries)

    @property
    def causes(self) -> list[str]:
        """Outcomes that cost something anywhere in the audit."""
        return list(dict.fromkeys(name for row in self.report.coverage.models for name in row.losses))
