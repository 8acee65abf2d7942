"""The report's part on consistency under paraphrase, as data."""

from __future__ import annotations

from auditor.reports.measurement_schema import Estimate, ReportModel


class ChanceScore(ReportModel):
    """What the mean score would be if the answers of a group came from different questions."""

    mean: float | None
    low: float | None
    """2.5% point over the shuffles."""
    high: float | None
    """97.5% point over the shuffles."""
    questions: int
    """Questions whose answers were mixed."""
    reason: str | None = None


class SemanticModelRow(ReportModel):
    """One model; n of every estimate counts questions with at least two usable answers."""

    model: str
    consistency: Estimate
    """The score, of what `measured` says: 1 is the same answer in all wordings."""
    rules: Estimate
    """The score of the rules of thumb alone."""
    answers: Estimate
    """The score of the answers alone."""
    shuffled: ChanceScore
    """The score by chance: answers of all questions mixed."""
    length_matched: ChanceScore
    """The score by chance: answers of questions mixed whose answers are of like length."""
    planned: int
    """Answers; planned = ok + all losses + missing."""
    ok: int
    losses: dict[str, int]
    missing: int
    rules_planned: int
    """Rules of thumb, one for each usable answer where they are asked for."""
    rules_ok: int
    rules_losses: dict[str, int]


class FoundationRow(ReportModel):
    """One model on the questions about one moral foundation."""

    model: str
    foundation: str
    consistency: Estimate


class SemanticDifferenceRow(ReportModel):
    """Two models on the questions that both have a score on."""

    first: str
    second: str
    difference: Estimate
    """Mean score of the second less that of the first."""
    p_value: float | None
    """Two-sided, of a sign-flip test; by Holm for all pairs of models."""


class BaselineSimilarityRow(ReportModel):
    """Another measure of how alike the texts are: the mean over pairs."""

    model: str
    text: str
    """`rot` or `answer`."""
    metric: str
    value: Estimate


class LanguagePairRow(ReportModel):
    """How alike a model's answers to wordings in two languages are; of one language, among themselves."""

    model: str
    first: str
    second: str
    similarity: Estimate
    """Mean cosine over questions."""


class JudgedConsistencyRow(ReportModel):
    """The consistency score of one model: pairs of sampled answers that the judge finds consistent, of those judged."""

    model: str
    judge: str
    score: Estimate
    """n counts judgements that are valid; the interval is over questions."""
    questions: int
    asked: int
    consistent: int
    failed: int
    """Judgements that failed: in neither part of the share."""


class WordedAnswer(ReportModel):
    """One of the two answers that differ most."""

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
    """Cosine of the two that differ most."""
    left: WordedAnswer
    right: WordedAnswer
    contradict: bool | None = None
    """Whether the judge finds that the two answers contradict each other; null where nobody was asked, or it failed."""
    because: str | None = None
    """The judge's reason."""


class SemanticReport(ReportModel):
    """Consistency under paraphrase."""

    source: str
    """Where the questions came from."""
    questions: int
    wordings: int
    """In which each question was asked."""
    encoder: str
    revision: str
    """SHA-256 of the encoder's weights."""
    variant: str
    """`sage` or `sge`."""
    alpha: float
    rot_weight: float
    measured: str
    """What the score is of: `rot`, `answer` or `mix`."""
    models: list[SemanticModelRow]
    foundations: list[FoundationRow]
    differences: list[SemanticDifferenceRow]
    rivals: list[BaselineSimilarityRow]
    languages: list[LanguagePairRow]
    """Empty where all wordings are in one language."""
    judged: list[JudgedConsistencyRow]
    """The consistency score, where a judge was asked."""
    worst: list[LeastConsistentRow]
    rejected: dict[str, int]
    """Paraphrases by a model that were not asked, by reason."""
