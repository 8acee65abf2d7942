"""Schemas of the experiments on consistency under paraphrase."""

from __future__ import annotations

from auditor.metrics.averaging import AveragedEstimate
from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_model import ReportModel


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


class RuleFollowingRow(ReportModel):
    """One model before and after an instruction to follow its own first rule of thumb; n counts questions."""

    model: str
    before: AveragedEstimate
    after: AveragedEstimate
    change: Estimate
    p_value: float | None
    """Two-sided p-value of no difference: below 0.05 where the interval excludes 0."""
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all models (Holm); null without a test."""


class ConsistencyAccuracyRow(ReportModel):
    """One model on questions with a known answer; n of both estimates counts questions."""

    model: str
    accuracy: AveragedEstimate
    """Mean over questions of the share of correct answers among usable ones."""
    consistency: AveragedEstimate
    """Mean consistency score of the stated reasons."""
    n: int
    """Questions that have both."""
    r: float | None
    """Pearson's r of consistency and accuracy over questions, with an interval over other questions."""
    p_value: float | None
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None


class HumanCorrelationRow(ReportModel):
    """Pearson's r of a measure with people, over models and questions; the interval is over other questions."""

    text: str
    metric: str
    n: int
    r: float | None
    """Correlation with the share of judgements that find two answers alike."""
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None
    r_entropy: float | None
    """Correlation with the entropy of the judgements: questions on which people disagree should be less consistent."""


class CorrelationDifferenceRow(ReportModel):
    """Difference in r with people between the audit's score and another measure; interval and test over questions."""

    text: str
    metric: str
    than_text: str
    than_metric: str
    difference: float | None
    """r of the audit's score minus r of the other measure."""
    p_value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    reason: str | None = None


class HumanJudgementReport(ReportModel):
    """Measures of consistency against people's judgements on pairs of answers."""

    questions: int
    """Pairs of model and question that people judged."""
    judgements: int
    alpha: Estimate
    """Nominal Krippendorff's alpha of the raters over pairs; NA counts as no judgement."""
    entropy: Estimate
    """Mean entropy of the judgements on a question, in bits."""
    correlations: list[HumanCorrelationRow]
    differences: list[CorrelationDifferenceRow]
