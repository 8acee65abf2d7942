"""The tables on judges measured against people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.data.judge_quality.schema import (
    AnnotatorTestRow,
    CorrectedDifferenceRow,
    CorrectedShareRow,
    ErrorFactorRow,
    JudgeAccuracyRow,
    JudgeQualityReport,
    JudgeSplitRow,
    PanelAccuracyRow,
    TransportRow,
)
from auditor.reports.document import Table
from auditor.reports.number_format import format_interval
from auditor.reports.sections.tables import MAX_LONG_TABLE_ROWS, sort_by_p_value, tabulate

THESE_TRACES_NOTE = "95% CIs are for these traces: over other random samples of them."


def build_accuracy_tables(quality: JudgeQualityReport) -> Iterator[Table]:
    """Build the tables of accuracy and of confidence."""
    caption = (
        "Sensitivity: share of the traces that people find VALID on which the judge agrees; specificity: of those that "
        "people find INVALID. Excess: its share of VALID minus people’s. If unsure: accuracy if all raters that are "
        f"unsure disagreed or agreed. {THESE_TRACES_NOTE} Balanced accuracy: mean of sensitivity and specificity, 0.5 "
        "by chance; its CI and p-value, adjusted for all judges, are for other traces of these cells. n counts labels."
    )
    derived = {"if_unsure": _format_unsure_bounds}
    yield tabulate("judge-accuracy", "Accuracy of each judge", caption, quality.judges, JudgeAccuracyRow, derived)
    caption = (
        "Accuracy of the majority, minus that of the best judge, and beside a majority of judges with the same "
        "sensitivity and specificity whose errors are independent. The best judge is chosen by the same labels, which "
        "flatters it a little. 95% CIs are for other traces of these cells. n counts labels."
    )
    panels = [quality.panel] if quality.panel is not None else []
    yield tabulate("panel-accuracy", "Accuracy of the panel", caption, panels, PanelAccuracyRow)
    caption = (
        "Expected calibration error: mean distance between the stated confidence and the share of right verdicts "
        "(lower is better), with its mean and 95% of its values if the confidence were right. Slope: 1 if it is "
        f"right, below 1 for overconfidence. Intercept: 0 if it is right, above 0 if it is too low. {THESE_TRACES_NOTE}"
    )
    rows = [row for row in quality.judges if row.confidence.error is not None]
    derived = {"band": _format_band}
    yield tabulate("judge-confidence", "Confidence of each judge", caption, rows, JudgeAccuracyRow, derived)


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
    if_unsure = {
        "if_unsure": lambda row: (
            format_interval(row.corrected_if_unsure_invalid, row.corrected_if_unsure_valid) if row.unsure else "–"
        )
    }
    yield tabulate("corrected-shares", "Shares of VALID", caption, quality.models, CorrectedShareRow, if_unsure)
    caption = (
        "Share of VALID of the first model minus that of the second: by the judges alone, corrected for these traces, "
        "and corrected for other countries and topics. P-values are for these traces, adjusted for all pairs (Holm). n "
        "counts labels."
    )
    title, rows = "Differences between models", quality.differences
    yield tabulate("corrected-differences", title, caption, rows, CorrectedDifferenceRow, max_rows=MAX_LONG_TABLE_ROWS)


def build_error_tables(quality: JudgeQualityReport) -> Iterator[Table]:
    """Build the tables of accuracy by group, of what errors go with, and of the test of one correction."""
    caption = (
        "Accuracy in a group of traces, and the difference from the other traces. Smallest difference: what so many "
        "labels show in 80% of samples, corrected for all rows. A difference that is not shown may still exist. "
        f"P-values are adjusted for all rows (Holm). {THESE_TRACES_NOTE}"
    )
    splits = sort_by_p_value(quality.splits, lambda row: row.difference)
    yield tabulate("judge-splits", "Accuracy by group", caption, splits, JudgeSplitRow, max_rows=MAX_LONG_TABLE_ROWS)
    caption = (
        "Change of the judge’s verdict minus people’s label with one property, the others held fixed; above 0 the "
        "judge is more lenient. Length and position: for one standard deviation. Languages and regions: compared with "
        "the most frequent one. An association, not an effect. P-values are adjusted for all rows (Holm). "
        "n counts labels."
    )
    factors = sort_by_p_value(quality.factors, lambda row: row.effect)
    yield tabulate(
        "judge-errors", "What errors go with", caption, factors, ErrorFactorRow, max_rows=MAX_LONG_TABLE_ROWS
    )
    caption = (
        "Whether the judges’ excess is equal in all groups. Largest: the excess in the group that differs most, minus "
        "that on the other traces. p is of equal errors in all groups (Bonferroni); p (adjusted) counts all such tests "
        "(Holm)."
    )
    tested = [row for row in quality.transport if row.largest_excess.p_value is not None]
    yield tabulate("transport", "Does one correction hold for all?", caption, tested, TransportRow)


def build_replacement_table(rows: Sequence[AnnotatorTestRow]) -> Table:
    """Build the table of the alternative annotator test."""
    caption = (
        "The alternative annotator test (Calderon, Reichart & Dror, ACL 2025): the judge passes if it wins against at "
        "least half of the raters, given ε, what its lower cost is worth: 0.2 if the raters are experts, 0.15 if "
        "skilled, 0.1 for crowd workers. The test over topics decides; the one over traces takes traces as independent "
        "and passes too often."
    )
    derived = {
        "passed": lambda row: _format_outcome(row.passed),
        "passed_over_traces": lambda row: _format_outcome(row.passed_over_traces),
    }
    return tabulate("replacement-test", "Alternative annotator test", caption, rows, AnnotatorTestRow, derived)


def _format_outcome(passed: bool | None) -> str:
    return "not tested" if passed is None else "yes" if passed else "no"
