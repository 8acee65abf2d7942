"""Types of the probe `semantic`: moral questions, their wordings, answers with rules of thumb, and scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from auditor.domain import Outcome, Purpose
from auditor.domain.records import Key, LongText, NotStored, Nullable, stored
from auditor.metrics.intervals.estimate import NullDistribution

PARAPHRASE_PURPOSE = Purpose.declare("paraphrase")
TRANSLATION_PURPOSE = Purpose.declare("translation")
"""A translation of an answer."""
MORAL_PURPOSE = Purpose.declare("moral")
"""An answer to a moral question."""
RULE_PURPOSE = Purpose.declare("rule")
"""The rule of thumb behind an answer."""
CONSISTENCY_PURPOSE = Purpose.declare("consistency")
"""Whether one answer supports another."""
CONTRADICTION_PURPOSE = Purpose.declare("contradiction")

MoralFoundation = Literal["care", "fairness", "liberty", "loyalty", "authority", "sanctity"]
FOUNDATIONS: tuple[MoralFoundation, ...] = get_args(MoralFoundation)
"""The six moral foundations (Haidt and others), in the order used in all tables."""


RELEASED_RULE_WEIGHT = 0.2
"""Weight of the rules of thumb in the similarity of two answers in the released program of SaGE."""
RELEASED_MIX = "mix:0.2"
"""`QuestionScore.text` of rules of thumb and answers, mixed with that weight."""
PUBLISHED_ALPHAS = (10.0, 1.0)
"""Exponents of SaGE: of the released program, and of the paper's text."""
QUESTION_TEXT = "question"
"""`QuestionScore.text` of the wordings of a question themselves; such a score has no model."""


@stored("moral_question", position=2)
@dataclass(frozen=True, slots=True)
class MoralQuestion:
    """A moral question and its paraphrases.

    Attributes:
        id: unique in its set.
        foundation: its moral foundation, one of `FOUNDATIONS`; empty if unknown.
        topics: tags.
        text: the question itself.
        paraphrases: other wordings, none equal to the question.
        language: ISO 639-1 code of the question.
        languages: languages of the paraphrases, one each; empty if all are in the language of the question.
        country: that the question is asked about; empty if none. It is named in the requests, not in the texts.
    """

    id: Key[str]
    text: LongText[str]
    paraphrases: NotStored[tuple[str, ...]] = ()
    foundation: str = ""
    topics: tuple[str, ...] = ()
    language: str = "en"
    languages: NotStored[tuple[str, ...]] = ()
    country: Nullable[str] = ""

    @property
    def wordings(self) -> tuple[tuple[str, str], ...]:
        """Text and language of each paraphrase; of the question itself if it has none."""
        texts = self.paraphrases or (self.text,)
        return tuple(zip(texts, self.languages or (self.language,) * len(texts), strict=True))


@stored("moral_wording")
@dataclass(frozen=True, slots=True)
class MoralWording:
    """A wording of a question: the question itself, an accepted paraphrase or a rejected candidate.

    Attributes:
        question: id of the question.
        candidate: index of the candidate, from 1; 0 is the question itself.
        number: index of the accepted wording, from 1; 0 for the question itself, None for a rejected candidate.
        source: `question`, `written` (by hand) or the name of the model that wrote it.
        similarity: cosine similarity with the question, in [-1, 1]; None if written by hand.
        distance: edit distance to the question divided by the longer length, in [0, 1].
        score: quality, see `auditor.metrics.answers.semantic`.
        reason: why it was rejected; None if accepted.
        key: key of the call that returned it.
        language: ISO 639-1 code.
    """

    question: Key[str]
    candidate: Key[int]
    number: int | None
    text: LongText[str]
    source: str
    similarity: float | None = None
    distance: float | None = None
    score: float | None = None
    reason: str | None = None
    key: str | None = None
    language: str = "en"


@stored("moral_answer", indexes={"ix_moral_answer_question": ("audit_id", "question")})
@dataclass(frozen=True, slots=True)
class MoralAnswerRecord:
    """One model's answer to one wording, with its rule of thumb; only the outcome `ok` has a text.

    Attributes:
        wording: number of the wording; 0 is the original question.
        sample: index of the answer to this wording, from 0.
        rot: rule of thumb that the model gives for its answer.
        rot_outcome: outcome of the call for the rule of thumb; None if it was not requested.
        rot_key: key of that call.
        repeat_key, first_outcome: as in `Trace`; `rot_repeat_key`, `rot_first_outcome`: the same of the rule of thumb.
    """

    model: Key[str]
    question: Key[str]
    wording: Key[int]
    sample: Key[int]
    outcome: Outcome
    text: LongText[str | None] = None
    key: str | None = None
    rot: LongText[str | None] = None
    rot_outcome: Outcome | None = None
    rot_key: str | None = None
    repeat_key: str | None = None
    first_outcome: Outcome | None = None
    rot_repeat_key: str | None = None
    rot_first_outcome: Outcome | None = None


@stored("moral_score")
@dataclass(frozen=True, slots=True)
class QuestionScore:
    """Consistency of a model on one question.

    Attributes:
        model: empty for the wordings of the question themselves.
        text: the texts compared: `rot` (rules of thumb), `answer`, `mix`, `RELEASED_MIX` or `QUESTION_TEXT`.
        metric: `sage`, `sge`, `cosine` or one of the settings' `rivals`; `sage:alpha=1` is SaGE with another exponent
            than the settings'; `languages:de-en` is the mean cosine of answers to wordings in these two languages, and
            `translations:de-en` that of answers and their translations; `sage@de` is of the wordings in one language.
        value: the score; None with fewer than two usable answers.
        n: number of usable answers; of pairs of answers for a `languages:` metric.
        left, right: numbers of the wordings whose answers are least similar.
        lowest: cosine of those two answers.
    """

    model: Key[str]
    question: Key[str]
    text: Key[str]
    metric: Key[str]
    value: float | None
    n: int
    left: int | None = None
    right: int | None = None
    lowest: float | None = None


@stored("moral_translation")
@dataclass(frozen=True, slots=True)
class MoralTranslation:
    """A translation of a model's answer to a wording, or of its rule of thumb; only the outcome `ok` has a text.

    Attributes:
        wording: number of the wording whose answer is translated.
        language: ISO 639-1 code of the translation.
    """

    model: Key[str]
    question: Key[str]
    wording: Key[int]
    language: Key[str]
    outcome: Outcome
    text: LongText[str | None] = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ScoreForm:
    """One form of the semantic graph entropy that papers or their programs use.

    Attributes:
        text, metric: as of `QuestionScore`.
        rot_weight: weight of the rules of thumb in the similarity of two answers, in [0, 1].
        alpha: exponent of SaGE; None for SGE, which has none.
    """

    text: str
    metric: str
    rot_weight: float
    alpha: float | None


@stored("moral_null")
@dataclass(frozen=True, slots=True)
class NullScore:
    """Null distribution of a model's mean score, from answers shuffled across questions.

    Attributes:
        kind: `shuffled` permutes the answers of all questions, `length` those of similar length only.
    """

    model: Key[str]
    kind: Key[str]
    null: NullDistribution


@stored("moral_verdict")
@dataclass(frozen=True, slots=True)
class PairVerdict:
    """One judge's verdict on two answers of a model to one question.

    Attributes:
        purpose: `consistency` (does the second follow from the first?) or `contradiction` (can both not be true?).
        left, right: sample numbers of the original question for `consistency`, wording numbers for `contradiction`.
        holds: whether the judge answered yes; None if the call failed or its answer cannot be parsed.
        repeat_key, first_outcome: as in `Trace`.
    """

    judge: Key[str]
    purpose: Key[str]
    model: Key[str]
    question: Key[str]
    left: Key[int]
    right: Key[int]
    outcome: Outcome
    holds: bool | None = None
    reason: LongText[str | None] = None
    key: str | None = None
    repeat_key: str | None = None
    first_outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class SemanticScoringSettings:
    """Settings with which an audit's semantic scores were computed.

    Attributes:
        evidence: hash of all inputs of the scores.
        bertscore_model: weights of the measure `bertscore_bert_base`; empty where it was not computed.
        is_multilingual: whether the encoder reads several languages; None of scores of earlier versions.
    """

    source: str
    """Source of the questions."""
    encoder: str
    """The sentence encoder."""
    revision: str
    """SHA-256 of the encoder's weights."""
    variant: str
    """The variant of the graph entropy: `sage` or `sge`."""
    alpha: float
    """Its parameter."""
    rot_weight: float
    """Weight of the rules of thumb (rot) if `measured` is `mix`, in [0, 1]; answers have the rest."""
    measured: str
    """Texts that are scored: `rot` (rules of thumb), `answer` or `mix`."""
    wordings: int
    """Planned number of wordings of each question; 0 if only repeated answers are compared by a judge."""
    evidence: str
    bertscore_model: str = ""
    subject: str = "moral"
    """What the questions are about: `moral` or `any`."""
    is_multilingual: bool | None = None

    @property
    def computed_bertscore_model(self) -> str | None:
        """Weights of the measure `bertscore_bert_base`; null where it was not computed."""
        return self.bertscore_model or None

    @property
    def reads_several_languages(self) -> bool:
        """Whether the encoder is known to read several languages; of earlier scores, by its name."""
        return "multilingual" in self.encoder.lower() if self.is_multilingual is None else self.is_multilingual

    @property
    def forms(self) -> list[ScoreForm]:
        """The published forms of the audit's variant: answers, rules and their mix, with both exponents of SaGE."""
        is_released_mix = self.measured == "mix" and self.rot_weight == RELEASED_RULE_WEIGHT
        weight_by_text = {"answer": 0.0, "rot": 1.0, "mix" if is_released_mix else RELEASED_MIX: RELEASED_RULE_WEIGHT}
        alphas = (None,) if self.variant == "sge" else PUBLISHED_ALPHAS
        return [
            ScoreForm(text, self._name_metric(alpha), weight, alpha)
            for text, weight in weight_by_text.items()
            for alpha in alphas
        ]

    def _name_metric(self, alpha: float | None) -> str:
        return self.variant if alpha in (None, self.alpha) else f"{self.variant}:alpha={alpha:g}"


@stored("semantic_facts")
@dataclass(frozen=True, slots=True)
class SemanticFacts:
    """How an audit's semantic scores were made: `SemanticScoringSettings` as JSON."""

    facts: LongText[str]
