"""What models are compared with: scores of a survey by country and topic with its questions, and a user's own tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from auditor.domain.records import Key, LongText, RowPolicy, stored
from auditor.domain.terms import SCORE_MAX, SCORE_MIN, Cell

OPTION_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Labels of the options shown to models, in order."""


class AnswerKind(StrEnum):
    """What an item is answered with."""

    SCORE = "score"
    """A number in a declared range."""
    CHOICE = "choice"
    """One of the item's options."""
    EXACT = "exact"
    """A number or a few words that are compared with the right answer."""


@stored("task_item", RowPolicy.MUTABLE, position=2)
@dataclass(frozen=True, slots=True)
class TaskItem:
    """One question of a task.

    Attributes:
        context: text shown before the question; may be empty.
        options: the options to choose from; empty for kinds other than `choice`.
        truth: the right answer in canonical form; None if unknown.
    """

    id: Key[str]
    question: LongText[str]
    context: LongText[str] = ""
    options: LongText[tuple[str, ...]] = ()
    truth: LongText[str | None] = None

    @property
    def cell(self) -> Cell:
        """Cell that represents the item in an audit: its id is the topic, the country is empty."""
        return Cell("", self.id)

    @property
    def letters(self) -> dict[str, str]:
        """Options by letter."""
        return dict(zip(OPTION_LETTERS, self.options, strict=False))


def lettered_options(item: TaskItem) -> list[str]:
    """An item's options with their letters, one per line; empty for kinds other than `choice`."""
    return [f"{letter}) {option}" for letter, option in item.letters.items()]


@dataclass(frozen=True, slots=True)
class Task:
    """The items of a task, and how their answers are read.

    Attributes:
        source: name of the file.
        digest: SHA-256 of the items, so that a changed file is a different task.
        range: minimum and maximum of a score; None for other kinds.
        numbers: whether exact answers are numbers.
        tolerance: largest distance of a correct number from the truth, in the units of the answers; None compares for
            equality, and for scores means that none is counted as correct or wrong.
        items: items by id, in order.
        people: names of people who answered the items too, among the authors of recorded answers.
    """

    source: str
    kind: AnswerKind
    digest: str
    range: tuple[float, float] | None = None
    numbers: bool = False
    tolerance: float | None = None
    items: Mapping[str, TaskItem] = field(default_factory=dict, repr=False)
    people: tuple[str, ...] = ()

    def item_for(self, cell: Cell) -> TaskItem:
        """The item that a cell represents."""
        return self.items[cell.topic]

    def scale_score(self, score: float) -> float:
        """Rescale a score from the declared range to [-1, 1], the scale of thresholds and variances."""
        low, high = self.range or (SCORE_MIN, SCORE_MAX)
        return SCORE_MIN + (SCORE_MAX - SCORE_MIN) * (score - low) / (high - low)


@stored("survey_cell", RowPolicy.MUTABLE, position=1)
@dataclass(frozen=True, slots=True)
class SurveyCell:
    """Survey responses of one country on one topic.

    Attributes:
        score: mean response, in [-1, 1]; None if the question was not asked.
        n: number of respondents; None if unknown.
        standard_error: standard error of the score; None if unknown.
        nonresponse: share of respondents without a usable answer, in [0, 1]; None if unknown.
        acceptable, not_a_moral_issue, unacceptable: shares of the answers, in [0, 1]; None if the survey has none.
    """

    cell: Key[Cell]
    score: float | None
    n: int | None = None
    standard_error: float | None = None
    nonresponse: float | None = None
    acceptable: float | None = None
    not_a_moral_issue: float | None = None
    unacceptable: float | None = None


class Region(NamedTuple):
    """A group of countries, in the survey's spelling."""

    name: str
    countries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """A grouping of a survey's countries into regions; each country is in at most one."""

    name: str
    title: str
    regions: tuple[Region, ...]

    @property
    def region_by_country(self) -> dict[str, str]:
        """Name of the region by country."""
        return {country: region.name for region in self.regions for country in region.countries}


@dataclass(frozen=True, slots=True)
class Phrasing:
    """Configured wording that replaces the survey's own, in one language.

    Attributes:
        wording, scale: as in `Survey`.
        topics: wording by topic label; other topics keep their own wording.
    """

    wording: str
    scale: tuple[str, str]
    topics: Mapping[str, str] = field(default_factory=dict)


class TopicQuestion(NamedTuple):
    """A question about one topic.

    Attributes:
        wording, scale: as in `Survey`.
    """

    wording: str
    scale: tuple[str, str]


@dataclass(frozen=True)
class Survey:
    """Ground truth: the cells of a survey, and the wording of its question.

    Attributes:
        wording: the question, with the placeholders `{topic}` and `{country}`.
        scale: labels of the two ends of the scale, as (never, always).
        topic_questions: question by topic, of topics that were asked with another wording or scale.
        words: words that identify a topic in a text, by topic; they are masked before judges see the text.
        grouping: regions to compare; None compares Western with other countries.
        native: main languages by country, restricted to languages that have prompts.
        phrasings: by language, configured wordings that replace the survey's own.
        topic_families: topics that are about one thing, by the name of their family; topics in none stand alone.
        task: the user's task if the audit asks one instead of a survey; each item has a cell without a country.
        n_unplanned: number of cells that models could be asked about but are not, because of `limits.max_cells` or
            because imported answers are not about them.
        question: the question that models were asked elsewhere, as the importer of their answers states it; None if it
            is not known, and for an audit that was run, which asks `wording`.
        donors: scores by cell of the rest of the survey's file, which the audit does not compare models with. Estimates
            from similar countries use them.
        zones: cultural zone by country, of the countries that have one; None for audits of earlier versions, which did
            not store it. Intervals cluster countries by zone.
        wordings: by language, further wordings of the question (with `{never}` and `{always}` for the scale), which
            models are asked beside `wording`; equally many in each language. Empty for one wording.
        file: built-in survey or path of the file that imported answers are compared with, beside which reports look for
            facts about the survey; empty for an audit that was run, whose configuration names it.
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
    topic_families: Mapping[str, Sequence[str]] = field(default_factory=dict)
    n_unplanned: int = 0
    question: str | None = None
    topic_questions: Mapping[str, TopicQuestion] = field(default_factory=dict)
    donors: Mapping[Cell, float] = field(default_factory=dict, repr=False)
    zones: Mapping[str, str] | None = None
    wordings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    file: str = ""

    @cached_property
    def countries(self) -> tuple[str, ...]:
        """Countries in the order of the survey."""
        return tuple(dict.fromkeys(survey_cell.cell.country for survey_cell in self.cells))

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """Topics in the order of the survey."""
        return tuple(dict.fromkeys(survey_cell.cell.topic for survey_cell in self.cells))

    @cached_property
    def scores(self) -> dict[Cell, float]:
        """Score by cell, of the cells that have one; built once and not to be changed."""
        return {survey_cell.cell: survey_cell.score for survey_cell in self.cells if survey_cell.score is not None}

    @property
    def n_wordings(self) -> int:
        """Number of wordings in which each question is asked."""
        return 1 + max(map(len, self.wordings.values()), default=0)

    def question_about(self, topic: str) -> TopicQuestion:
        """The wording and scale of a topic."""
        return self.topic_questions.get(topic) or TopicQuestion(self.wording, self.scale)

    @property
    def asked_cells(self) -> tuple[Cell, ...]:
        """Cells that models are asked about: those with a survey score, or all items of a task."""
        return tuple(survey_cell.cell for survey_cell in self.cells if self.task or survey_cell.score is not None)
