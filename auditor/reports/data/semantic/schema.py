"""Schema of the section on consistency under paraphrase."""

from __future__ import annotations

from pydantic import Field

from auditor.metrics.averaging import AveragedEstimate
from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_model import ReportModel


class ChanceScore(ReportModel):
    """Chance level of the mean score: answers of a group are drawn from different questions."""

    mean: float | None
    low: float | None
    """2.5% point over the shuffles."""
    high: float | None
    """97.5% point over the shuffles."""
    questions: int
    """Questions whose answers were shuffled."""
    reason: str | None = None


class SemanticModelRow(ReportModel):
    """One model; n of every estimate counts questions with at least two usable answers."""

    model: str
    consistency: AveragedEstimate
    """Score of the texts named by `measured`: 1 is the same answer in all wordings."""
    rules: AveragedEstimate
    """Score of the rules of thumb only."""
    answers: AveragedEstimate
    """Score of the answers only."""
    shuffled: ChanceScore
    """Chance level with the answers of all questions shuffled."""
    length_matched: ChanceScore
    """Chance level with answers shuffled among questions with answers of similar length."""
    planned: int
    """Planned answers; planned = ok + all losses + missing."""
    ok: int
    losses: dict[str, int]
    missing: int
    rules_planned: int
    """Planned rules of thumb: one for each usable answer, where they are asked for."""
    rules_ok: int
    rules_losses: dict[str, int]


class FoundationRow(ReportModel):
    """One model on the questions about one moral foundation."""

    model: str
    foundation: str
    consistency: AveragedEstimate


class SemanticDifferenceRow(ReportModel):
    """Difference of two models on the questions with a score from both."""

    first: str
    second: str
    difference: Estimate
    """Mean score of the second minus that of the first."""
    p_value: float | None
    """Two-sided p-value of no difference, by the method of the interval, adjusted by Holm for all pairs of models."""


class BaselineSimilarityRow(ReportModel):
    """Baseline measure of similarity between a question's texts: the mean over pairs."""

    model: str
    text: str
    """`rot` or `answer`."""
    metric: str
    value: AveragedEstimate


class ScoreFormRow(ReportModel):
    """The score in one form that the papers or their programs use, from the same answers."""

    model: str
    """Empty for the wordings of the questions themselves."""
    text: str
    """`answer`, `rot`, `mix` (of rules of thumb and answers) or `question`."""
    rot_weight: float | None
    """Weight of the rules of thumb in the similarity of two answers; null for `question`."""
    alpha: float | None
    """Exponent of SaGE: 10 in the released program, 1 in the paper's text; null for SGE."""
    value: AveragedEstimate


class LanguagePairRow(ReportModel):
    """Similarity of a model's answers between wordings in two languages, or within one language."""

    model: str
    first: str
    second: str
    similarity: AveragedEstimate
    """Mean cosine over questions."""


class JudgedConsistencyRow(ReportModel):
    """Consistency score of one model: share of judged pairs of sampled answers that the judge finds consistent."""

    model: str
    judge: str
    score: AveragedEstimate
    """Of all judged pairs; n counts valid judgements."""
    instances: AveragedEstimate
    """The mean over questions of each one's score; n counts questions."""
    questions: int
    asked: int
    consistent: int
    failed: int
    """Failed judgements, left out of numerator and denominator."""
    losses: dict[str, int]
    """Failed judgements by outcome."""


class WordedAnswer(ReportModel):
    """One of the two answers that differ most, with its wording and rule of thumb."""

    wording: str
    answer: str | None
    rule: str | None


class LeastConsistentRow(ReportModel):
    """One of a model's least consistent questions."""

    model: str
    id: str
    question: str
    foundation: str
    score: float
    similarity: float
    """Cosine of the two answers that differ most."""
    left: WordedAnswer
    right: WordedAnswer
    contradict: bool | None = None
    """Whether the judge finds that the two answers contradict each other; null if no judge was asked, or it failed."""
    because: str | None = None
    """The judge's reason."""


class SemanticReport(ReportModel):
    """Consistency under paraphrase."""

    source: str
    """Source of the questions."""
    questions: int
    subject: str = "moral"
    """What the questions are about: `moral` or `any`."""
    wordings: int
    """Number of wordings of each question; 0 if only `judged` was measured."""
    fewest_wordings: int | None = None
    """Fewest wordings that a question was asked in, where a model wrote too few; null if none were counted."""
    encoder: str
    revision: str
    """SHA-256 of the encoder's weights."""
    variant: str
    """`sage` or `sge`."""
    alpha: float
    rot_weight: float
    measured: str
    """Texts that are scored: `rot` (rules of thumb), `answer` or `mix`."""
    models: list[SemanticModelRow]
    foundations: list[FoundationRow]
    differences: list[SemanticDifferenceRow]
    rivals: list[BaselineSimilarityRow]
    languages: list[LanguagePairRow]
    """Empty where all wordings are in one language."""
    judged: list[JudgedConsistencyRow]
    """Consistency scores by a judge; empty where none was asked."""
    worst: list[LeastConsistentRow]
    rejected: dict[str, int]
    """Model-written paraphrases that were not asked, by reason."""
    questions_only: AveragedEstimate | None = None
    """Score of the wordings of the questions themselves, as if they were answers: the upper bound of SGE's authors.
    Null where it was not computed."""
    forms: list[ScoreFormRow] = Field(default_factory=list)
    """The score with each published exponent and weight of the rules; empty where they were not computed."""
    bertscore_model: str | None = None
    """Weights of the measure `bertscore_bert_base`; null where it was not computed."""
