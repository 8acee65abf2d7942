"""Rows of dimensions: whether a model's groups add up to its country, and how alike it makes people of one group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from auditor.domain import Cell
from auditor.metrics import VARIANCE_RATIO, coherence_distance, crossed_jackknife, group_variances
from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import mean_over_units
from auditor.probes.distribution.figures.group_rows import GroupPeople
from auditor.probes.distribution.figures.model_rows import ModelAnswers
from auditor.probes.distribution.figures.schema import DistributionDimensionRow
from auditor.probes.distribution.figures.series import FloatArray, ModelCell
from auditor.probes.distribution.opinions import OpinionMode
from auditor.surveys.distributions import CellShares

GroupCell = tuple[CellShares, ModelCell]
"""A group of a cell: people's shares and the model's."""


def build_dimension_rows(
    answers: ModelAnswers, people: GroupPeople, points: FloatArray
) -> Iterator[DistributionDimensionRow]:
    """Yield a row for each dimension of which the model answered for at least two groups."""
    for dimension, words in people.groups.items():
        groups_by_cell: dict[Cell, list[GroupCell]] = {}
        for group in words:
            of_model = answers.by_group.get((dimension, group), {})
            for cell, shares in people.by_cell(dimension, group).items():
                if cell in of_model:
                    groups_by_cell.setdefault(cell, []).append((shares, of_model[cell]))
        cells = {cell: groups for cell, groups in groups_by_cell.items() if len(groups) > 1}
        if not cells:
            continue
        units = {"country": [cell.country for cell in cells], "topic": [cell.topic for cell in cells]}
        variances = np.array([_measure_variances(groups, points) for groups in cells.values()])
        ratio = crossed_jackknife(VARIANCE_RATIO, variances[:, 0], variances[:, 1], *map(np.array, units.values()))
        yield DistributionDimensionRow(
            model=answers.model,
            mode=answers.mode,
            dimension=dimension,
            n=len(cells),
            coherence=_estimate_coherence(answers, cells, points),
            within_variance_ratio=Estimate(
                ratio.value, ratio.n, ratio.ci_low, ratio.ci_high, ratio.reason, ratio.resampled
            ),
        )


def _weights(groups: list[GroupCell]) -> list[float]:
    """Numbers of respondents; groups of unknown size weigh alike."""
    sizes = [shares.n for shares, _ in groups]
    return [1.0] * len(sizes) if None in sizes else [float(size or 0) for size in sizes]


def _estimate_coherence(answers: ModelAnswers, cells: Mapping[Cell, list[GroupCell]], points: FloatArray) -> Estimate:
    """Mean distance of the groups' stated answers together from those for the country."""
    if answers.mode is OpinionMode.SAMPLED:
        return Estimate(None, len(cells), reason="the distance between samples is above 0 by chance alone")
    everyone = answers.by_group.get(("", ""), {})
    asked = {cell: groups for cell, groups in cells.items() if cell in everyone}
    distances = [
        float(
            coherence_distance(
                [of_model.shares for _, of_model in groups], _weights(groups), everyone[cell].shares, points
            )
        )
        for cell, groups in asked.items()
    ]
    units = {"country": [cell.country for cell in asked], "topic": [cell.topic for cell in asked]}
    reason = "the model was not asked about the country without a group"
    return mean_over_units(distances, units, (0.0, 1.0), empty_reason=reason)


def _measure_variances(groups: list[GroupCell], points: FloatArray) -> tuple[float, float]:
    """Mean variance within groups, of the model and of people."""
    weights = np.array(_weights(groups)) / sum(_weights(groups))
    of_model = float(weights @ [answer.variance for _, answer in groups])
    sizes = [shares.n_effective or np.inf for shares, _ in groups]
    within, _ = group_variances([shares.shares for shares, _ in groups], weights, points, sizes)
    return of_model, float(within)
