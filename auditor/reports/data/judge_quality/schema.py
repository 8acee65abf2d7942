"""Schema of the figures of judges that rest on people's labels on a random sample of traces."""

from __future__ import annotations

from typing import Literal

from auditor.domain.labels import RaterKind
from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.reports.data.report_model import ReportModel

Dimension = Literal["model", "language", "region", "topic"]


class ReliabilityBinRow(ReportModel):
    """One bin of the reliability diagram of a judge's confidence."""

    low: float
    high: float
    """Ends of the bin, in [0, 1]."""
    labels: int
    mean_confidence: float
    share_right: float
    """Weighted share of the bin's verdicts that people agree with."""
    band_low: float
    band_high: float
    """95% of these shares if the stated confidence were right."""


class ConfidenceCalibrationRow(ReportModel):
    """Whether a judge that says 80% is right in 80% of the cases; figures are null with a reason."""

    error: float | None
    """Expected calibration error, in [0, 1]; lower is better. It is above 0 by chance: compare it with the band."""
    error_if_calibrated: float | None
    """Its mean if the stated confidence were right, with as many labels."""
    error_band_low: float | None
    error_band_high: float | None
    """95% of its values if the stated confidence were right."""
    p_value: float | None
    """Of a confidence that is right."""
    slope: Estimate
    """1 if the confidence is right; below 1 the judge is overconfident."""
    intercept: Estimate
    """0 if the confidence is right; above 0 it is too low."""
    bins: list[ReliabilityBinRow]
    labels: int
    reason: str | None = None


class JudgeAccuracyRow(ReportModel):
    """Agreement of one judge with a random rater. Intervals are for these traces: over other random samples."""

    judge: str
    traces: int
    """Traces with a verdict of the judge."""
    labels: int
    """Traces of these that people labelled VALID or INVALID."""
    unsure: int
    """Traces of these on which a rater is unsure."""
    sensitivity: Estimate
    """Of the traces that people find VALID, the share that the judge does too."""
    specificity: Estimate
    """Of the traces that people find INVALID, the share that the judge does too."""
    accuracy: Estimate
    kappa: Estimate
    """Agreement with people beyond chance (Cohen)."""
    excess: Estimate
    """The judge's share of VALID minus people's; above 0 the judge is lenient."""
    accuracy_if_unsure_disagree: float | None
    accuracy_if_unsure_agree: float | None
    """Bounds of the accuracy whatever the answer of raters that are unsure would be."""
    confidence: ConfidenceCalibrationRow


class JudgeSplitRow(ReportModel):
    """Accuracy of one judge in one group of traces, such as those in one language, compared with the other traces."""

    judge: str
    dimension: Dimension
    group: str
    labels: int
    accuracy: Estimate
    difference: Estimate
    """Accuracy in the group minus that on the other traces."""
    smallest_difference: float | None
    """The smallest difference that so many labels show in 80% of samples, corrected for the number of comparisons."""
    p_value: float | None = None
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all judges and groups (Holm)."""


class RefusedSplitRow(ReportModel):
    """Groups of one kind that have too few labels to be compared."""

    dimension: Dimension
    groups: int
    refused: int
    """Groups without figures."""
    missing: int
    """Further labels that all of them together need."""


class RaterAgreementRow(ReportModel):
    """Agreement of people with each other, which limits what any judge can reach."""

    raters: int
    shared: int
    """Traces with a label of at least two raters."""
    agreement: Estimate
    """Probability that two random raters of one trace agree."""
    max_accuracy: Estimate
    """Upper limit of a judge's accuracy against a random rater: (1 + √(2A − 1)) / 2, with A the agreement."""


class ErrorFactorRow(ReportModel):
    """Association of one judge's errors with one property of the traces, the others held fixed."""

    judge: str
    factor: str
    """`length`, `position in the run`, `own family`, or a language or region compared with the most frequent one."""
    effect: Estimate
    """Change of verdict minus label, from -1 to 1, for one standard deviation of a length or position, or for
    membership in the group; above 0 the judge is more lenient. The interval is over countries and topics."""
    p_value: float | None = None
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all judges and factors (Holm)."""


class CorrectedShareRow(ReportModel):
    """Share of VALID of one model: by the judges alone, by people's labels alone, and corrected by both."""

    model: str
    traces: int
    labels: int
    unsure: int
    missing_labels: int
    """Further labels that the corrected share needs before `auditor compare` and `auditor check` use it."""
    judges: ShareEstimate
    """Mean over traces of the share of VALID among the judges; over other countries and topics."""
    people: Estimate
    """From the labels alone, for these traces."""
    corrected: Estimate
    """The judges' share corrected by their errors on the labelled traces, for these traces."""
    calibrated: Estimate
    """As `corrected`, with the judges' votes and confidence first calibrated on other labelled traces."""
    corrected_elsewhere: Estimate
    """As `corrected`, for other countries and topics like these."""
    people_elsewhere: Estimate
    """As `people`, for other countries and topics like these."""
    rogan_gladen: Estimate
    """The share of the panel's majority verdicts corrected by its sensitivity and specificity, for these traces."""
    excess: Estimate
    """The judges' share minus people's, for these traces: by how much the judges are off."""
    corrected_if_unsure_invalid: float | None
    corrected_if_unsure_valid: float | None
    """`corrected` if all raters that are unsure said INVALID, or VALID."""

    @property
    def is_usable(self) -> bool:
        """Whether the labels suffice for decisions to rest on the corrected share."""
        return self.missing_labels == 0


class CorrectedDifferenceRow(ReportModel):
    """Difference of two models' shares of VALID: the first minus the second."""

    first: str
    second: str
    judges: float
    """By the judges alone on these traces, from -1 to 1, without sampling error."""
    corrected: Estimate
    """For these traces."""
    corrected_elsewhere: Estimate
    """For other countries and topics like these."""
    p_value: float | None = None
    """Two-sided, of no difference on these traces."""
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all pairs of models (Holm)."""


class TransportRow(ReportModel):
    """Whether one correction holds in all groups: a test of equal errors of the panel."""

    dimension: Dimension
    groups: list[str]
    """Those with enough labels."""
    largest_excess: Estimate
    """Of the group whose excess of the judges is farthest from that of the others, the difference between both."""
    largest_group: str | None
    p_value: float | None
    """Of equal errors in all groups; null if the labels do not support the test."""
    missing: int
    """Further labels that the test needs."""
    reason: str | None = None


class AnnotatorTestRow(ReportModel):
    """The alternative annotator test of one judge, if the raters are of one kind."""

    judge: str
    rater_kind: RaterKind
    epsilon: float
    """What the lower cost of the judge is worth, as a share of traces."""
    min_raters: int
    """Fewest labels of a trace."""
    passed: bool | None
    """Whether the judge may replace a rater, by the test over topics; null if it was not possible."""
    winning_rate: float | None
    advantage_probability: float | None
    passed_over_traces: bool | None
    """The same by the authors' test, which takes traces as independent and passes too often."""
    winning_rate_over_traces: float | None
    traces: int
    missing: int
    """Further labels that the test needs; 0 if it was possible."""
    reason: str | None = None


class JudgeQualityReport(ReportModel):
    """What the judges' verdicts are worth, measured on a random sample of traces that people labelled."""

    labels: int
    """Labelled traces, by at least one rater that is not unsure."""
    unsure: int
    """Traces on which at least one rater is unsure."""
    not_used: int
    """Labels of traces that no judge ruled on, or that are not in the random sample."""
    raters: list[str]
    sampled: int
    """Traces in the random sample."""
    traces: int
    """Traces that judges ruled on."""
    suggested_labels: int
    """Labels that give each model's corrected share an interval of ± 10 points, for these traces."""
    min_labels: int
    """Labels of each model from which `auditor compare` and `auditor check` use the corrected shares."""
    excess: Estimate | None
    """The judges' share of VALID minus people's: by how much the judges are off. Null without labels."""
    judges: list[JudgeAccuracyRow]
    splits: list[JudgeSplitRow]
    refused_splits: list[RefusedSplitRow]
    ceiling: RaterAgreementRow | None
    """Null without labels."""
    factors: list[ErrorFactorRow]
    models: list[CorrectedShareRow]
    differences: list[CorrectedDifferenceRow]
    transport: list[TransportRow]
    replacement: list[AnnotatorTestRow]
    """The alternative annotator test of each judge, for each kind of rater."""
    rater_kind: RaterKind
    """The kind of rater that decides, as configured (`labels.rater_kind`)."""
    reason: str | None
    """Why the labels cannot be used; null if they can, or if there are none."""

    @property
    def is_measured(self) -> bool:
        """Whether the labels suffice for figures: each stratum has some."""
        return self.excess is not None and self.excess.value is not None

    @property
    def corrected_shares(self) -> dict[str, CorrectedShareRow]:
        """The corrected shares by model if each model has enough labels; else none: models are treated alike."""
        is_enough = all(row.is_usable for row in self.models)
        return {row.model: row for row in self.models} if is_enough else {}
