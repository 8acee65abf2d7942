"""Rows of groups: gaps between two groups of people, and whether their names steer the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from auditor.domain import Cell
from auditor.metrics import (
    PEARSON,
    gap_slope,
    share_variance,
    specificity,
    squared_distance,
    steering_gain,
)
from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import mean_over_units
from auditor.probes.distribution.figures.model_rows import ModelAnswers
from auditor.probes.distribution.figures.schema import DistributionGroupRow, DistributionStep
from auditor.probes.distribution.figures.series import FloatArray, ModelCell, Series, align_cells, two_way_estimate
from auditor.probes.distribution.opinions import PLACEBO
from auditor.surveys import SurveyDistributions
from auditor.surveys.distributions import CellShares

GroupAnswers = Mapping[tuple[str, str], Mapping[Cell, ModelCell]]
"""A model's answers by dimension and group, then by cell; both names are empty for everyone."""


class GroupPeople:
    """People's shares by group, of the cells in which a group is large enough; groups of unknown size are kept."""

    def __init__(self, distributions: SurveyDistributions, min_respondents: int) -> None:
        """Index the shares.

        Args:
            min_respondents: fewest respondents of a group in a cell; half of that effectively.
        """
        self.groups = distributions.groups
        self.everyone = distributions.by_cell()
        self._by_group: dict[tuple[str, str], dict[Cell, CellShares]] = {}
        for row in distributions.cells:
            if row.is_large_enough(min_respondents):
                self._by_group.setdefault((row.dimension, row.group), {})[Cell(row.country, row.topic)] = row

    def by_cell(self, dimension: str, group: str) -> dict[Cell, CellShares]:
        """A group's shares by cell."""
        return self._by_group.get((dimension, group), {})


def build_group_rows(answers: ModelAnswers, people: GroupPeople, points: FloatArray) -> Iterator[DistributionGroupRow]:
    """Yield a row for each two groups of a dimension that the model answered for."""
    for dimension, words in people.groups.items():
        answered = [group for group in words if (dimension, group) in answers.by_group]
        for first, second in combinations(answered, 2):
            pair = [
                align_cells(people.by_cell(dimension, group), answers.by_group[dimension, group])
                for group in (first, second)
            ]
            if pair[0] is None or pair[1] is None:
                continue
            both = _keep_common(pair[0], pair[1])
            if len(both[0].people):
                yield _build_row(answers, (dimension, first, second), both, points, people)


def _build_row(
    answers: ModelAnswers,
    names: tuple[str, str, str],
    pair: tuple[Series, Series],
    points: FloatArray,
    all_people: GroupPeople,
) -> DistributionGroupRow:
    """The row of two groups over the cells that have both."""
    first, second = pair
    unit_points = (points - points[0]) / (points[-1] - points[0])
    people, of_model = (
        (second_shares - first_shares) @ unit_points
        for first_shares, second_shares in ((first.people, second.people), (first.model, second.model))
    )
    noise = sum((share_variance(part.people, points, part.sizes) / part.sizes for part in pair), np.zeros(len(people)))
    specific = specificity((first.people, first.model), (second.people, second.model), points)
    return DistributionGroupRow(
        model=answers.model,
        mode=answers.mode,
        dimension=names[0],
        first=names[1],
        second=names[2],
        n=len(people),
        slope=gap_slope(people, of_model, noise, first.units),
        intercept_slope=gap_slope(people, of_model, noise, first.units, intercept=True),
        r=two_way_estimate(PEARSON, of_model, people, first),
        specificity=mean_over_units(specific, first.units, (-1.0, 1.0)),
        steering_gain=_estimate_gain(pair, points, answers.by_group, all_people.everyone),
        people_gaps=[round(float(gap), 4) for gap in people],
        model_gaps=[round(float(gap), 4) for gap in of_model],
        steps=[
            _describe_step(group, series, answers.by_group.get(("", ""), {}), unit_points)
            for group, series in zip(names[1:], pair, strict=True)
        ],
    )


def _describe_step(
    group: str, series: Series, everyone: Mapping[Cell, ModelCell], unit_points: FloatArray
) -> DistributionStep:
    """Mean answers before and after a group is named, over the cells with both."""
    rows = [i for i, cell in enumerate(series.cells) if cell in everyone]
    before = [float(everyone[series.cells[i]].shares @ unit_points) for i in rows]
    return DistributionStep(
        group=group,
        before=float(np.mean(before)) if rows else None,
        after=float((series.model[rows] @ unit_points).mean()) if rows else None,
        people=float((series.people[rows] @ unit_points).mean()) if rows else None,
    )


def _estimate_gain(
    pair: tuple[Series, Series], points: FloatArray, answers: GroupAnswers, people: Mapping[Cell, CellShares]
) -> Estimate:
    """Mean steering gain of both groups, over the cells with answers for everyone and for an irrelevant attribute."""
    everyone = answers.get(("", ""), {})
    placebo = next((cells for (dimension, _), cells in answers.items() if dimension == PLACEBO), {})
    if not everyone or not placebo:
        missing = "the country without a group" if not everyone else "an irrelevant attribute"
        return Estimate(None, len(pair[0].people), reason=f"the model was not asked about {missing}")
    gains = np.full(len(pair[0].people), np.nan)
    for i, cell in enumerate(pair[0].cells):
        if cell not in everyone or cell not in placebo or cell not in people:
            continue
        to_all = [_distance_to(people[cell], answer, points) for answer in (everyone[cell], placebo[cell])]
        by_group = []
        for series in pair:
            before = squared_distance(
                series.people[i], everyone[cell].shares, points, series.people_cut_variances[i],
                everyone[cell].cut_variances,
            )  # fmt: skip
            after = squared_distance(
                series.people[i], series.model[i], points, series.people_cut_variances[i],
                series.model_cut_variances[i],
            )  # fmt: skip
            by_group.append(steering_gain(before, after, *to_all))
        gains[i] = float(np.mean(by_group))
    return mean_over_units(gains, pair[0].units, empty_reason="no cell has all four answers")


def _distance_to(people: CellShares, answer: ModelCell, points: FloatArray) -> FloatArray:
    """Squared distance of an answer from all people of a cell."""
    return squared_distance(people.shares, answer.shares, points, people.cut_variances or 0.0, answer.cut_variances)


def _keep_common(first: Series, second: Series) -> tuple[Series, Series]:
    """Both series in the cells that both have, in the order of the first."""
    positions = {key: i for i, key in enumerate(zip(second.countries, second.topics, strict=True))}
    matches = [
        (i, positions[key]) for i, key in enumerate(zip(first.countries, first.topics, strict=True)) if key in positions
    ]
    return first.take([i for i, _ in matches]), second.take([j for _, j in matches])
