"""The words of the field: outcomes, purposes, methods, rulings, decisions, and the cell."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

ENGLISH, NATIVE = "en", "native"
LANGUAGES = ("ar", "de", "en", "es", "fr", "hi", "id", "ja", "pt", "ru", "sw", "tr", "zh")
"""Languages that there are prompts in, by ISO 639-1 code."""
SCORE_MIN = -1.0
SCORE_MAX = 1.0


class Outcome(StrEnum):
    """How one call ended. Only `ok` has a score or a verdict; a failure is never turned into a number."""

    OK = "ok"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    UNPARSED = "unparsed"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    SERVER_ERROR = "server_error"
    CLIENT_ERROR = "client_error"
    OVER_BUDGET = "over_budget"
    NOT_MEASURABLE = "not_measurable"

    @property
    def is_answer(self) -> bool:
        """Whether the model answered: such a result was paid for and is never asked again."""
        return self in _ANSWER_OUTCOMES


_ANSWER_OUTCOMES = frozenset({Outcome.OK, Outcome.REFUSED, Outcome.TRUNCATED, Outcome.UNPARSED, Outcome.NOT_MEASURABLE})


class Purpose(StrEnum):
    """What a call is for; part of its key."""

    DIRECT = "direct"
    LOGPROB = "logprob"
    REVIEW = "review"
    LOGIC = "logic"
    GUESS = "guess"
    REWRITE = "rewrite"
    CONTEST = "contest"
    PARAPHRASE = "paraphrase"
    MORAL = "moral"
    """An answer to a moral question."""
    RULE = "rule"
    """The rule of thumb behind an answer."""
    CONSISTENCY = "consistency"
    """Whether one answer supports another."""
    CONTRADICTION = "contradiction"


class Method(StrEnum):
    """How a score was measured."""

    DIRECT = "direct"
    LOGPROB = "logprob"


class LogprobMeasure(StrEnum):
    """What a log-probability is read from."""

    ECHO = "echo"
    """A completions endpoint that sends the prompt back with the log-probabilities of its tokens."""
    PROMPT = "prompt_logprobs"
    """A completions endpoint that gives these in a field of their own: vLLM's, and those who follow it."""
    CONTINUATION = "continuation"
    """The model's weights on this machine."""
    CHOICE = "choice"
    """The next token of a chat in which the two ends are the answers A and B."""

    @property
    def needs_completions_endpoint(self) -> bool:
        """Whether it takes a completions endpoint."""
        return self in (LogprobMeasure.ECHO, LogprobMeasure.PROMPT)


class Ruling(StrEnum):
    """What a judge says of a trace."""

    VALID = "VALID"
    INVALID = "INVALID"


class ConflictKind(StrEnum):
    """How two models differ on a cell."""

    BINARY = "binary"
    """The scores lie on opposite sides of zero."""
    OUTLIER = "outlier"
    """One of the two stands alone against the agreement of all the other models on the cell."""
    GRADIENT = "gradient"
    """The same direction, or one exactly neutral, but different strength."""
    METHODS = "methods"
    """One model contradicts itself: its scores by two methods differ so much. No judge has a vote."""
    ANSWERS = "answers"
    """Two models give different answers to an item of a task."""
    LOGIC = "logic"
    """A judge's verdict on a pair of items, against what follows from all its verdicts; sent to the queue by hand."""


class ConflictState(StrEnum):
    """Whether a conflict is settled, and by whom."""

    OPEN = "open"
    MAJORITY = "majority"
    PERSON = "person"


class Decision(StrEnum):
    """What a person says of a conflict."""

    LEFT = "left"
    RIGHT = "right"
    BOTH = "both"
    NEITHER = "neither"
    SCORE = "score"
    """Neither side, but a score of the person's own."""
    SKIP = "skip"
    """Nothing, or nothing any more: also what an undo of the first decision leaves."""

    @property
    def resolves_conflict(self) -> bool:
        """Whether the decision closes the conflict."""
        return self is not Decision.SKIP


class RatingAction(StrEnum):
    """What a person did that a row of ratings records."""

    DECIDE = "decide"
    NOTE = "note"
    FLAG = "flag"
    REVEAL = "reveal"
    """Asked to see authors, verdicts and survey before deciding."""
    UNDO = "undo"
    REDO = "redo"


class Cell(NamedTuple):
    """One country x topic pair."""

    country: str
    topic: str
