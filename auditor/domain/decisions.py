"""Kinds of conflict, aspects that judges rate, and people's decisions: each is declared once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Literal, Self

from auditor.domain.terms import OpenEnum


class ConflictSides(Enum):
    """What the two sides of a conflict are."""

    SCORES = auto()
    """The scores of two models on a cell, or on an item of a scored task."""
    ANSWERS = auto()
    """The answers of two models to an item of a task."""
    METHODS = auto()
    """The scores of one model by two methods."""
    CLAIMS = auto()
    """Two claims on a pair of items, in words; queued by a user's command, not by a run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConflictKindSpec:
    """The properties of a kind of conflict.

    Attributes:
        sides: what the two sides are.
        explanation: how the sides differ, as a clause for the report.
        unvoted_label: completes "13 conflicts …" where judges do not vote on this kind; empty where they do.
    """

    sides: ConflictSides
    explanation: str
    unvoted_label: str = ""


class ConflictKind(OpenEnum):
    """How the two sides of a conflict differ; lists of kinds are in this order, with those of probes at the end."""

    BINARY = (
        "binary",
        ConflictKindSpec(sides=ConflictSides.SCORES, explanation="the scores are on opposite sides of zero"),
    )
    OUTLIER = (
        "outlier",
        ConflictKindSpec(
            sides=ConflictSides.SCORES,
            explanation="one model differs from all others, which agree with each other",
        ),
    )
    GRADIENT = (
        "gradient",
        ConflictKindSpec(
            sides=ConflictSides.SCORES,
            explanation="the scores have the same direction but differ in strength",
        ),
    )
    METHODS = (
        "methods",
        ConflictKindSpec(
            sides=ConflictSides.METHODS,
            explanation="one model’s scores by two methods differ; only people decide these",
            unvoted_label="between two methods of one model",
        ),
    )
    ANSWERS = (
        "answers",
        ConflictKindSpec(sides=ConflictSides.ANSWERS, explanation="two models give different answers"),
    )

    spec: ConflictKindSpec

    def __new__(cls, value: str, *specs: ConflictKindSpec) -> Self:
        """Create a member from its stored name and its one spec."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        [kind.spec] = specs  # any number in the signature, which type checkers also apply to `ConflictKind("binary")`
        return kind

    @classmethod
    def of_probe(cls, value: str, spec: ConflictKindSpec) -> Self:
        """Declare a kind of conflicts that a probe's commands queue."""
        kind = cls.declare(value)
        kind.spec = spec
        return kind

    @property
    def is_voted(self) -> bool:
        """Whether judges vote on conflicts of this kind; otherwise only people decide them."""
        return not self.spec.unvoted_label

    @property
    def label(self) -> str:
        """The name on screen and in the report."""
        return self.value.replace("_", " ")


SURVEY_REVIEW = "TraceReview"
TASK_REVIEW = "AnswerReview"
"""Names of the schemas of judges' answers in audits of a survey, and of a task.

The name is part of the ledger's key, but the fields are not. A schema that gets an aspect, or loses one, therefore
needs a name that was never used. Otherwise answers without the aspect would be read as answers to the new schema.
"""
LIMITED_SURVEY_REVIEW = f"Limited{SURVEY_REVIEW}"
LIMITED_TASK_REVIEW = f"Limited{TASK_REVIEW}"
"""The same where the justification has another limit on words than the default."""
SURVEY_REVIEWS = (SURVEY_REVIEW, LIMITED_SURVEY_REVIEW)
TASK_REVIEWS = (TASK_REVIEW, LIMITED_TASK_REVIEW)


@dataclass(frozen=True, slots=True)
class AspectQuestion:
    """What judges are asked about an aspect.

    Attributes:
        key: key of the answer in the judge's JSON.
        question: text of the review prompt. The answer is true or false; true is the favourable one.
        title: title of the column in the report.
    """

    key: str
    question: str
    title: str


@dataclass(frozen=True, slots=True)
class ReviewAspect:
    """An aspect of a trace that judges rate as met or not met.

    Attributes:
        name: name of the aspect in stored verdicts, in the JSON report and in exports; never changed once used.
        label: word for the aspect in the terminal, as in "lacks culture".
        survey, task: the question in audits of a survey, and in those of a task; None where it is not asked. An aspect
            that is asked no more has neither, and stays listed for the verdicts of earlier audits.
    """

    name: str
    label: str
    survey: AspectQuestion | None = None
    task: AspectQuestion | None = None


REVIEW_ASPECTS: tuple[ReviewAspect, ...] = (
    ReviewAspect(
        "cultural_accuracy",
        label="culture",
        survey=AspectQuestion("cultural_accuracy", "are the norms plausible and no stereotype", "Cultural accuracy"),
    ),
    ReviewAspect(
        "logical_consistency",
        label="logic",
        survey=AspectQuestion("logical_consistency", "does each step follow", "Logical consistency"),
        task=AspectQuestion(
            "logical_consistency", "are the facts right and does each step follow", "Logical consistency"
        ),
    ),
    ReviewAspect(
        "score_fit",
        label="score",
        survey=AspectQuestion("score_fit", "does the score fit the reasoning", "Score fits the reasoning"),
        task=AspectQuestion(
            "answer_fit", "is the answer the one that the reasoning leads to", "Answer fits the reasoning"
        ),
    ),
)
"""All aspects, in the order in which judges rate them and in which they are shown."""


@functools.cache
def aspect_questions(*, for_task: bool) -> Mapping[str, AspectQuestion]:
    """Questions of an audit of a survey, or of a task, by name of the aspect, in order."""
    questions = {aspect.name: aspect.task if for_task else aspect.survey for aspect in REVIEW_ASPECTS}
    return {name: question for name, question in questions.items() if question is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionSpec:
    """The properties of a decision.

    Attributes:
        keys: keys of the review screen, as Textual names them, separated by commas.
        glyph, label: symbol and short name in the queue.
        help: what the key does, as a sentence without its full stop.
        phrase: what the rater said, about the sides as shown.
        report_phrase: what people said, for the report; empty if the same. The report names the model instead if the
            decision upholds one side only.
        upholds: whether it calls the left and the right side correct; None if it says nothing of them.
        mirrored: the decision that says the same if the sides are exchanged; empty if it is the same decision.
        resolves: whether it closes the conflict.
        needs_score: whether the rater enters a score; possible only where the sides have scores.
    """

    keys: str
    glyph: str
    label: str
    help: str
    phrase: str
    report_phrase: str = ""
    upholds: tuple[bool, bool] | None = None
    mirrored: str = ""
    resolves: bool = True
    needs_score: bool = False


class Decision(StrEnum):
    """A person's decision on a conflict; keys, commands and tables are in this order."""

    LEFT = (
        "left",
        DecisionSpec(
            keys="1",
            glyph="◀",
            label="left",
            help="Choose the answer on the left",
            phrase="left answer chosen",
            upholds=(True, False),
            mirrored="right",
        ),
    )
    RIGHT = (
        "right",
        DecisionSpec(
            keys="2",
            glyph="▶",
            label="right",
            help="Choose the answer on the right",
            phrase="right answer chosen",
            upholds=(False, True),
            mirrored="left",
        ),
    )
    BOTH = (
        "both",
        DecisionSpec(
            keys="3",
            glyph="◆",
            label="both",
            help="Accept both answers",
            phrase="both answers accepted",
            report_phrase="both are right",
            upholds=(True, True),
        ),
    )
    NEITHER = (
        "neither",
        DecisionSpec(
            keys="4",
            glyph="✕",
            label="neither",
            help="Reject both answers",
            phrase="both answers rejected",
            report_phrase="neither is right",
            upholds=(False, False),
        ),
    )
    SCORE = (
        "score",
        DecisionSpec(
            keys="5,equals_sign",
            glyph="±",
            label="score",
            help="Enter a custom score",
            phrase="custom score",
            report_phrase="another score is right",
            needs_score=True,
        ),
    )
    SKIP = (
        "skip",
        DecisionSpec(
            keys="s",
            glyph="–",
            label="skipped",
            help="Leave the conflict undecided and go to the next",
            phrase="undecided",
            resolves=False,
        ),
    )
    """No decision; also the state after the first decision is undone."""

    spec: DecisionSpec

    def __new__(cls, value: str, *specs: DecisionSpec) -> Self:
        """Create a member from its stored name and its one spec."""
        decision = str.__new__(cls, value)
        decision._value_ = value
        [decision.spec] = specs  # any number in the signature, which type checkers also apply to `Decision("left")`
        return decision

    @property
    def resolves_conflict(self) -> bool:
        """Whether the decision closes the conflict."""
        return self.spec.resolves

    @property
    def needs_score(self) -> bool:
        """Whether the rater enters a score in [-1, 1] with it."""
        return self.spec.needs_score

    @property
    def mirrored(self) -> Decision:
        """The decision that says the same if the two sides are exchanged."""
        return Decision(self.spec.mirrored or self)

    @property
    def upheld_side(self) -> Literal["left", "right"] | None:
        """The only side that it calls correct; None if there is none, or both are."""
        sides: dict[tuple[bool, bool] | None, Literal["left", "right"]] = {
            (True, False): "left",
            (False, True): "right",
        }
        return sides.get(self.spec.upholds)
