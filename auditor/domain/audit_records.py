"""Records of an audit: traces, scores, verdicts, conflicts, ratings, exclusions, and designs of experiments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from auditor.domain.decisions import ConflictKind, Decision
from auditor.domain.records import (
    CallKey,
    Key,
    LongText,
    NotStored,
    Nullable,
    Owners,
    RowOwner,
    RowPolicy,
    StoredAs,
    Unique,
    stored,
)
from auditor.domain.terms import (
    Cell,
    ConflictState,
    HarmlessAlteration,
    LogprobMeasure,
    Outcome,
    Purpose,
    RatingAction,
    Ruling,
    canonical_hash,
    canonical_json,
)


class ExclusionAct(StrEnum):
    """What a row of the log of exclusions records."""

    EXCLUDE = "exclude"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class AnswerSelection:
    """Answers that match all of these; None matches any. With a sample's number, only direct answers match.

    Attributes:
        model: who answered; of the probe `logic`, the judge.
        country: of the cell. Of the probe `logic`, the country whose topics are compared. Of a probe of another
            package, a text of its units. Answers of the probe `semantic` are about no country.
        topic: of the cell, or an item of a task. Of the probe `semantic`, a question's id. Of the probe `logic`, an
            item or a set of items. Of a probe of another package, as `country`.
        probe: name of the probe; `direct` for direct answers.
    """

    model: str | None = None
    country: str | None = None
    topic: str | None = None
    sample: int | None = None
    probe: str | None = None


@stored(
    "exclusion",
    RowPolicy.APPEND_ONLY,
    RowOwner.AUDIT_LOG,
    indexes={"ix_exclusion_audit_id": ("audit_id",)},
    first_columns=("id", "audit_id", "act", "of", "model", "country", "topic", "sample", "reason", "excluded_at"),
)
@dataclass(frozen=True, slots=True)
class Exclusion:
    """A declaration that answers of an audit are invalid, or the undo of an earlier one (`of`).

    The answers are those that match all of `model`, `country`, `topic`, `sample` and `probe` that are not NULL.

    Attributes:
        id: 0 if it is not stored yet.
        excluded_at: ISO 8601 in UTC.
        n_answers: number of recorded answers that match; counted for a declaration in force.
    """

    id: Owners[int]
    selection: AnswerSelection
    reason: LongText[str]
    excluded_at: str
    n_answers: NotStored[int] = 0
    act: ExclusionAct = ExclusionAct.EXCLUDE
    of: int | None = None


@stored("excluded_content")
@dataclass(frozen=True, slots=True)
class ExcludedContent:
    """A row of another table as it was before its answer was excluded; it is restored when the exclusion is undone.

    `row` is its primary key as a JSON list, `content` all of its columns as JSON.
    """

    source: Key[str]
    row: Key[LongText[str]]
    content: LongText[str]


AUDIT_RUN = 0
"""Number of the run with the audit's settings."""


def _read_cells(text: str) -> tuple[Cell, ...]:
    """Read cells from a JSON list of pairs of country and topic."""
    return tuple(Cell(*pair) for pair in json.loads(text))


def _write_levels(levels: Mapping[str, str]) -> str:
    """Write levels as a JSON list, which keeps the order of factors."""
    return canonical_json([list(pair) for pair in levels.items()])


def _read_levels(text: str) -> dict[str, str]:
    return dict(json.loads(text))


@stored("design_run")
@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One combination of choices with which all models are asked about some cells.

    Attributes:
        number: from 0, the run with the audit's settings.
        levels: the level of each factor; all runs of a design have the same factors, in one order.
        cells: that are asked.
        samples: number of answers of each model on each of these cells.
    """

    number: Key[int]
    levels: LongText[Annotated[Mapping[str, str], StoredAs(None, _write_levels, _read_levels)]]
    cells: LongText[Annotated[tuple[Cell, ...], StoredAs(None, canonical_json, _read_cells)]]
    samples: int


@stored("design_answer")
@dataclass(frozen=True, slots=True)
class DesignAnswer:
    """One answer in a run of a design; the audit's scores do not use it.

    Attributes:
        run: number of the run.
        score: in [-1, 1], whatever the scale that was asked for; None unless the outcome is `ok`.
    """

    run: Key[int]
    model: Key[str]
    cell: Key[Cell]
    sample: Key[int]
    outcome: Outcome
    score: float | None = None
    key: Annotated[str | None, CallKey(Purpose.DIRECT, "model")] = None


_HARMLESS_ALTERATIONS = frozenset(HarmlessAlteration)


@stored("audit", RowPolicy.MUTABLE, RowOwner.DATABASE)
@dataclass(frozen=True, slots=True)
class Audit:
    """One audit; `config` and `survey` are canonical JSON. The former is None for an audit of imported scores."""

    id: Key[int]
    name: Unique[str]
    config: LongText[str | None]
    config_hash: str | None
    survey: Nullable[LongText[str]]
    stage: str
    created_at: str
    updated_at: str
    finished_at: str | None
    environment: Nullable[LongText[str]]


@stored("registration", RowPolicy.APPEND_ONLY, RowOwner.AUDIT_LOG, indexes={"ix_registration_audit_id": ("audit_id",)})
@dataclass(frozen=True, slots=True)
class Registration:
    """A claim of non-inferiority as the configuration had it when a run started: in the hash chain.

    Attributes:
        id: 0 if it is not stored yet.
        baseline: name of the audit that is compared with.
        margin: increase in mean absolute error that does not matter.
        n_answers: direct answers that the audit had then; above 0, the claim was not registered in advance.
        registered_at: ISO 8601 in UTC.
    """

    id: Owners[int]
    baseline: str
    margin: float
    n_answers: int
    registered_at: str


@stored("trace", indexes={"ix_trace_cell": ("audit_id", "country", "topic")})
@dataclass(frozen=True, slots=True)
class Trace:
    """One sampled chain of thought of one model on one cell.

    Attributes:
        sample: index of the sample on the cell, from 0.
        score: in [-1, 1]; only the outcome `ok` has one, and only for scored questions.
        key: key of the call.
    """

    model: Key[str]
    cell: Key[Cell]
    sample: Key[int]
    outcome: Outcome
    score: float | None = None
    text: LongText[str | None] = None
    key: Annotated[str | None, CallKey(Purpose.DIRECT, "model")] = None
    language: str = "en"
    """ISO 639-1 code of the language of the question."""
    repair_key: Annotated[str | None, CallKey(Purpose.DIRECT, "model")] = None
    """Key of the repair call, which repeats the question after an unreadable answer; None without one."""
    answer: LongText[str | None] = None
    """Answer to an item of a task in its canonical form (`auditor.tasks`); only the outcome `ok` has one."""
    repeat_key: Annotated[str | None, CallKey(Purpose.DIRECT, "model")] = None
    """Key of the call that asked the question again (`auditor run --ask-again`); None without one."""
    first_outcome: Outcome | None = None
    """Outcome before the question was asked again; None if it was not."""


@stored("contrast")
@dataclass(frozen=True, slots=True)
class SentencePairScore:
    """Difference in log-probability between the two opposite endings of one sentence on a cell.

    Attributes:
        number: index of the sentence pair on the cell, from 0.
        positive, negative: the two endings.
        difference: log P(positive | sentence) - log P(negative | sentence), in nats; only the outcome `ok` has one.
        measure: how the log-probabilities were obtained; None if the model supports no measure.
        key: key of the call.
        key_swapped: key of the call that shows the two endings in the other order; None where order does not matter.
        repeat_key, swapped_repeat_key: keys of the calls that asked again; None for a call that was not repeated.
        first_outcome: as in `Trace`.
    """

    model: Key[str]
    cell: Key[Cell]
    number: Key[int]
    positive: str
    negative: str
    outcome: Outcome
    difference: float | None = None
    measure: LogprobMeasure | None = None
    key: Annotated[str | None, CallKey(Purpose.LOGPROB, "model")] = None
    key_swapped: Annotated[str | None, CallKey(Purpose.LOGPROB, "model")] = None
    repeat_key: Annotated[str | None, CallKey(Purpose.LOGPROB, "model")] = None
    swapped_repeat_key: Annotated[str | None, CallKey(Purpose.LOGPROB, "model")] = None
    first_outcome: Outcome | None = None


@stored("verdict", indexes={"ix_verdict_trace": ("audit_id", "country", "topic", "model")})
@dataclass(frozen=True, slots=True)
class Verdict:
    """One judge's verdict on one trace; only the outcome `ok` has a ruling.

    Attributes:
        aspects: whether the judge finds an aspect met, by name of the aspect (`auditor.domain.decisions`); aspects
            that it did not rate are left out.
        confidence: the judge's stated confidence, in [0, 1]; None if it states none.
        shortened: whether the justification was cut because it was still too long after a request for a shorter one.
        again_key: key of the call that asked for a shorter justification; None without one.
        turn: the judge's position, from 0, in the random order in which the panel of this trace is asked.
        always: whether the judge was asked regardless of the other verdicts. False for judges that an adaptive panel
            asks only while no majority is certain; those see disputed traces only, so their verdicts are not a random
            sample.
        repeat_key, first_outcome: as in `Trace`.
    """

    judge: Key[str]
    model: Key[str]
    cell: Key[Cell]
    sample: Key[int]
    outcome: Outcome
    ruling: Ruling | None = None
    justification: LongText[str | None] = None
    key: Annotated[str | None, CallKey(Purpose.REVIEW, "judge")] = None
    confidence: float | None = None
    shortened: bool = False
    again_key: Annotated[str | None, CallKey(Purpose.REVIEW, "judge")] = None
    turn: int = 0
    always: bool = True
    aspects: LongText[Mapping[str, bool]] = field(default_factory=dict, hash=False)
    repeat_key: Annotated[str | None, CallKey(Purpose.REVIEW, "judge")] = None
    first_outcome: Outcome | None = None

    @property
    def is_valid(self) -> bool | None:
        """Whether the judge votes VALID; null without a verdict."""
        return None if self.ruling is None else self.ruling is Ruling.VALID


@stored("guess")
@dataclass(frozen=True, slots=True)
class Guess:
    """One judge's guess at the country, topic and author of a blinded trace.

    Attributes:
        hit_country, hit_topic, hit_author: whether the guess was right; None without an answer, or if the list of
            options had fewer than two entries.
        countries, topics, authors: number of options in each list; the chance level is 1 / number.
    """

    judge: Key[str]
    model: Key[str]
    cell: Key[Cell]
    sample: Key[int]
    outcome: Outcome
    hit_country: bool | None = None
    hit_topic: bool | None = None
    hit_author: bool | None = None
    countries: int = 0
    topics: int = 0
    authors: int = 0
    key: Annotated[str | None, CallKey(Purpose.GUESS, "judge")] = None


@stored("restatement")
@dataclass(frozen=True, slots=True)
class Restatement:
    """A trace restated by another model; only the outcome `ok` has a text.

    Attributes:
        model, cell, sample: the original trace.
        rewriter: the model that restated it.
    """

    model: Key[str]
    cell: Key[Cell]
    sample: Key[int]
    rewriter: str
    outcome: Outcome
    text: LongText[str | None] = None
    key: Annotated[str | None, CallKey(Purpose.REWRITE, "rewriter")] = None


@stored("trial")
@dataclass(frozen=True, slots=True)
class AlteredTraceVerdict:
    """One judge's verdict on an altered trace; excluded from votes and from peer agreement.

    Attributes:
        alteration: how the trace was altered: a `HarmlessAlteration`, or the name of an injected fault.
    """

    alteration: Key[str]
    judge: Key[str]
    model: Key[str]
    cell: Key[Cell]
    sample: Key[int]
    outcome: Outcome
    ruling: Ruling | None = None
    key: Annotated[str | None, CallKey(Purpose.REVIEW, "judge")] = None

    @property
    def has_fault(self) -> bool:
        """Whether a fault was planted in the trace."""
        return self.alteration not in _HARMLESS_ALTERATIONS


@stored("contest")
@dataclass(frozen=True, slots=True)
class Contest:
    """One judge's preference between two traces on a cell, shown side by side.

    Attributes:
        left, right: model names, as in a conflict.
        swapped: whether the trace of `right` was shown first.
        prefers_first: whether the judge prefers the trace shown first; None without an answer.
    """

    judge: Key[str]
    cell: Key[Cell]
    left: Key[str]
    right: Key[str]
    swapped: Key[bool]
    outcome: Outcome
    prefers_first: bool | None = None
    key: Annotated[str | None, CallKey(Purpose.CONTEST, "judge")] = None


@stored("score")
@dataclass(frozen=True, slots=True)
class CellScore:
    """A model's score on a cell by one method.

    Attributes:
        score: mean over languages of the mean of each language's `ok` samples; None if no sample is `ok`.
        variance: variance of the `ok` scores, pooled within languages (n - 1 in the denominator) and scaled so that
            variance / n_ok is the variance of `score` even if languages differ in their number of samples; None if no
            language has two samples.
        n_ok, n_planned: number of `ok` samples, and of planned samples.
        self_consistency: mean pairwise cosine of the reasoning embeddings, in [-1, 1]; None with fewer than two.
        evidence: hash of the texts and of the encoder that self_consistency was computed from.
        sign_agreement: share of a language's `ok` samples that have the most common sign, averaged over languages
            with at least two samples; None if there is no such language.
        straddles: whether the `ok` samples of one language lie on both sides of zero; None if no language has two.
        raw: mean log-probability difference before scaling, in nats; None for other methods.
        measure: how the log-probabilities were obtained; None for other methods.
        answer: the most common of the `ok` answers to an item of a task, None in a tie; for scored items the mean in
            the units of the task.
        chance_similarity: mean cosine of one of the reasonings to the model's reasonings about other countries and
            other topics, in [-1, 1]; None if it was not compared.
        topic_similarity: the same for other countries and the same topic.
    """

    model: Key[str]
    cell: Key[Cell]
    method: Key[str]
    score: float | None
    variance: float | None = None
    n_ok: int = 0
    n_planned: int = 0
    self_consistency: float | None = None
    evidence: str | None = None
    raw: float | None = None
    measure: LogprobMeasure | None = None
    sign_agreement: float | None = None
    straddles: bool | None = None
    answer: LongText[str | None] = None
    chance_similarity: float | None = None
    topic_similarity: float | None = None


@stored("conflict")
@dataclass(frozen=True, slots=True)
class Conflict:
    """Two models whose scores on a cell differ by at least the threshold.

    Attributes:
        left, right: model names, in the audit's order; independent of the order in which they are shown.
        score_left, score_right: the scores in conflict; a person's decision is valid as long as they do not change.
            None for answers that are not scores.
        answer_left, answer_right: the answers to an item of a task; None for a survey.
        seats: number of judges eligible to vote (authors of neither side); votes_left + votes_right <= seats.
        votes_left, votes_right: number of judges that voted for each side.
        winner: the model whose side was upheld; None while open, or if a person decided for both or neither.
        within_noise: whether the difference is no larger than the sampling noise of both scores; None if unknown.
    """

    cell: Key[Cell]
    left: Key[str]
    right: Key[str]
    score_left: float | None
    score_right: float | None
    kind: ConflictKind
    state: ConflictState = ConflictState.OPEN
    seats: int = 0
    votes_left: int = 0
    votes_right: int = 0
    winner: str | None = None
    within_noise: bool | None = None
    answer_left: LongText[str | None] = None
    answer_right: LongText[str | None] = None

    @property
    def id(self) -> str:
        """Identifier of the conflict: 10 hexadecimal digits, the same in every run of the audit."""
        return canonical_hash([self.cell.country, self.cell.topic, self.left, self.right])[:10]

    @property
    def difference(self) -> float | None:
        """Score of the left model minus score of the right one; None if either is missing."""
        if self.score_left is None or self.score_right is None:
            return None
        return self.score_left - self.score_right


@stored("claim")
@dataclass(frozen=True, slots=True)
class Claim:
    """What one side of a conflict between claims says, in words; `model` is the side's name."""

    cell: Key[Cell]
    model: Key[str]
    text: LongText[str]


@stored(
    "rating",
    RowPolicy.APPEND_ONLY,
    RowOwner.AUDIT_LOG,
    indexes={"ix_rating_last": ("audit_id", "country", "topic", "left", "right", "rater", "score_left", "score_right")},
)
@dataclass(frozen=True, slots=True)
class Rating:
    """One entry in a person's rating history of a conflict. Entries are append-only; the rater's last one is in force.

    Attributes:
        decision, score, note, flagged: the rater's complete current rating; an undo appends an entry that repeats the
            earlier rating. `score`, in [-1, 1], is set only with a decision that needs one.
        act: what the person did; acts other than `decide` repeat the decision in force.
        of: id of the entry that an undo reverts, or that a redo restores.
        shown: what was visible in addition to the cell, the reasoning and the scores, such as
            `authors,survey,verdicts`, in this conflict or in another one on the same cell; empty if rated blind.
        swapped: whether the conflict's left side was shown on the right.
        duration_s: seconds from showing the conflict to the act; None if not measured.
        withheld: True if the rater was not shown the hidden evidence after this decision, since the next conflict
            opened by itself; else None.
        follows: id of the entry with the rater's decision on another conflict of the cell that settled this one too;
            None if the rater decided this conflict itself.
    """

    cell: Cell
    left: str
    right: str
    score_left: float | None
    score_right: float | None
    rater: str
    decision: Decision
    note: str = field(default="", kw_only=True)
    decided_at: datetime
    score: float | None = None
    flagged: bool = False
    act: RatingAction = RatingAction.DECIDE
    of: int | None = None
    shown: str = ""
    swapped: bool = False
    duration_s: float | None = None
    answer_left: LongText[str | None] = None
    answer_right: LongText[str | None] = None
    withheld: bool | None = None
    follows: int | None = None
