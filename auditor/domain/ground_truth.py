"""Ground truth: what people of each country say, how they were asked, and how countries are grouped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from auditor.domain.tasks import Task
from auditor.domain.terms import Cell


@dataclass(frozen=True, slots=True)
class SurveyCell:
    """What people of a country say of a topic.

    Attributes:
        score: in [-1, 1]; None where the question was not asked.
        n: respondents behind the score; None where unknown.
        standard_error: of the score; None where unknown.
        nonresponse: share of respondents without a usable answer, in [0, 1]; None where unknown.
        acceptable, not_a_moral_issue, unacceptable: shares in [0, 1] where the survey has them.
    """

    cell: Cell
    score: float | None
    n: int | None = None
    standard_error: float | None = None
    nonresponse: float | None = None
    acceptable: float | None = None
    not_a_moral_issue: float | None = None
    unacceptable: float | None = None


class Region(NamedTuple):
    """A group of countries, as the survey spells them."""

    name: str
    countries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups that a survey's countries are compared by; a country is in one of them or in none."""

    name: str
    title: str
    regions: tuple[Region, ...]

    @property
    def by_country(self) -> dict[str, str]:
        """Region by country."""
        return {country: region.name for region in self.regions for country in region.countries}


@dataclass(frozen=True, slots=True)
class Phrasing:
    """Other words than the survey's own, in one language.

    Attributes:
        wording, scale: as in `Survey`.
        topics: wordings of topics by label; a topic that is not there keeps its own.
    """

    wording: str
    scale: tuple[str, str]
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Survey:
    """Ground truth: cells, and how the question was put to people.

    Attributes:
        wording: what a model is asked about a topic, with the placeholders `{topic}` and `{country}`.
        scale: the meaning of the two ends, in words, as (never, always).
        words: for each topic the words that give it away in a text; used to blind judges.
        grouping: groups of countries to compare; None is Western and others.
        native: main languages by country, of those that there are prompts in.
        phrasings: by language, where the configuration asks in other words than the survey's own.
        task: items of the user's own that are asked instead; each has a cell without a country. None for a survey.
    """

    name: str
    title: str
    source: str
    wording: str
    scale: tuple[str, str]
    cells: tuple[SurveyCell, ...]
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    grouping: Grouping | None = None
    native: Mapping[str, Sequence[str]] = field(default_factory=dict)
    phrasings: Mapping[str, Phrasing] = field(default_factory=dict)
    task: Task | None = None

    @property
    def countries(self) -> tuple[str, ...]:
        """Countries in the order of the survey."""
        return tuple(dict.fromkeys(c.cell.country for c in self.cells))

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics in the order of the survey."""
        return tuple(dict.fromkeys(c.cell.topic for c in self.cells))

    @property
    def scores(self) -> dict[Cell, float]:
        """Score by cell, of the cells that have one."""
        return {c.cell: c.score for c in self.cells if c.score is not None}

    @property
    def asked_cells(self) -> tuple[Cell, ...]:
        """What models are asked about: the cells that people were asked about, or all items of a task."""
        return tuple(c.cell for c in self.cells if self.task or c.score is not None)
