"""Build the report on distributions of answers from the stored opinions, and the figures of its gates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from auditor.domain import Cell
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.unit_means import mean_over_units
from auditor.probes.distribution.figures.rows import (
    AskedPeople,
    GroupAnswers,
    GroupPeople,
    ModelAnswers,
    build_baseline_rows,
    build_cell_rows,
    build_dimension_rows,
    build_group_rows,
    build_model_row,
    squared_distances,
)
from auditor.probes.distribution.figures.schema import DistributionGapRow, DistributionReport
from auditor.probes.distribution.figures.series import (
    FloatArray,
    Series,
    align_cells,
    build_scale_grid,
    combine_answers,
)
from auditor.probes.distribution.opinion_rows import load_survey_shares
from auditor.probes.distribution.opinions import (
    MIN_GROUP_RESPONDENTS,
    NO_COUNTRY,
    OPINION_PURPOSE,
    Opinion,
    OpinionMode,
)
from auditor.probes.distribution.settings import DistributionProbe
from auditor.reports.data.coverage.counts import StageCoverage
from auditor.reports.data.gates.estimates import SETTINGS_REASON, GatedFigure, count_lost, take_absolute
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.requests import SamplingReport
from auditor.storage.database import Database
from auditor.storage.records import load_records
from auditor.surveys import SurveyDistributions, get_grouping


def list_gate_figures(report: Report, threshold: str) -> list[GatedFigure]:
    """A figure of each model's opinions, by mode; a shift counts in either direction.

    The diversity of sampled answers has no value for models that were asked with other sampling settings than the
    configuration's, if these differ between models.
    """
    distribution = report.find(DistributionReport)
    if distribution is None:
        return []
    field = threshold.partition("_")[2]
    refusing_models = report.sampling.refusing_models(OPINION_PURPOSE)
    figures = []
    for row in distribution.models:
        estimate: Estimate = getattr(row, field)
        if field == "order_effect":
            estimate = take_absolute(estimate)
        elif field == "variance_ratio" and row.is_sampled and row.model in refusing_models:
            estimate = Estimate(None, 0, reason=SETTINGS_REASON)
        lost = max(row.unusable, count_lost(report, "distribution", row.model))
        figures.append(GatedFigure(f"{row.model} ({row.mode})", estimate, row.model, lost))
    return figures


def build_distribution_report(
    db: Database, source: ReportSource, sampling: SamplingReport
) -> DistributionReport | None:
    """Build the report; None where no answer on the survey's scale is stored."""
    stored_shares = load_survey_shares(db, source.audit.id)
    opinions = load_records(db, source.audit.id, Opinion)
    if stored_shares is None or not opinions:
        return None
    distributions = SurveyDistributions.model_validate(json.loads(stored_shares))
    grid = build_scale_grid(distributions)
    points = grid.points
    regions = get_grouping(source.survey).region_by_country
    by_series = _group_by_series([grid.place(opinion) for opinion in opinions], source.models)
    people = GroupPeople(grid.distributions, _find_min_respondents(source))
    collected = [_collect_answers(key, of_series, people, points) for key, of_series in by_series.items()]
    ordered_people, ordered = people, collected
    if grid.unordered_topics:
        ordered_cells = [cell for cell in grid.distributions.cells if cell.topic not in grid.unordered_topics]
        in_order = grid.distributions.model_copy(update={"cells": tuple(ordered_cells)})
        ordered_people = GroupPeople(in_order, _find_min_respondents(source))
        ordered = [
            _collect_answers(
                key, [o for o in of_series if o.cell.topic not in grid.unordered_topics], ordered_people, points
            )
            for key, of_series in by_series.items()
        ]
    is_ordered = len(grid.unordered_topics) < len(grid.positions)
    asked_cells = {opinion.cell for of_series in by_series.values() for opinion in of_series if not opinion.dimension}
    asked = AskedPeople({cell: row for cell, row in ordered_people.everyone.items() if cell in asked_cells})
    largest = max((a.series for a in ordered if a.series), key=lambda series: len(series.people), default=None)
    return DistributionReport(
        points=[point.name for point in distributions.points],
        is_ordered=is_ordered,
        scales={topic: [point.name for point in scale.points] for topic, scale in distributions.scales.items()},
        has_sample_sizes=any(cell.n is not None for cell in distributions.cells),
        models=[
            build_model_row(answers, in_order, asked, points, regions, is_ordered=is_ordered)
            for answers, in_order in zip(collected, ordered, strict=True)
        ],
        groups=[row for a in ordered for row in build_group_rows(a, ordered_people, points)],
        dimensions=[row for a in ordered for row in build_dimension_rows(a, ordered_people, points)],
        knowledge=list(_compare_modes(ordered, points)),
        cells=[row for a in ordered for row in build_cell_rows(a, grid)],
        baselines=list(build_baseline_rows(largest, asked, grid, regions)) if largest is not None else [],
    )


def measure_distribution_coverage(report: DistributionReport) -> Iterator[StageCoverage]:
    """Yield the coverage of opinions in each mode, by model."""
    for mode in OpinionMode:
        rows = [
            (row.model, row.answers, row.answers - row.unusable, row.losses)
            for row in report.models
            if row.mode == mode
        ]
        if rows:
            yield StageCoverage.by_model("distribution", mode.value, rows)


def _find_min_respondents(source: ReportSource) -> int:
    """The fewest respondents of a group, as the configuration has it."""
    probe = source.config.probes.find(DistributionProbe) if source.config else None
    return MIN_GROUP_RESPONDENTS if probe is None else probe.min_n


def _group_by_series(
    opinions: Sequence[Opinion], models: Sequence[str]
) -> dict[tuple[str, OpinionMode], list[Opinion]]:
    """Opinions by model and mode, in the order of the report's models and of the definition of modes."""
    names = list(dict.fromkeys([*models, *sorted({opinion.model for opinion in opinions})]))
    grouped: dict[tuple[str, OpinionMode], list[Opinion]] = {(name, mode): [] for name in names for mode in OpinionMode}
    for opinion in opinions:
        grouped[opinion.model, opinion.mode].append(opinion)
    return {key: of_series for key, of_series in grouped.items() if of_series}


def _collect_answers(
    key: tuple[str, OpinionMode], opinions: Sequence[Opinion], people: GroupPeople, points: FloatArray
) -> ModelAnswers:
    """Put together what one model answered in one mode."""
    by_group = _combine_by_group(opinions, points)
    everyone = by_group.get(("", ""), {})
    return ModelAnswers(
        model=key[0],
        mode=key[1],
        opinions=opinions,
        by_group=by_group,
        series=align_cells(people.everyone, everyone),
        n_incomplete=len({o.cell for o in opinions if not o.dimension} & people.everyone.keys() - everyone.keys()),
        without_country={cell.topic: answer for cell, answer in everyone.items() if cell.country == NO_COUNTRY},
    )


def _combine_by_group(opinions: Sequence[Opinion], points: FloatArray) -> GroupAnswers:
    """The answers of one model and mode by dimension and group, then by cell."""
    by_key: dict[tuple[str, str], dict[Cell, list[Opinion]]] = {}
    for opinion in opinions:
        by_key.setdefault((opinion.dimension, opinion.group), {}).setdefault(opinion.cell, []).append(opinion)
    return {
        key: {
            cell: combined
            for cell, of_cell in by_cell.items()
            if (combined := combine_answers(of_cell, points)) is not None
        }
        for key, by_cell in by_key.items()
    }


def _compare_modes(collected: Sequence[ModelAnswers], points: FloatArray) -> Iterator[DistributionGapRow]:
    """Yield what each model does against what it knows, over the cells with both."""
    by_mode: dict[str, Mapping[str, Series]] = {}
    for answers in collected:
        if answers.series is not None:
            by_mode[answers.model] = {**by_mode.get(answers.model, {}), answers.mode: answers.series}
    for model, series_by_mode in by_mode.items():
        sampled, stated = (series_by_mode.get(mode) for mode in (OpinionMode.SAMPLED, OpinionMode.VERBALIZED))
        if sampled is None or stated is None:
            continue
        known = dict(zip(stated.cells, squared_distances(stated, points).tolist(), strict=True))
        shown = squared_distances(sampled, points)
        differences = [
            float(distance) - known.get(cell, np.nan) for cell, distance in zip(sampled.cells, shown, strict=True)
        ]
        gap = mean_over_units(differences, sampled.units, (-np.inf, np.inf), empty_reason="no cell has both answers")
        yield DistributionGapRow(model=model, n=gap.n, knowledge_gap=gap)
