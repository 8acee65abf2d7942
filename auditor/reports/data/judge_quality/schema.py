"""Schema of the figures of judges that rest on people's labels on random samples of traces, answers and comparisons."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field
from pydantic.config import JsonDict

from auditor.domain.labels import RaterKind
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate, Tested
from auditor.metrics.judges.panels import PanelAccuracy
from auditor.metrics.labels.annotator_test import AnnotatorTest
from auditor.metrics.labels.calibration import ConfidenceCalibration
from auditor.reports.data.report_model import FlatRow, JudgeName, ModelName, ReportModel, RowTest, p_column, publish
from auditor.reports.document import Column
from auditor.storage.probe_results import list_label_forms

Dimension = Literal["model", "language", "region", "topic"]


CALIBRATION_COLUMNS = tuple(
    replace(column, table="judge-confidence")
    for column in (
        Column("Labels", part="n", key="confidence.labels"),
        Column("Calibration error", part="error", emphasis=True),
        Column("If right", part="error_if_calibrated"),
        Column("95% if right", part="error_band_low", key="band"),
        Column("p", part="p_value", style="p_value"),
        Column("Slope", part="slope", show_n=False),
        Column("Intercept", part="intercept", style="signed", show_n=False),
    )
)


class JudgeAccuracyRow(ReportModel):
    """Agreement of one judge with a random rater. Intervals are for these traces: over other random samples."""

    judge: JudgeName
    traces: Annotated[int, Column("Traces", table="judge-accuracy")]
    """Traces with a verdict of the judge."""
    labels: Annotated[int, Column("Labels", table="judge-accuracy")]
    """Traces of these that people labelled VALID or INVALID."""
    unsure: Annotated[int, Column("Unsure", table="judge-accuracy")]
    """Traces of these on which a rater is unsure."""
    accuracy: Annotated[Estimate, Column("Accuracy", table="judge-accuracy")]
    sensitivity: Annotated[Estimate, Column("Sensitivity", table="judge-accuracy")]
    """Of the traces that people find VALID, the share that the judge does too."""
    specificity: Annotated[Estimate, Column("Specificity", table="judge-accuracy")]
    """Of the traces that people find INVALID, the share that the judge does too."""
    kappa: Annotated[Estimate, Column("Kappa", table="judge-accuracy")]
    """Agreement with people beyond chance (Cohen)."""
    excess: Annotated[Estimate, Column("Excess", style="signed", table="judge-accuracy")]
    """The judge's share of VALID minus people's; above 0 the judge is lenient."""
    balanced_accuracy: Annotated[
        Tested, Column("Balanced accuracy", table="judge-accuracy"), p_column(table="judge-accuracy")
    ]
    """Mean of sensitivity and specificity; 0.5 is chance, which the p-value is of, adjusted for all judges. Unlike the
    other figures it is about other traces of these cells."""
    accuracy_if_unsure_disagree: Annotated[
        float | None, Column("Accuracy if unsure", "text", "if_unsure", table="judge-accuracy")
    ]
    accuracy_if_unsure_agree: float | None
    """Bounds of the accuracy whatever the answer of raters that are unsure would be."""
    confidence: Annotated[
        ConfidenceCalibration,
        *CALIBRATION_COLUMNS,
    ]
    """Whether a judge that says 80% is right in 80% of the cases."""

    @property
    def is_better_than_chance(self) -> bool:
        """Whether the labels show that the judge sees something, given the number of judges."""
        return is_better_than_chance(self.balanced_accuracy)


def is_better_than_chance(balanced_accuracy: Tested) -> bool:
    """Whether a balanced accuracy is shown to be above 0.5."""
    return balanced_accuracy.is_significant and (balanced_accuracy.value or 0.0) > 0.5


class PanelAccuracyRow(FlatRow):
    """How often the panel's majority is right, beside its judges. Intervals are over cells, or items."""

    accuracy: Annotated[
        PanelAccuracy, publish("majority", "gain", "independent", "loss"), Column("Majority", part="majority")
    ]
    balanced_accuracy: Tested
    """Mean of the majority's sensitivity and specificity; 0.5 is chance, which the p-value is of."""
    best_judge: Annotated[
        str,
        Column("Best judge", "name"),
        Column("Majority minus best judge", "estimate", "gain", style="signed", path="accuracy.gain"),
        Column("Independent judges", "estimate", "independent", path="accuracy.independent"),
        Column("Majority minus independent", "estimate", "loss", style="signed", path="accuracy.loss"),
    ]
    """The judge with the highest accuracy on the same labels, by which it is chosen: it is flattered a little."""

    @property
    def is_better_than_chance(self) -> bool:
        """Whether the labels show that the majority sees something."""
        return is_better_than_chance(self.balanced_accuracy)


class JudgeSplitRow(FlatRow):
    """Accuracy of one judge in one group of traces, such as those in one language, compared with the other traces."""

    judge: JudgeName
    dimension: Annotated[Dimension, Column("Kind")]
    group: Annotated[str, Column("Group", "name")]
    labels: int
    accuracy: Annotated[Estimate, Column("Accuracy")]
    difference: Annotated[RowTest, Column("Difference", style="signed", emphasis=True)]
    """Accuracy in the group minus that on the other traces."""
    smallest_difference: Annotated[
        float | None, Column("Smallest difference"), p_column(path="difference.adjusted_p_value")
    ]
    """The smallest difference that so many labels show in 80% of samples, corrected for the number of comparisons."""


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


class ErrorFactorRow(FlatRow):
    """Association of one judge's errors with one property of the traces, the others held fixed."""

    judge: JudgeName
    factor: Annotated[str, Column("Property")]
    """`length`, `position in the run`, `own family`, or a language or region compared with the most frequent one."""
    effect: Annotated[RowTest, Column("Change", style="signed", emphasis=True), p_column()]
    """Change of verdict minus label, from -1 to 1, for one standard deviation of a length or position, or for
    membership in the group; above 0 the judge is more lenient. The interval is over countries and topics."""


class CorrectedShareRow(ReportModel):
    """Share of VALID of one model: by the judges alone, by people's labels alone, and corrected by both."""

    model: ModelName
    traces: Annotated[int, Column("Traces")]
    labels: Annotated[int, Column("Labels")]
    unsure: Annotated[int, Column("Unsure")]
    missing_labels: int
    """Further labels that the corrected share needs before `auditor compare` and `auditor check` use it."""
    judges: Annotated[ShareEstimate, Column("Judges")]
    """Mean over traces of the share of VALID among the judges; over other countries and topics."""
    people: Annotated[Estimate, Column("People")]
    """From the labels alone, for these traces."""
    corrected: Annotated[Estimate, Column("Corrected")]
    """The judges' share corrected by their errors on the labelled traces, for these traces."""
    calibrated: Annotated[Estimate, Column("Calibrated")]
    """As `corrected`, with the judges' votes and confidence first calibrated on other labelled traces."""
    corrected_elsewhere: Annotated[Estimate, Column("Corrected, elsewhere")]
    """As `corrected`, for other countries and topics like these."""
    people_elsewhere: Annotated[Estimate, Column("People, elsewhere")]
    """As `people`, for other countries and topics like these."""
    rogan_gladen: Annotated[Estimate, Column("Rogan–Gladen")]
    """The share of the panel's majority verdicts corrected by its sensitivity and specificity, for these traces."""
    excess: Annotated[Estimate, Column("Excess", style="signed")]
    """The judges' share minus people's, for these traces: by how much the judges are off."""
    corrected_if_unsure_invalid: Annotated[float | None, Column("Corrected if unsure", "text", "if_unsure")]
    corrected_if_unsure_valid: float | None
    """`corrected` if all raters that are unsure said INVALID, or VALID."""

    @property
    def is_usable(self) -> bool:
        """Whether the labels suffice for decisions to rest on the corrected share."""
        return self.missing_labels == 0


class CorrectedDifferenceRow(FlatRow):
    """Difference of two models' shares of VALID: the first minus the second."""

    first: ModelName
    second: Annotated[str, Column("Other model", "name")]
    judges: Annotated[float, Column("Judges", style="signed")]
    """By the judges alone on these traces, from -1 to 1, without sampling error."""
    corrected: Annotated[RowTest, Column("Corrected", style="signed")]
    """For these traces, as are its p-values."""
    corrected_elsewhere: Annotated[
        Estimate, Column("Corrected, elsewhere", style="signed"), p_column(path="corrected.adjusted_p_value")
    ]
    """For other countries and topics like these."""


class TransportRow(FlatRow):
    """Whether one correction holds in all groups: a test of equal errors of the panel."""

    dimension: Annotated[Dimension, Column("Groups")]
    groups: list[str]
    """Those with enough labels."""
    largest_group: Annotated[str | None, Column("Differs most", "name")]
    largest_excess: Annotated[RowTest, Column("Largest", style="signed"), p_column("p"), p_column()]
    """Of the group whose excess of the judges is farthest from that of the others, the difference between both. Its
    p-value is that of one test, of equal errors in all groups; null if the labels do not support the test."""
    missing: int
    """Further labels that the test needs."""
    reason: str | None = None


class AnnotatorTestRow(FlatRow):
    """The alternative annotator test of one judge, if the raters are of one kind."""

    judge: JudgeName
    rater_kind: Annotated[RaterKind, Column("Raters")]
    epsilon: Annotated[float, Column("ε")]
    """What the lower cost of the judge is worth, as a share of traces."""
    min_raters: int
    """Fewest labels of a trace."""
    test: Annotated[
        AnnotatorTest,
        publish("passed", "winning_rate", "advantage_probability", "reason", n="traces"),
        Column("Passes", part="passed", emphasis=True),
        Column("Wins against", part="winning_rate"),
        Column("At least as close", part="advantage_probability"),
    ]
    """The test over topics, which decides."""
    test_over_traces: Annotated[
        AnnotatorTest,
        publish(passed="passed_over_traces", winning_rate="winning_rate_over_traces"),
        Column("Passes over traces", part="passed"),
        Column("Traces", "number", "traces", path="test.n"),
    ]
    """The authors' test, which takes traces as independent and passes too often."""
    missing: int
    """Further labels that the test needs; 0 if it was possible."""


class JudgeQualityReport(ReportModel):
    """What the judges' verdicts are worth, measured on a random sample of traces that people labelled."""

    labels: int = 0
    """Labelled traces, by at least one rater that is not unsure."""
    unsure: int = 0
    """Traces on which at least one rater is unsure."""
    not_used: int
    """Labels of traces that no judge ruled on, or that are not in the random sample."""
    raters: list[str] = Field(default_factory=list)
    sampled: int
    """Traces in the random sample."""
    traces: int
    """Traces that judges ruled on."""
    suggested_labels: int
    """Labels that give each model's corrected share an interval of ± 10 to 13 points, for these traces."""
    min_labels: int
    """Labels of each model from which `auditor compare` and `auditor check` use the corrected shares."""
    excess: Estimate | None = None
    """The judges' share of VALID minus people's: by how much the judges are off. Null without labels."""
    judges: list[JudgeAccuracyRow] = Field(default_factory=list)
    panel: PanelAccuracyRow | None = None
    """Null with fewer than two judges with labels of both kinds."""
    splits: list[JudgeSplitRow] = Field(default_factory=list)
    refused_splits: list[RefusedSplitRow] = Field(default_factory=list)
    ceiling: RaterAgreementRow | None = None
    """Null without labels."""
    factors: list[ErrorFactorRow] = Field(default_factory=list)
    models: list[CorrectedShareRow] = Field(default_factory=list)
    differences: list[CorrectedDifferenceRow] = Field(default_factory=list)
    transport: list[TransportRow] = Field(default_factory=list)
    replacement: list[AnnotatorTestRow] = Field(default_factory=list)
    """The alternative annotator test of each judge, for each kind of rater."""
    rater_kind: RaterKind
    """The kind of rater that decides, as configured (`labels.rater_kind`)."""
    reason: str | None = None
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


def _add_kinds(schema: JsonDict) -> None:
    """Add the declared kinds to a JSON schema."""
    schema["enum"] = [form.kind.value for form in list_label_forms()]


def _add_questions(schema: JsonDict) -> None:
    """Add the declared questions to a JSON schema."""
    schema["enum"] = [question for form in list_label_forms() for question in form.questions]


class PairJudgeRow(ReportModel):
    """Agreement of one judge with a random rater on pairs of answers or on comparisons, for these pairs."""

    judge: JudgeName
    question: Annotated[str, Column("Question"), Field(json_schema_extra=_add_questions)]
    """What the judge was asked of each pair."""
    pairs: Annotated[int, Column("Pairs")]
    """Pairs that the judge decided."""
    labels: Annotated[int, Column("Labels")]
    """Pairs of these that people labelled, other than unsure."""
    unsure: Annotated[int, Column("Unsure")]
    """Pairs of these on which a rater is unsure."""
    agreement: Annotated[Estimate, Column("Agreement", emphasis=True)]
    """Share of the pairs on which the judge gives the answer of a random rater."""
    agreement_if_unsure_disagree: Annotated[float | None, Column("Agreement if unsure", "text", "if_unsure")]
    agreement_if_unsure_agree: float | None
    """Bounds of the agreement whatever the answer of raters that are unsure would be."""
    sensitivity: Annotated[Estimate | None, Column("Sensitivity", is_optional=True)]
    """Of the pairs of which people say yes, the share that the judge does too; null of comparisons."""
    specificity: Annotated[Estimate | None, Column("Specificity", is_optional=True)]
    """Of the pairs of which people say no, the share that the judge does too; null of comparisons."""
    kappa: Annotated[Estimate | None, Column("Kappa", is_optional=True)]
    """Agreement with people beyond chance (Cohen); null of comparisons."""


class PairLabelsReport(ReportModel):
    """Judges of pairs of answers, or of comparisons, measured on a random sample that people labelled."""

    kind: Annotated[str, Field(json_schema_extra=_add_kinds)]
    pairs: int
    """Pairs that could be drawn."""
    sampled: int
    labels: int
    """Labelled pairs, by at least one rater that is not unsure."""
    raters: list[str]
    suggested_labels: int
    """Labels that give each judge's agreement an interval of about ± 10 points."""
    judges: list[PairJudgeRow]
    reason: str | None
    """Why the labels cannot be used; null if they can."""
