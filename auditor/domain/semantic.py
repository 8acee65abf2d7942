"""The words of the probe `semantic` as types: questions, their wordings, answers and rules of thumb, scores."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.domain import Outcome

FOUNDATIONS = ("care", "fairness", "liberty", "loyalty", "authority", "sanctity")
"""The six moral foundations (Haidt and others), in the order of every table."""


@dataclass(frozen=True, slots=True)
class MoralQuestion:
    """One moral question and other wordings of it.

    Attributes:
        id: unique in its set.
        foundation: what it is about, one of `FOUNDATIONS` where it is known; empty where it is not.
        topics: tags.
        text: the question itself.
        paraphrases: other wordings, none equal to it.
        language: ISO 639-1 code of the question.
        languages: of the paraphrases, one each; empty where all are in the question's.
    """

    id: str
    text: str
    paraphrases: tuple[str, ...] = ()
    foundation: str = ""
    topics: tuple[str, ...] = ()
    language: str = "en"
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MoralWording:
    """A question in other words, or a candidate for that.

    Attributes:
        question: id of the question.
        candidate: counts the candidates of a question, from 1; 0 is the question itself.
        number: under which it is asked, from 1; 0 for the question itself, None where it was rejected.
        source: `question`, `written` (by hand) or the name of the model that wrote it.
        similarity: cosine with the question, in [-1, 1]; None for what was written by hand.
        distance: edit distance to the question over the longer length, in [0, 1].
        score: quality, see `auditor.metrics.paraphrase`.
        reason: why it was rejected.
        key: of the call that brought it.
        language: ISO 639-1 code.
    """

    question: str
    candidate: int
    number: int | None
    text: str
    source: str
    similarity: float | None = None
    distance: float | None = None
    score: float | None = None
    reason: str | None = None
    key: str | None = None
    language: str = "en"


@dataclass(frozen=True, slots=True)
class MoralAnswerRecord:
    """One model's answer to one wording, and the rule of thumb behind it; only `ok` has a text.

    Attributes:
        wording: number of the wording; 0 is the question as it stands.
        sample: the how-manieth answer to it, from 0.
        rot_outcome: how the call for the rule ended; None where none was asked for.
    """

    model: str
    question: str
    wording: int
    sample: int
    outcome: Outcome
    text: str | None = None
    key: str | None = None
    rot: str | None = None
    rot_outcome: Outcome | None = None
    rot_key: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """How consistent a model is on one question.

    Attributes:
        text: what was compared: `rot`, `answer` or `mix`.
        metric: `sage`, `sge`, `cosine`, `bleu`, `rouge_l` or `bertscore`; `languages:de-en` is the mean cosine of
            answers to wordings in these two languages.
        value: None with fewer than two usable answers.
        n: usable answers.
        left, right: numbers of the wordings whose answers differ most, and how similar they are.
    """

    model: str
    question: str
    text: str
    metric: str
    value: float | None
    n: int
    left: int | None = None
    right: int | None = None
    lowest: float | None = None


@dataclass(frozen=True, slots=True)
class NullScore:
    """What a model's mean score is by chance: `shuffled` mixes the answers of all questions, `length` of like lengths.

    Attributes:
        mean, low, high: over the shuffles; low and high are the 2.5% and 97.5% points; None, with a reason, if unknown.
        questions: that were mixed.
    """

    model: str
    kind: str
    mean: float | None
    low: float | None
    high: float | None
    shuffles: int
    questions: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What a judge says of two answers of a model to one question.

    Attributes:
        purpose: `consistency` (does the second follow from the first?) or `contradiction` (are both impossible?).
        left, right: samples of the question as it stands for `consistency`, numbers of wordings for `contradiction`.
        holds: whether the judge said yes; None where it failed.
    """

    judge: str
    purpose: str
    model: str
    question: str
    left: int
    right: int
    outcome: Outcome
    holds: bool | None = None
    reason: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class SemanticScoringSettings:
    """How an audit's semantic scores were made.

    Attributes:
        source: where the questions came from.
        encoder, revision: the sentence encoder, and the hash of its weights.
        measured: what the score is of: `rot`, `answer` or `mix`.
        wordings: in which each question was to be asked.
        evidence: hash of all that the scores rest on.
    """

    source: str
    encoder: str
    revision: str
    variant: str
    alpha: float
    rot_weight: float
    measured: str
    wordings: int
    evidence: str
