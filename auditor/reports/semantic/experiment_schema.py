"""What the experiments on consistency find, as data."""

from __future__ import annotations

from auditor.reports.measurement_schema import Estimate, ReportModel


class SemanticTemperatureRow(ReportModel):
    """One model at one temperature; n counts questions."""

    model: str
    temperature: float
    same_words: Estimate
    """The question as it stands, asked as often as there are wordings."""
    other_words: Estimate
    """Each wording, asked once."""
    difference: Estimate
    """Other words less same words, on the questions that have both."""
    p_value: float | None


class RuleFollowingRow(ReportModel):
    """One model before and after it is told to follow its own first rule of thumb; n counts questions."""

    model: str
    before: Estimate
    after: Estimate
    change: Estimate
    p_value: float | None
    """Two-sided, of a sign-flip test."""


class ConsistencyAccuracyRow(ReportModel):
    """One model on questions with a known answer; n of both estimates counts questions."""

    model: str
    accuracy: Estimate
    """Mean share of usable answers that are right."""
    consistency: Estimate
    """Mean score of the reasons given."""
    n: int
    """Questions that have both."""
    r: float | None
    """Pearson's r of consistency and accuracy over questions."""
    p_value: float | None
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None


class HumanCorrelationRow(ReportModel):
    """Pearson's r of a measure with people, over models and questions."""

    text: str
    metric: str
    n: int
    r: float | None
    """With the share of judgements that find two answers alike."""
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None
    r_entropy: float | None
    """With the entropy of the judgements: what people are torn about should be less consistent."""


class CorrelationDifferenceRow(ReportModel):
    """How much better the audit's score goes with people than another measure: Williams' test, Zou's interval."""

    text: str
    metric: str
    than_text: str
    than_metric: str
    difference: float | None
    """r of the audit's score less r of the other."""
    p_value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    reason: str | None = None


class HumanJudgementReport(ReportModel):
    """Measures of consistency against people's judgements on pairs of answers."""

    questions: int
    """Models' questions that people judged."""
    judgements: int
    alpha: Estimate
    """Krippendorff's alpha of the raters over pairs, nominal; NA is no judgement."""
    entropy: Estimate
    """Mean entropy of the judgements on a question, in bits."""
    correlations: list[HumanCorrelationRow]
    differences: list[CorrelationDifferenceRow]
