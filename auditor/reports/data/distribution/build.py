"""Build the report on distributions of answers from the stored opinions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from auditor.domain import Cell
from auditor.domain.opinions import Opinion, OpinionMode
from auditor.reports.data.distribution.group_rows import build_group_rows
from auditor.reports.data.distribution.model_rows import build_baseline_rows, build_model_row
from auditor.reports.data.distribution.schema import DistributionGroupRow, DistributionModelRow, DistributionReport
from auditor.reports.data.distribution.series import ModelCell, Series, align_cells, combine_answers
from auditor.reports.data.report_source import ReportSource
from auditor.storage.database import Database
from auditor.storage.opinions import load_opinions, load_survey_shares
from auditor.surveys import SurveyDistributions

SeriesKey = tuple[str, OpinionMode]
"""A model and a mode."""


def build_distribution_report(db: Database, source: ReportSource) -> DistributionReport | None:
    """Build the report; None where no answer on the survey's scale is stored."""
    stored_shares = load_survey_shares(db, source.audit.id)
    opinions = load_opinions(db, source.audit.id)
    if stored_shares is None or not opinions:
        return None
    distributions = SurveyDistributions.model_validate(json.loads(stored_shares))
    points = np.array([point.score for point in distributions.points])
    everyone = distributions.by_cell()
    models: list[DistributionModelRow] = []
    groups: list[DistributionGroupRow] = []
    series_by_key: dict[SeriesKey, Series] = {}
    for key, of_series in _group_by_series(opinions).items():
        model, mode = key
        answers = _combine_by_group(of_series, points)
        series = align_cells(everyone, answers.get(("", ""), {}))
        unusable = sum(opinion.shares is None for opinion in of_series)
        models.append(build_model_row(model, mode, series, unusable, points, is_ordered=distributions.is_ordered))
        if series is not None:
            series_by_key[key] = series
        if distributions.is_ordered:
            groups += build_group_rows(model, mode, answers, distributions, points)
    largest = max(series_by_key.values(), key=lambda series: len(series.people), default=None)
    return DistributionReport(
        points=[point.name for point in distributions.points],
        is_ordered=distributions.is_ordered,
        has_sample_sizes=any(cell.n is not None for cell in distributions.cells),
        models=models,
        groups=groups,
        baselines=[] if largest is None or not distributions.is_ordered else list(build_baseline_rows(largest, points)),
    )


def _group_by_series(opinions: Sequence[Opinion]) -> dict[SeriesKey, list[Opinion]]:
    """Opinions by model and mode; modes in the order of their definition."""
    keys = sorted({(o.model, o.mode) for o in opinions}, key=lambda key: (key[0], list(OpinionMode).index(key[1])))
    grouped: dict[SeriesKey, list[Opinion]] = {key: [] for key in keys}
    for opinion in opinions:
        grouped[opinion.model, opinion.mode].append(opinion)
    return grouped


def _combine_by_group(
    opinions: Sequence[Opinion], points: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> Mapping[tuple[str, str], Mapping[Cell, ModelCell]]:
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
