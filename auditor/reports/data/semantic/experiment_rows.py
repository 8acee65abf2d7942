"""Rows of the experiments on consistency: temperatures, a rule to follow, and accuracy."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from auditor.metrics.averaging import AveragedEstimate
from auditor.metrics.estimate import Estimate
from auditor.metrics.model_correlation import ModelCorrelation
from auditor.reports.data.report_model import ReportModel
from auditor.reports.number_format import format_span


class AnswerCountRow(ReportModel):
    """Answers that an experiment asked one model for, in one setting; planned = ok + all losses."""

    setting: str
    """`same_words` or `other_words`; `before` or `after` an instruction to follow a rule; empty for choices."""
    text: str
    """`answer`, or `rot` (rules of thumb)."""
    planned: int
    ok: int
    losses: dict[str, int]
    """Answers that cannot be used, by outcome."""


class MeasureByWordingRow(ReportModel):
    """One measure at one temperature, of one kind of text; n counts questions."""

    text: str
    """`answer`, `rot` (rules of thumb), `mix`, or `mix:0.2` as in the released program of SaGE."""
    metric: str
    """`sage`, `sge`, `sage:alpha=1` (SaGE with another exponent), `cosine`, or one of `rivals`."""
    same_words: AveragedEstimate
    other_words: AveragedEstimate
    difference: Estimate
    """`other_words` minus `same_words`; the interval is not adjusted for the number of measures."""


class MeasureByRuleRow(ReportModel):
    """One measure before and after a rule to follow, of one kind of text; n counts questions."""

    text: str
    """As in `MeasureByWordingRow`."""
    metric: str
    before: AveragedEstimate
    after: AveragedEstimate
    change: Estimate
    """`after` minus `before`; the interval is not adjusted for the number of measures."""


class SemanticTemperatureRow(ReportModel):
    """One model at one temperature; n counts questions."""

    model: str
    temperature: float
    same_words: AveragedEstimate
    """Consistency over repeated answers to the original question, asked as often as there are wordings."""
    other_words: AveragedEstimate
    """Consistency over one answer to each wording."""
    difference: Estimate
    """`other_words` minus `same_words`, on the questions that have both."""
    p_value: float | None
    """Two-sided p-value of no difference: below 0.05 where the interval excludes 0."""
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all models and temperatures (Holm); null without a test."""
    measures: list[MeasureByWordingRow] = Field(default_factory=list)
    """By every measure of the audit, its own score included."""
    questions: int | None = None
    """Questions that were asked."""
    counts: list[AnswerCountRow] = Field(default_factory=list)


class RuleFollowingRow(ReportModel):
    """One model before and after an instruction to follow a rule of thumb; n counts questions."""

    model: str
    before: AveragedEstimate
    after: AveragedEstimate
    change: Estimate
    p_value: float | None
    """Two-sided p-value of no difference: below 0.05 where the interval excludes 0."""
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all models (Holm); null without a test."""
    rules_file: str | None = None
    """Name of the file of rules; null where each model followed its own first rule."""
    rules_sha256: str | None = None
    """Hash of that file's content."""
    measures: list[MeasureByRuleRow] = Field(default_factory=list)
    """By every measure of the audit, its own score included."""
    questions: int | None = None
    """Questions that were asked: those with a rule."""
    counts: list[AnswerCountRow] = Field(default_factory=list)


class TaskConsistencyRow(ReportModel):
    """Consistency of a model's reasons by one measure, and its correlation with accuracy over models."""

    text: str
    """`answer`: the reasons."""
    metric: str
    """As in `MeasureByWordingRow`."""
    consistency: AveragedEstimate
    """Mean over questions; n counts questions."""
    over_models: ModelCorrelation | None = None
    """Pearson's r of mean consistency by this measure and accuracy over the models; the same for all models."""


class ConsistencyAccuracyRow(ReportModel):
    """One model on questions with a known answer; n of both estimates counts questions."""

    model: str
    accuracy: AveragedEstimate
    """Mean over questions of the share of correct answers among usable ones."""
    scored: Literal["reasons", "choices"] = "reasons"
    """What the consistency is of: the stated reasons, or the texts of the chosen answers."""
    consistency: AveragedEstimate
    """Mean consistency score of these texts."""
    n: int
    """Questions that have both."""
    r: float | None
    """Pearson's r of consistency and accuracy over questions, with an interval over other questions."""
    p_value: float | None
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None
    over_models: ModelCorrelation | None = None
    """Pearson's r of mean consistency and accuracy over the models; the same in all rows."""
    measures: list[TaskConsistencyRow] = Field(default_factory=list)
    """By every measure of the audit, its own score included."""
    questions: int | None = None
    """Questions that were asked."""
    wordings: tuple[int, int] | None = None
    """Fewest and most wordings in which a question was asked."""
    paraphraser: str | None = None
    """The model that wrote wordings of questions that had none in the file; null where it wrote none."""
    counts: list[AnswerCountRow] = Field(default_factory=list)

    @property
    def asked_wordings(self) -> int | str | None:
        """The number of wordings of each question; its ends, such as `2 to 5`, if questions have different numbers."""
        return None if self.wordings is None else format_span(*self.wordings)

    @property
    def wordings_author(self) -> str:
        """Who wrote the wordings, as far as it is known: a model, or the author of the file."""
        return self.paraphraser or "the file's author"
