"""What one can say of a cell without any model: means of other cells of the same survey. Pure functions.

The cell itself is always left out, so a baseline never sees what it predicts. A model that agrees with the survey no
better than the topic mean knows nothing about cultures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable

from auditor.domain import Cell, Survey
from auditor.surveys.regions import grouping_of

Scores = dict[Cell, float]


def topic_mean(survey: Survey) -> Scores:
    """Each cell's topic over all other countries.

    Among n countries the mean without a country falls as that country's score rises, so that within one topic this
    baseline correlates negatively with the survey; over many topics that hardly matters.

    Returns:
        Prediction in [-1, 1] by cell; cells without a score, or with no other country that has one, are absent.
    """
    return _others(survey, lambda cell: cell.topic)


def country_mean(survey: Survey) -> Scores:
    """Each cell's country over all its other topics; as `topic_mean` otherwise."""
    return _others(survey, lambda cell: cell.country)


def regional_mean(survey: Survey) -> Scores:
    """Each cell's topic over the other countries of its region; as `topic_mean` otherwise.

    Regions are those of the survey's grouping. Cells of a country without a region are absent.
    """
    regions = grouping_of(survey).by_country
    return _others(survey, lambda cell: (regions[cell.country], cell.topic) if cell.country in regions else None)


def baselines(survey: Survey) -> dict[str, Scores]:
    """All baselines by name: `topic mean`, `country mean` and `regional mean`."""
    return {
        "topic mean": topic_mean(survey),
        "country mean": country_mean(survey),
        "regional mean": regional_mean(survey),
    }


def _others(survey: Survey, group: Callable[[Cell], Hashable | None]) -> Scores:
    """For each scored cell the mean of the other scored cells of its group."""
    members: dict[Hashable, list[Cell]] = defaultdict(list)
    scores = survey.scores
    for cell in scores:
        key = group(cell)
        if key is not None:
            members[key].append(cell)
    predicted: Scores = {}
    for cells in members.values():
        total = sum(scores[c] for c in cells)
        if len(cells) > 1:
            predicted |= {c: (total - scores[c]) / (len(cells) - 1) for c in cells}
    return predicted
