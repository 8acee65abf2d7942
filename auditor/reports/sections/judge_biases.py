"""The table of differences between judges: the biases, and the associations that do not show one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from auditor.metrics.estimate import Estimate
from auditor.metrics.judge_difference import Evidence, JudgeDifference
from auditor.reports.data.panel.schema import JudgeRow
from auditor.reports.data.report_model import p_column
from auditor.reports.document import Column, Table
from auditor.reports.sections.tables import MAX_LONG_TABLE_ROWS, sort_by_p_value, tabulate

TITLES = {
    "padding": "Padded traces",
    "leniency": "Leniency",
    "verbosity_against_truth": "Longer traces, compared with the truth",
    "verbosity": "Longer traces",
    "own_family": "Own family",
    "order": "Later verdicts",
}
"""Titles of the differences, by field of `JudgeRow`."""
OPTIONAL_FIELDS = ("padding", "verbosity_against_truth")
"""Differences that need an experiment, or a known truth."""
EVIDENCE_TITLES: dict[Evidence, str] = {
    "experiment": "Experiment on the same text",
    "truth": "Compared with the known truth",
    "panel": "Compared with the median judge",
    "association": "Association, not a bias",
}
ADJUSTED_FOR_JUDGES = "P-values are adjusted for the judges (Holm)."


@dataclass(frozen=True, slots=True)
class _BiasRow:
    """One difference of one judge.

    Attributes:
        with_label_errors: the difference with an interval that allows for wrong truths; None where there is none.
    """

    judge: str
    kind: str
    evidence: str
    difference: JudgeDifference
    with_label_errors: Estimate | None


BIAS_COLUMNS = (
    Column("Judge", "name"),
    Column("Kind"),
    Column("Evidence"),
    Column("Difference", "estimate", style="signed", emphasis=True),
    Column("With up to 10% wrong truths", "estimate", "with_label_errors", style="signed", is_optional=True),
    p_column(path="difference.adjusted_p_value"),
)


def build_padding_table(judges: Sequence[JudgeRow]) -> Table:
    """Build the table of the experiment that pads traces; without rows where no trace was padded."""
    caption = (
        "Share of VALID on padded traces minus that on the same traces as written; 0 means no bias. The padding has "
        "no content, so a difference is caused by the length. P-values are adjusted for all biases of the report "
        "(Holm). n counts traces."
    )
    padded = [row for row in judges if row.padding.value is not None]
    return tabulate("padding", "Padded traces", caption, padded, JudgeRow)


def build_bias_table(judges: Sequence[JudgeRow]) -> Table:
    """Build the table of all differences, by kind and judge; those that no judge can have are left out."""
    rows = sort_by_p_value(_build_rows(judges), lambda row: row.difference)
    caption = (
        "Differences in the share of VALID verdicts; 0 means none. Associations do not show a bias, since traces "
        "differ in other ways too."
    )
    title = "Biases and associations of each judge"
    return tabulate("judge-biases", title, caption, rows, BIAS_COLUMNS, max_rows=MAX_LONG_TABLE_ROWS)


def _build_rows(judges: Sequence[JudgeRow]) -> Iterator[_BiasRow]:
    """Yield the rows, without kinds of differences that no judge has a value of."""
    for field, title in TITLES.items():
        differences: list[tuple[str, JudgeDifference]] = [(row.judge, getattr(row, field)) for row in judges]
        if field in OPTIONAL_FIELDS and all(difference.value is None for _, difference in differences):
            continue
        for judge, difference in differences:
            low, high = difference.label_error_ci_low, difference.label_error_ci_high
            yield _BiasRow(
                judge,
                title,
                EVIDENCE_TITLES[difference.evidence],
                difference,
                None if low is None else replace(difference, ci_low=low, ci_high=high),
            )
