"""What is read out of answers: traces, contrasts, scores, verdicts, conflicts, and people's ratings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from auditor.domain.identifiers import canonical_hash
from auditor.domain.terms import (
    Cell,
    ConflictKind,
    ConflictState,
    Decision,
    LogprobMeasure,
    Outcome,
    RatingAction,
    Ruling,
)


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
    answer: str | None = None
    """What the model answered to an item of a task, in the form in which answers are compared; only `ok` has one."""


@dataclass(frozen=True, slots=True)
class SentencePairScore:
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
    measure: LogprobMeasure | None = None
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
class AlteredTraceVerdict:
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
    """A model's score on a cell by one method, None where no sample is `ok`: their mean, that of its languages' means.

    Attributes:
        variance: of the `ok` scores, pooled within languages (n - 1 in the denominator); None where none has two. Over
            n_ok it is that of the score: where languages have unlike numbers of samples it is scaled to be so.
        n_ok, n_planned: `ok` samples, and samples that were to be taken.
        self_consistency: mean pairwise cosine of the reasoning embeddings, in [-1, 1]; None with fewer than two.
        evidence: hash of the texts and of the encoder that self_consistency was computed from.
        sign_agreement: share of a language's `ok` samples with the commonest sign, a mean over languages with two.
        straddles: whether `ok` samples of one language lie on both sides of zero; None where none has two.
        raw: before any scaling, in nats, where the score is a scaled log-probability; None elsewhere.
        measure: what a log-probability was read from; None elsewhere.
        answer: the commonest of the `ok` answers to an item of a task; None where several are as common, for scores
            the mean in the units of the task.
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
    measure: LogprobMeasure | None = None
    sign_agreement: float | None = None
    straddles: bool | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two models that differ on a cell by at least the threshold.

    Attributes:
        left, right: model names, in the audit's order; which is shown first says nothing.
        score_left, score_right: what a person's decision was about; a decision holds while they stay the same. None
            for answers that are no scores.
        answer_left, answer_right: the same of an item of a task; None for a survey.
        difference: score of left minus score of right; None where there are none.
        seats: judges that could vote (authors of neither side); votes_left + votes_right <= seats.
        winner: the model whose side was upheld; None while open, or when a person said both or neither.
        within_noise: whether the difference is no more than the noise of the samples behind both scores; None where
            that is not known.
    """

    cell: Cell
    left: str
    right: str
    score_left: float | None
    score_right: float | None
    kind: ConflictKind
    state: ConflictState = ConflictState.OPEN
    seats: int = 0
    votes_left: int = 0
    votes_right: int = 0
    winner: str | None = None
    within_noise: bool | None = None
    answer_left: str | None = None
    answer_right: str | None = None

    @property
    def id(self) -> str:
        """Short name of the conflict, the same in every run of the audit."""
        return canonical_hash([self.cell.country, self.cell.topic, self.left, self.right])[:10]

    @property
    def difference(self) -> float | None:
        if self.score_left is None or self.score_right is None:
            return None
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
            `authors,survey,verdicts`, here or in another conflict on the same cell; empty is blind.
        swapped: whether the conflict's left side was shown on the right.
        duration_s: seconds from showing the conflict to the act; None where nobody measured.
    """

    cell: Cell
    left: str
    right: str
    score_left: float | None
    score_right: float | None
    rater: str
    decision: Decision
    decided_at: datetime
    note: str = ""
    score: float | None = None
    flagged: bool = False
    act: RatingAction = RatingAction.DECIDE
    of: int | None = None
    shown: str = ""
    swapped: bool = False
    duration_s: float | None = None
    answer_left: str | None = None
    answer_right: str | None = None
