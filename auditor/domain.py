"""The words of the field as types: cells, calls, answers, traces, verdicts, conflicts, ratings, surveys.

Everything here is frozen data without behaviour beyond small derivations; scores are in [-1, 1], where +1 is
"always acceptable" and -1 "never acceptable".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

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
        return self in _ANSWERS


_ANSWERS = frozenset({Outcome.OK, Outcome.REFUSED, Outcome.TRUNCATED, Outcome.UNPARSED, Outcome.NOT_MEASURABLE})


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


class Measure(StrEnum):
    """What a log-probability is read from."""

    ECHO = "echo"
    """A completions endpoint that gives the log-probabilities of the prompt's own tokens."""
    CONTINUATION = "continuation"
    """The model's weights on this machine."""
    CHOICE = "choice"
    """The next token of a chat in which the two ends are the answers A and B."""


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
    def settles(self) -> bool:
        """Whether the decision closes the conflict."""
        return self is not Decision.SKIP


class Act(StrEnum):
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


# --- calls and answers ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Call:
    """One question to one model, complete enough that its key says whether it was asked before.

    Attributes:
        name: the model's name in the audit; not part of the key, since it changes nothing the model sees.
        model: the provider string, such as `openai/gpt-4o`.
        messages: the chat, in order.
        purpose: what the answer is for.
        sample: index of this sample among equal questions, from 0.
        params: what is sent beside the messages: temperature, max_tokens, seed, and the like.
        schema: name of the structure asked for, or None for free text.
        max_words: length of each text in the structure that is asked for; the messages say it too.
        server: the provider's base URL where the config sets one.
        measure: what log-probabilities are read from; None asks for words.
        continuations: ends of the sentence that the message begins, whose log-probabilities are wanted.
        cell: what a direct question is about, for whoever answers from a record; the messages say it, so that it is no
            part of the key.
    """

    name: str
    model: str
    messages: tuple[Message, ...]
    purpose: Purpose
    sample: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    schema: str | None = None
    max_words: int | None = None
    server: str | None = None
    measure: Measure | None = None
    continuations: tuple[str, ...] = ()
    cell: Cell | None = None

    @property
    def key(self) -> str:
        """SHA-256, in hex, of the canonical JSON of all that determines the answer."""
        told = {
            "model": self.model,
            "server": self.server,
            "messages": [[m.role, m.content] for m in self.messages],
            "purpose": self.purpose.value,
            "sample": self.sample,
            "params": dict(self.params),
            "schema": [self.schema, self.max_words],
        }
        return canonical_hash(told if self.measure is None else told | {"measure": [self.measure, *self.continuations]})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that went out for a call; `outcome` says how it ended."""

    number: int
    started_at: datetime
    latency_s: float
    outcome: Outcome
    http_status: int | None = None
    error: str | None = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a call, or why nothing did. Unknown numbers are None, never 0.

    Attributes:
        key: the call's key.
        outcome: as judged by the gateway: `ok` here means that text arrived complete; whether it can be read as a
            score or a verdict is decided by the parser of its purpose.
        text: the model's words, exactly as decoded; None when nothing arrived.
        finish_reason: the provider's own reason for stopping.
        served_model: the model that the provider says it used.
        cost_usd: what the call cost, all attempts that were answered included; None when the price is unknown.
    """

    key: str
    outcome: Outcome
    text: str | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    error: str | None = None
    attempts: tuple[Attempt, ...] = ()


# --- what is read out of answers --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trace:
    """One sampled chain of thought on one cell by one model."""

    model: str
    cell: Cell
    sample: int
    outcome: Outcome
    score: float | None = None
    text: str | None = None
    key: str | None = None
    language: str = "en"
    """ISO 639-1 code of the language that it was asked in."""
    repair_key: str | None = None
    """Of the call that asked once more, where the first answer could not be read."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """One comparison behind a log-probability score: the two opposite ends of one sentence on a cell.

    Attributes:
        number: which of the comparisons, from 0.
        positive, negative: the two ends.
        difference: log P(positive | sentence) - log P(negative | sentence), in nats; only `ok` has one.
        measure: what it was read from; None where nothing could be asked.
        key: of the call; `key_swapped`, of the one in which the two ends have changed places.
    """

    model: str
    cell: Cell
    number: int
    positive: str
    negative: str
    outcome: Outcome
    difference: float | None = None
    measure: Measure | None = None
    key: str | None = None
    key_swapped: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one judge says of one trace; only `ok` has a ruling.

    Attributes:
        confidence: how sure the judge says it is, in [0, 1]; None where it does not say.
        shortened: whether the justification was cut, having stayed too long when asked for once more.
        again_key: of the call that asked for a shorter justification.
        turn: the judge's place in the order, drawn for each trace, in which its panel is asked, from 0.
        always: whether the judge was asked whatever the others said: False for those that an adaptive panel asks only
            while the majority is open, and which therefore see disputed traces only.
    """

    judge: str
    model: str
    cell: Cell
    sample: int
    outcome: Outcome
    ruling: Ruling | None = None
    cultural_accuracy: bool | None = None
    logical_consistency: bool | None = None
    score_fit: bool | None = None
    justification: str | None = None
    key: str | None = None
    confidence: float | None = None
    shortened: bool = False
    again_key: str | None = None
    turn: int = 0
    always: bool = True


@dataclass(frozen=True, slots=True)
class Guess:
    """What one judge takes a blinded trace to be about and by; a hit is None where there was nothing to choose from.

    Attributes:
        hit_country, hit_topic, hit_author: whether the guess was right; None without an answer.
        countries, topics, authors: how many there were to choose from, so that chance is one in so many.
    """

    judge: str
    model: str
    cell: Cell
    sample: int
    outcome: Outcome
    hit_country: bool | None = None
    hit_topic: bool | None = None
    hit_author: bool | None = None
    countries: int = 0
    topics: int = 0
    authors: int = 0
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Restatement:
    """A trace in the words of a third model; only `ok` has a text."""

    model: str
    cell: Cell
    sample: int
    rewriter: str
    outcome: Outcome
    text: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """What one judge says of an altered trace; never part of a vote or of peer agreement.

    Attributes:
        alteration: what was done to the trace: `neutral` (restated), `self` (the judge's own, unaltered), or a fault.
    """

    alteration: str
    judge: str
    model: str
    cell: Cell
    sample: int
    outcome: Outcome
    ruling: Ruling | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Contest:
    """Which of two traces on a cell one judge prefers when it sees both.

    Attributes:
        left, right: model names, as in a conflict.
        swapped: whether the right one was shown first.
        prefers_first: None without an answer.
    """

    judge: str
    cell: Cell
    left: str
    right: str
    swapped: bool
    outcome: Outcome
    prefers_first: bool | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class CellScore:
    """A model's score on a cell by one method: the mean of its `ok` samples, None where there is none.

    Attributes:
        variance: sample variance of the `ok` scores (n - 1 in the denominator); None with fewer than two.
        n_ok, n_planned: `ok` samples, and samples that were to be taken.
        self_consistency: mean pairwise cosine of the reasoning embeddings, in [-1, 1]; None with fewer than two.
        evidence: hash of the texts and of the encoder that self_consistency was computed from.
        sign_agreement: share of the `ok` samples with the commonest sign; None with fewer than two.
        straddles: whether `ok` samples lie on both sides of zero; None with fewer than two.
        raw: before any scaling, in nats, where the score is a scaled log-probability; None elsewhere.
        measure: what a log-probability was read from; None elsewhere.
    """

    model: str
    cell: Cell
    method: str
    score: float | None
    variance: float | None = None
    n_ok: int = 0
    n_planned: int = 0
    self_consistency: float | None = None
    evidence: str | None = None
    raw: float | None = None
    measure: Measure | None = None
    sign_agreement: float | None = None
    straddles: bool | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two models that differ on a cell by at least the threshold.

    Attributes:
        left, right: model names, in the audit's order; which is shown first says nothing.
        score_left, score_right: what a person's decision was about; a decision holds while they stay the same.
        difference: score of left minus score of right.
        seats: judges that could vote (authors of neither side); votes_left + votes_right <= seats.
        winner: the model whose side was upheld; None while open, or when a person said both or neither.
        within_noise: whether the difference is no more than the noise of the samples behind both scores; None where
            that is not known.
    """

    cell: Cell
    left: str
    right: str
    score_left: float
    score_right: float
    kind: ConflictKind
    state: ConflictState = ConflictState.OPEN
    seats: int = 0
    votes_left: int = 0
    votes_right: int = 0
    winner: str | None = None
    within_noise: bool | None = None

    @property
    def id(self) -> str:
        """Short name of the conflict, the same in every run of the audit."""
        return canonical_hash([self.cell.country, self.cell.topic, self.left, self.right])[:10]

    @property
    def difference(self) -> float:
        return self.score_left - self.score_right


@dataclass(frozen=True, slots=True)
class Rating:
    """What a person says of a conflict from now on: appended, never overwritten, so the rater's last row holds.

    Attributes:
        decision, score, note, flagged: the whole of what the rater now says; an undo is a row that says again what was
            said before. `score`, in [-1, 1], comes with the decision of that name only.
        act: what the person did; the other acts repeat the decision as it stood.
        of: id of the row that an undo takes back, or that a redo brings back.
        shown: what the person could see beside the cell, the reasoning and the scores, such as
            `authors,survey,verdicts`; empty is blind.
        swapped: whether the conflict's left side was shown on the right.
        duration_s: seconds from showing the conflict to the act; None where nobody measured.
    """

    cell: Cell
    left: str
    right: str
    score_left: float
    score_right: float
    rater: str
    decision: Decision
    decided_at: datetime
    note: str = ""
    score: float | None = None
    flagged: bool = False
    act: Act = Act.DECIDE
    of: int | None = None
    shown: str = ""
    swapped: bool = False
    duration_s: float | None = None


# --- comparisons ------------------------------------------------------------------------------------------------


class Relation(StrEnum):
    """Which form of the question is put: "which is more …", or its negation, "which is less …"."""

    STANDARD = "standard"
    NEGATED = "negated"


class Choice(StrEnum):
    """The answer to a comparison: the item shown first, the one shown second, or neither."""

    FIRST = "A"
    SECOND = "B"
    TIE = "TIE"


@dataclass(frozen=True, slots=True)
class Item:
    """One of the things compared; `human` is people's score of it on any scale, None where unknown."""

    id: str
    text: str
    human: float | None = None


@dataclass(frozen=True, slots=True)
class ItemSet:
    """Items that are compared with each other.

    Attributes:
        context: names the set.
        text: what judges are told of what the items have in common, such as a query; may be empty.
        criterion: what they are compared by, as `prompts/*/logic.toml` names it.
        language: that judges are asked in, by ISO 639-1 code.
    """

    context: str
    text: str
    criterion: str
    items: tuple[Item, ...]
    language: str = ENGLISH


@dataclass(frozen=True, slots=True)
class Comparison:
    """One judge's answer to one question that shows `item_a` first; only `ok` has a decision.

    Attributes:
        paraphrase: which wording of the question, from 0.
        sample: 0 is the judge's answer; from 1 on, repeats that show how far it agrees with itself.
        probability: in [0, 1], that the item shown first is named, where the answer was read off probabilities.
        people: what people answer to the question in its standard form, where comparisons were imported with it.
    """

    judge: str
    context: str
    item_a: str
    item_b: str
    relation: Relation
    outcome: Outcome
    decision: Choice | None = None
    paraphrase: int = 0
    sample: int = 0
    probability: float | None = None
    people: Choice | None = None
    key: str | None = None


# --- ground truth -----------------------------------------------------------------------------------------------


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


# --- identity ---------------------------------------------------------------------------------------------------


def side_by_method(model: str, method: str) -> str:
    """What one side of a conflict between two methods of a model is called."""
    return f"{model} ({method})"


def model_of_side(side: str) -> tuple[str, str]:
    """The model and the method behind one side of a conflict between two methods of a model."""
    model, _, method = side.removesuffix(")").rpartition(" (")
    return model, method


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and no NaN, so that equal values have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_hash(value: Any) -> str:
    """SHA-256, in hex, of the canonical JSON; lone surrogates are kept apart by their escapes."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def derive_seed(seed: int, *parts: object) -> int:
    """A seed in [0, 2**31) for one sample, from the audit's seed and what tells the sample from others."""
    digest = hashlib.sha256(canonical_json([seed, *map(str, parts)]).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
