"""Schema of the section on consistency under paraphrase."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from auditor.metrics.averaging import AveragedEstimate
from auditor.metrics.semantic import NullDistribution
from auditor.probes.semantic.figures.cultures import (
    CountryConsistencyRow,
    LanguageConsistencyRow,
    LanguagePairRow,
    RegionGapRow,
)
from auditor.probes.semantic.figures.human_judgements import HumanJudgementReport
from auditor.reports.data.report_model import FlatRow, JudgeName, ModelName, ReportModel, RowTest, p_column
from auditor.reports.document import Column


class SemanticModelRow(ReportModel):
    """One model; n of every estimate counts questions with at least two usable answers."""

    model: ModelName
    consistency: Annotated[AveragedEstimate, Column("Score", emphasis=True)]
    """Score of the texts named by `measured`: 1 is the same answer in all wordings."""
    rules: Annotated[AveragedEstimate, Column("Rules of thumb")]
    """Score of the rules of thumb only."""
    answers: Annotated[AveragedEstimate, Column("Answers")]
    """Score of the answers only."""
    shuffled: Annotated[NullDistribution, Column("By chance", "estimate", show_n=False)]
    """Chance level with the answers of all questions shuffled."""
    length_matched: Annotated[NullDistribution, Column("By chance, similar length", "estimate", show_n=False)]
    """Chance level with answers shuffled among questions with answers of similar length."""
    ok: Annotated[int, Column("Usable")]
    planned: Annotated[int, Column("Planned")]
    """Planned answers; planned = ok + all losses + missing."""
    losses: Annotated[dict[str, int], Column("Excluded", key="excluded")]
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


class SemanticDifferenceRow(FlatRow):
    """Difference of two models on the questions with a score from both."""

    second: Annotated[str, Column("Model", "name")]
    first: Annotated[str, Column("Compared with", "name")]
    difference: Annotated[RowTest, Column("Difference", style="signed", emphasis=True), p_column()]
    """Mean score of the second minus that of the first."""


class BaselineSimilarityRow(ReportModel):
    """Baseline measure of similarity between a question's texts: the mean over pairs."""

    metric: Annotated[str, Column("Measure")]
    text: Annotated[str, Column("Texts")]
    """`rot` or `answer`."""
    model: ModelName
    value: Annotated[AveragedEstimate, Column("Mean over pairs")]


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


class JudgedConsistencyRow(ReportModel):
    """Consistency score of one model: share of judged pairs of sampled answers that the judge finds consistent."""

    model: ModelName
    judge: JudgeName
    instances: Annotated[AveragedEstimate, Column("Mean over questions", emphasis=True)]
    """The mean over questions of each one's score; n counts questions."""
    score: Annotated[AveragedEstimate, Column("Pooled")]
    """Of all judged pairs; n counts valid judgements."""
    questions: int
    consistent: Annotated[int, Column("Consistent")]
    asked: Annotated[int, Column("Asked")]
    failed: Annotated[int, Column("Failed")]
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
    countries: list[CountryConsistencyRow] = Field(default_factory=list)
    """By country, by every measure; empty where no question is about a country."""
    by_language: list[LanguageConsistencyRow] = Field(default_factory=list)
    """By language of the wordings, by every measure; empty where all wordings are in one language."""
    region_gaps: list[RegionGapRow] = Field(default_factory=list)
    """Between the regions of the countries that questions are about, by every measure."""
    people: HumanJudgementReport | None = None
    """The measures beside people's labels on a random sample of pairs of answers; null without labels."""
