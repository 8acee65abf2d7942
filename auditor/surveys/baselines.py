"""Baselines that predict a cell's score without a model, from other cells of the same survey. Pure functions.

There are two levels. Means of people's scores know the topic, the country or the region only. Estimates from similar
countries also use the country's own answers to the other topics, and look for them in the whole survey file.

Leave-one-out means exclude the predicted cell, as mean errors require. Correlations require means that include it: the
mean of the other countries falls as a country's own score rises, so that within a topic leave-one-out means correlate
-1 with the survey.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

import numpy as np

from auditor.domain import Cell, Survey
from auditor.metrics.people.structure import estimate_from_nearest
from auditor.surveys.regions import get_grouping

CellScores = dict[Cell, float]
NEAREST_BY_NAME = {"nearest country": 1, "three nearest countries": 3}
"""Estimates from similar countries, and the number of countries that each averages."""
MIN_DONOR_COUNTRIES = 20
"""With fewer countries to look among, the nearest one may be little like the country."""
GroupKey = Callable[[Cell], Hashable | None]
"""Maps a cell to its group, over which a mean is taken; None leaves the cell out."""


def topic_mean(survey: Survey) -> CellScores:
    """Mean score of each cell's topic over all other countries.

    Returns:
        Prediction in [-1, 1] by cell; cells are absent if they, or all other countries, have no score.
    """
    return _leave_one_out_means(survey, _topic_key)


def country_mean(survey: Survey) -> CellScores:
    """Mean score of each cell's country over all other topics; otherwise like `topic_mean`."""
    return _leave_one_out_means(survey, _country_key)


def regional_mean(survey: Survey) -> CellScores:
    """Mean score of each cell's topic over the other countries of its region; otherwise like `topic_mean`.

    Regions are those of the survey's grouping. Cells of a country without a region are absent.
    """
    return _leave_one_out_means(survey, _make_region_key(survey))


def compute_baselines(survey: Survey) -> dict[str, CellScores]:
    """Leave-one-out baselines by name: `topic mean`, `country mean` and `regional mean`."""
    return {
        "topic mean": topic_mean(survey),
        "country mean": country_mean(survey),
        "regional mean": regional_mean(survey),
    }


def estimate_from_similar_countries(survey: Survey) -> dict[str, CellScores]:
    """Score of the country that answers the other topics most alike, and mean of the three such countries, by name.

    Countries and topics of the survey's file that the audit does not use (`Survey.donors`) are looked at too. The
    predicted score itself is not used.

    Returns:
        Prediction in [-1, 1] by cell; cells are absent if they have no score, or if too few countries share at least
        five other topics with theirs.
    """
    scores = {**survey.donors, **survey.scores}
    countries, topics = (list(dict.fromkeys(names)) for names in zip(*scores, strict=True)) if scores else ([], [])
    rows, columns = ({name: i for i, name in enumerate(names)} for names in (countries, topics))
    table = np.full((len(countries), len(topics)), np.nan)
    for cell, score in scores.items():
        table[rows[cell.country], columns[cell.topic]] = score
    estimates = estimate_from_nearest(table, NEAREST_BY_NAME.values())
    return {
        name: {
            cell: float(value)
            for cell in survey.scores
            if not np.isnan(value := estimates[n_nearest][rows[cell.country], columns[cell.topic]])
        }
        for name, n_nearest in NEAREST_BY_NAME.items()
    }


def count_donor_countries(survey: Survey) -> int:
    """Number of other countries among which each country's similar ones are looked for."""
    return max(0, len({cell.country for cell in (*survey.donors, *survey.scores)}) - 1)


def compute_fitted_baselines(survey: Survey) -> dict[str, CellScores]:
    """Baselines by name, as in `compute_baselines`, but with the predicted cell included in its own mean."""
    group_keys = {"topic mean": _topic_key, "country mean": _country_key, "regional mean": _make_region_key(survey)}
    scores = survey.scores
    means_by_baseline: dict[str, CellScores] = {name: {} for name in group_keys}
    for name, group_key in group_keys.items():
        for cells in _group_scored_cells(survey, group_key):
            means_by_baseline[name] |= dict.fromkeys(cells, sum(scores[cell] for cell in cells) / len(cells))
    return means_by_baseline


def _topic_key(cell: Cell) -> Hashable:
    return cell.topic


def _country_key(cell: Cell) -> Hashable:
    return cell.country


def _make_region_key(survey: Survey) -> GroupKey:
    """Return a function that maps a cell to its region and topic; None for a country without a region."""
    regions = get_grouping(survey).region_by_country
    return lambda cell: (regions[cell.country], cell.topic) if cell.country in regions else None


def _leave_one_out_means(survey: Survey, group_key: GroupKey) -> CellScores:
    """Return each scored cell's mean over the other scored cells of its group; a cell alone in its group is absent."""
    scores = survey.scores
    predictions: CellScores = {}
    for cells in _group_scored_cells(survey, group_key):
        total = sum(scores[cell] for cell in cells)
        if len(cells) > 1:
            predictions |= {cell: (total - scores[cell]) / (len(cells) - 1) for cell in cells}
    return predictions


def _group_scored_cells(survey: Survey, group_key: GroupKey) -> Iterable[list[Cell]]:
    """Return one list of scored cells per group; cells whose group key is None are left out."""
    members: dict[Hashable, list[Cell]] = defaultdict(list)
    for cell in survey.scores:
        key = group_key(cell)
        if key is not None:
            members[key].append(cell)
    return members.values()
