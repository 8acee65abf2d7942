"""The tables on judges measured against people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.data.judge_quality.schema import AnnotatorTestRow, JudgeAccuracyRow, JudgeQualityReport
from auditor.reports.document import Column, Table
from auditor.reports.number_format import format_interval
from auditor.reports.sections.tables import ADJUSTED_P_COLUMN, MAX_LONG_TABLE_ROWS, make_columns, tabulate

JUDGE_COLUMN = Column("Judge", "name")
THESE_TRACES_NOTE = "95% CIs are for these traces: over other random samples of them."


def build_accuracy_tables(quality: JudgeQualityReport) -> Iterator[Table]:
    """Build the tables of accuracy and of confidence."""
    caption = (
        "Sensitivity: share of the traces that people find VALID on which the judge agrees; specificity: of those that "
        "people find INVALID. Excess: its share of VALID minus people’s. If unsure: accuracy if all raters that are "
        f"unsure disagreed or agreed. {THESE_TRACES_NOTE} n counts labels."
    )
    titles = {
        "accuracy": "Accuracy",
        "sensitivity": "Sensitivity",
        "specificity": "Specificity",
        "kappa": "Kappa",
    }
    columns = [
        JUDGE_COLUMN,
        *make_columns("number", {"traces": "Traces", "labels": "Labels", "unsure": "Unsure"}),
        *make_columns("estimate", titles),
        Column("Excess", "estimate", "excess", style="signed"),
        Column("Accuracy if unsure", "text", "if_unsure"),
    ]
    yield tabulate(
        "judge-accuracy",
        "Accuracy of each judge",
        caption,
        quality.judges,
        columns,
        {"if_unsure": _format_unsure_bounds},
    )
    caption = (
        "Expected calibration error: mean distance between the stated confidence and the share of right verdicts "
        "(lower is better), with its mean and 95% of its values if the confidence were right. Slope: 1 if it is "
        f"right, below 1 for overconfidence. Intercept: 0 if it is right, above 0 if it is too low. {THESE_TRACES_NOTE}"
    )
    columns = [
        JUDGE_COLUMN,
        Column("Labels", "number", "confidence.labels"),
        Column("Calibration error", "number", "confidence.error", emphasis=True),
        Column("If right", "number", "confidence.error_if_calibrated"),
        Column("95% if right", "text", "band"),
        Column("p", "number", "confidence.p_value", style="p_value"),
        Column("Slope", "estimate", "confidence.slope", show_n=False),
        Column("Intercept", "estimate", "confidence.intercept", style="signed", show_n=False),
    ]
    rows = [row for row in quality.judges if row.confidence.error is not None]
    yield tabulate("judge-confidence", "Confidence of each judge", caption, rows, columns, {"band": _format_band})


def _format_unsure_bounds(row: JudgeAccuracyRow) -> str:
    return format_interval(row.accuracy_if_unsure_disagree, row.accuracy_if_unsure_agree) if row.unsure else "–"


def _format_band(row: JudgeAccuracyRow) -> str:
    return format_interval(row.confidence.error_band_low, row.confidence.error_band_high)


def build_corrected_tables(quality: JudgeQualityReport) -> Iterator[Table]:
    """Build the tables of corrected shares and of their differences."""
    caption = (
        "Judges: share of VALID among the verdicts, over other countries and topics. People: from the labels alone. "
        "Corrected: the judges’ share minus their error on the labelled traces; calibrated: with votes and confidence "
        "first calibrated on other labels. Both are for these traces; the next two columns are for other countries and "
        "topics like these. Rogan–Gladen: the majority’s share corrected by its sensitivity and specificity. Excess: "
        "the judges’ share minus people’s. If unsure: corrected share if all raters that are unsure said INVALID or "
        "VALID. n counts labels."
    )
    titles = {
        "judges": "Judges",
        "people": "People",
        "corrected": "Corrected",
        "calibrated": "Calibrated",
        "corrected_elsewhere": "Corrected, elsewhere",
        "people_elsewhere": "People, elsewhere",
        "rogan_gladen": "Rogan–Gladen",
    }
    columns = [
        Column("Model", "name"),
        *make_columns("number", {"traces": "Traces", "labels": "Labels", "unsure": "Unsure"}),
        *make_columns("estimate", titles),
        Column("Excess", "estimate", "excess", style="signed"),
        Column("Corrected if unsure", "text", "if_unsure"),
    ]
    if_unsure = {
        "if_unsure": lambda row: (
            format_interval(row.corrected_if_unsure_invalid, row.corrected_if_unsure_valid) if row.unsure else "–"
        )
    }
    yield tabulate("corrected-shares", "Shares of VALID", caption, quality.models, columns, if_unsure)
    caption = (
        "Share of VALID of the first model minus that of the second: by the judges alone, corrected for these traces, "
        "and corrected for other countries and topics. P-values are for these traces, adjusted for all pairs (Holm). n "
        "counts labels."
    )
    titles = {"corrected": "Corrected", "corrected_elsewhere": "Corrected, elsewhere"}
    columns = [
        *(Column("Model", "name", "first"), Column("Other model", "name", "second")),
        Column("Judges", "number", style="signed"),
        *make_columns("estimate", titles, style="signed"),
        ADJUSTED_P_COLUMN,
    ]
    yield tabulate(
        "corrected-differences",
        "Differences between models",
        caption,
        quality.differences,
        columns,
        max_rows=MAX_LONG_TABLE_ROWS,
    )


def build_error_tables(quality: JudgeQualityReport) -> Iterator[Table]:
    """Build the tables of accuracy by group, of what errors go with, and of the test of one correction."""
    caption = (
        "Accuracy in a group of traces, and the difference from the other traces. Smallest difference: what so many "
        "labels show in 80% of samples, corrected for all rows. A difference that is not shown may still exist. "
        f"P-values are adjusted for all rows (Holm). {THESE_TRACES_NOTE}"
    )
    columns = [
        JUDGE_COLUMN,
        Column("Kind", "text", "dimension"),
        Column("Group", "name"),
        Column("Accuracy", "estimate"),
        Column("Difference", "estimate", style="signed", emphasis=True),
        Column("Smallest difference", "number"),
        ADJUSTED_P_COLUMN,
    ]
    splits = sorted(quality.splits, key=lambda row: 2.0 if row.adjusted_p_value is None else row.adjusted_p_value)
    yield tabulate("judge-splits", "Accuracy by group", caption, splits, columns, max_rows=MAX_LONG_TABLE_ROWS)
    caption = (
        "Change of the judge’s verdict minus people’s label with one property, the others held fixed; above 0 the "
        "judge is more lenient. Length and position: for one standard deviation. Languages and regions: compared with "
        "the most frequent one. An association, not an effect. P-values are adjusted for all rows (Holm). "
        "n counts labels."
    )
    columns = [
        JUDGE_COLUMN,
        Column("Property", "text", "factor"),
        Column("Change", "estimate", "effect", style="signed", emphasis=True),
        ADJUSTED_P_COLUMN,
    ]
    factors = sorted(quality.factors, key=lambda row: 2.0 if row.adjusted_p_value is None else row.adjusted_p_value)
    yield tabulate("judge-errors", "What errors go with", caption, factors, columns, max_rows=MAX_LONG_TABLE_ROWS)
    caption = (
        "Whether the judges’ excess is equal in all groups. Largest: the excess in the group that differs most, minus "
        "that on the other traces. p is corrected for the number of groups (Bonferroni)."
    )
    columns = [
        Column("Groups", "text", "dimension"),
        Column("Differs most", "name", "largest_group"),
        Column("Largest", "estimate", "largest_excess", style="signed"),
        Column("p", "number", "p_value", style="p_value"),
    ]
    tested = [row for row in quality.transport if row.p_value is not None]
    yield tabulate("transport", "Does one correction hold for all?", caption, tested, columns)


def build_replacement_table(rows: Sequence[AnnotatorTestRow]) -> Table:
    """Build the table of the alternative annotator test."""
    caption = (
        "The alternative annotator test (Calderon, Reichart & Dror, ACL 2025): the judge passes if it wins against at "
        "least half of the raters, given ε, what its lower cost is worth: 0.2 if the raters are experts, 0.15 if "
        "skilled, 0.1 for crowd workers. The test over topics decides; the one over traces takes traces as independent "
        "and passes too often."
    )
    columns = [
        JUDGE_COLUMN,
        Column("Raters", "text", "rater_kind"),
        Column("ε", "number", "epsilon"),
        Column("Passes", "text", "passed", emphasis=True),
        Column("Wins against", "number", "winning_rate"),
        Column("At least as close", "number", "advantage_probability"),
        Column("Passes over traces", "text", "passed_over_traces"),
        Column("Traces", "number"),
    ]
    derived = {
        "passed": lambda row: _format_outcome(row.passed),
        "passed_over_traces": lambda row: _format_outcome(row.passed_over_traces),
    }
    return tabulate("replacement-test", "Alternative annotator test", caption, rows, columns, derived)


def _format_outcome(passed: bool | None) -> str:
    return "not tested" if passed is None else "yes" if passed else "no"
