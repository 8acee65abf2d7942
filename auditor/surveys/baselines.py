"""What one can say of a cell without any model: means of other cells of the same survey. Pure functions.

Where the cell itself is left out, a baseline never sees what it predicts, as a mean error needs it. A correlation needs
the other kind: among n countries the mean without one falls as that one's score rises, so that within a topic the
mean of the others correlates -1 with the survey.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

from auditor.domain import Cell, Survey
from auditor.surveys.regions import grouping_of

Scores = dict[Cell, float]
Group = Callable[[Cell], Hashable | None]


def topic_mean(survey: Survey) -> Scores:
    """Each cell's topic over all other countries.

    Returns:
        Prediction in [-1, 1] by cell; cells without a score, or with no other country that has one, are absent.
    """
    return _others(survey, _topic)


def country_mean(survey: Survey) -> Scores:
    """Each cell's country over all its other topics; as `topic_mean` otherwise."""
    return _others(survey, _country)


def regional_mean(survey: Survey) -> Scores:
    """Each cell's topic over the other countries of its region; as `topic_mean` otherwise.

    Regions are those of the survey's grouping. Cells of a country without a region are absent.
    """
    return _others(survey, _regional(survey))


def baselines(survey: Survey) -> dict[str, Scores]:
    """All baselines by name: `topic mean`, `country mean` and `regional mean`."""
    return {
        "topic mean": topic_mean(survey),
        "country mean": country_mean(survey),
        "regional mean": regional_mean(survey),
    }


def fitted_baselines(survey: Survey) -> dict[str, Scores]:
    """The same means by name, each over all cells of its group: as well as such a table can do on this survey."""
    groups = {"topic mean": _topic, "country mean": _country, "regional mean": _regional(survey)}
    scores = survey.scores
    found: dict[str, Scores] = {name: {} for name in groups}
    for name, group in groups.items():
        for cells in _members(survey, group):
            found[name] |= dict.fromkeys(cells, sum(scores[c] for c in cells) / len(cells))
    return found


def _topic(cell: Cell) -> Hashable:
    return cell.topic


def _country(cell: Cell) -> Hashable:
    return cell.country


def _regional(survey: Survey) -> Group:
    regions = grouping_of(survey).by_country
    return lambda cell: (regions[cell.country], cell.topic) if cell.country in regions else None


def _others(survey: Survey, group: Group) -> Scores:
    """For each scored cell the mean of the other scored cells of its group."""
    scores = survey.scores
    predicted: Scores = {}
    for cells in _members(survey, group):
        total = sum(scores[c] for c in cells)
        if len(cells) > 1:
            predicted |= {c: (total - scores[c]) / (len(cells) - 1) for c in cells}
    return predicted


def _members(survey: Survey, group: Group) -> Iterable[list[Cell]]:
    """The scored cells of each group."""
    members: dict[Hashable, list[Cell]] = defaultdict(list)
    for cell in survey.scores:
        key = group(cell)
        if key is not None:
            members[key].append(cell)
    return members.values()
