"""How the figures of agreement change without one cultural zone of countries, one family of topics, or one of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.cell_statistics import BIAS, MAE, PEARSON, Statistic
from auditor.metrics.leave_out import find_influential_unit, leave_out_range
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.rescaled_scores import has_rescaled_scores
from auditor.reports.document import Column

Figure = Literal["pearson_r", "mae", "bias"]
GroupNoun = Literal["cultural zone", "topic family", "topic"]
STATISTICS: Mapping[Figure, Statistic] = {"pearson_r": PEARSON, "mae": MAE, "bias": BIAS}


class LeftOutFigure(ReportModel):
    """A figure without one zone, family or topic."""

    value: float
    left_out: str
    """Name of the zone, family or topic."""


class SensitivityRow(ReportModel):
    """Range of one model's figure when each zone, family or topic in turn is left out. It shows how far the figure
    depends on a few countries or topics that are alike, which the intervals take as exchangeable with the others."""

    model: ModelName
    method: str
    figure: Annotated[Figure, Column("Figure")]
    without: Annotated[GroupNoun, Column("Left out in turn")]
    """What is left out: a zone of the Inglehart-Welzel map (a country that is not on it is a zone of its own), or a
    family of topics of the survey; single topics where the survey names no families."""
    groups: Annotated[int, Column("How many")]
    """Number of zones, families or topics with a score."""
    fewest_left: Annotated[int, Column("Fewest left")]
    """Fewest countries (without a zone) or topics (without a family or topic) with a score that any of them leaves."""
    lowest: Annotated[LeftOutFigure, Column("Lowest", part="value"), Column("Without", "name", part="left_out")]
    highest: Annotated[LeftOutFigure, Column("Highest", part="value"), Column("Without", "name", part="left_out")]


class _Grouping(NamedTuple):
    """Groups of cells that are left out in turn.

    Attributes:
        groups: the group of each cell, shape (cells,).
        units: the country or topic of each cell, shape (cells,), of which a group has one or more.
    """

    noun: GroupNoun
    groups: NDArray[np.str_]
    units: NDArray[np.str_]


def build_sensitivity_rows(source: ReportSource) -> list[SensitivityRow]:
    """Compute the range of r, MAE and bias of each series without each zone and without each family of topics."""
    if not source.columns:
        return []
    countries = np.array([cell.country for cell in source.cells], dtype=np.str_)
    topics = np.array([cell.topic for cell in source.cells], dtype=np.str_)
    groupings = [
        _Grouping("cultural zone", np.array([source.zone_by_country.get(c, c) for c in countries.tolist()]), countries),
        _Grouping(*_find_families(source), topics),
    ]
    return [row for column in range(len(source.columns)) for row in _build_series_rows(source, column, groupings)]


def _build_series_rows(source: ReportSource, column: int, groupings: Sequence[_Grouping]) -> Iterator[SensitivityRow]:
    """Yield the rows of one model and method; none where there is only one zone or family, or no figure."""
    method, model = source.columns[column]
    for figure, statistic in STATISTICS.items():
        if figure != "pearson_r" and has_rescaled_scores(method):
            continue
        for noun, groups, units in groupings:
            scores = source.score_matrix[column]
            value_range = leave_out_range(statistic, scores, source.survey_scores, groups)
            if value_range is None:
                continue
            has_score = ~np.isnan(scores) & ~np.isnan(source.survey_scores)
            lowest, highest = (LeftOutFigure(value=end.value, left_out=end.group) for end in value_range)
            yield SensitivityRow(
                model=model,
                method=method,
                figure=figure,
                without=noun,
                groups=len(names := np.unique(groups[has_score])),
                fewest_left=min(len(np.unique(units[has_score & (groups != name)])) for name in names),
                lowest=lowest,
                highest=highest,
            )


def _find_families(source: ReportSource) -> tuple[GroupNoun, NDArray[np.str_]]:
    """The family of each cell's topic, shape (cells,), and what it is called; the topic itself if there are none."""
    family_by_topic = {topic: family for family, topics in source.survey.topic_families.items() for topic in topics}
    return (
        "topic family" if family_by_topic.keys() & set(source.topics) else "topic",
        np.array([family_by_topic.get(cell.topic, cell.topic) for cell in source.cells], dtype=np.str_),
    )


# --- influence --------------------------------------------------------------------------------------------------


class InfluentialUnit(ReportModel):
    """A country or topic on which nearly all uncertainty of one model's figure over its kind rests."""

    model: str
    method: str
    figure: Figure
    """The mean absolute error, or r for scores without errors."""
    kind: Literal["country", "topic"]
    name: str
    share: float
    """Share of the jackknife variance over countries, or over topics, that is due to this one: above 0.8."""
    without: float
    """The figure without it."""


def find_influential_units(source: ReportSource) -> list[InfluentialUnit]:
    """Find the countries and topics with more than 0.8 of the variance of a series' main figure over their kind."""
    units: list[InfluentialUnit] = []
    places: tuple[tuple[Literal["country", "topic"], Sequence[str], NDArray[np.intp]], ...] = (
        ("country", source.countries, source.country_index),
        ("topic", source.topics, source.topic_index),
    )
    for column, (method, model) in enumerate(source.columns):
        figure: Figure = "pearson_r" if has_rescaled_scores(method) else "mae"
        arrays = (source.score_matrix[column], source.survey_scores)
        for kind, names, index in places:
            influence = find_influential_unit(STATISTICS[figure], *arrays, index)
            if influence is not None:
                units.append(
                    InfluentialUnit(
                        model=model,
                        method=method,
                        figure=figure,
                        kind=kind,
                        name=names[int(influence.unit)],
                        share=influence.share,
                        without=influence.value_without,
                    )
                )
    return units
