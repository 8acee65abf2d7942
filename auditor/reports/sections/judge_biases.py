"""The table of differences between judges: the biases, and the associations that do not show one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from auditor.metrics.estimate import Estimate
from auditor.metrics.judge_contrast import Evidence, JudgeContrast
from auditor.reports.data.panel.schema import JudgeRow
from auditor.reports.document import Column, Table
from auditor.reports.sections.tables import tabulate

TITLES = {
    "leniency": "Leniency",
    "verbosity_against_truth": "Longer traces, compared with the truth",
    "verbosity": "Longer traces",
    "own_family": "Own family",
    "order": "Later verdicts",
}
"""Titles of the differences, by field of `JudgeRow`."""
EVIDENCE_TITLES: dict[Evidence, str] = {
    "experiment": "Experiment on the same text",
    "truth": "Compared with the known truth",
    "panel": "Compared with the median judge",
    "association": "Association, not a bias",
}
ADJUSTED_P_COLUMN = Column("p (adjusted)", "number", "adjusted_p_value", style="p_value")


@dataclass(frozen=True, slots=True)
class _BiasRow:
    """One difference of one judge.

    Attributes:
        with_label_errors: the difference with an interval that allows for wrong truths; None where there is none.
    """

    judge: str
    difference: str
    evidence: str
    estimate: JudgeContrast
    with_label_errors: Estimate | None
    adjusted_p_value: float | None


def build_bias_table(judges: Sequence[JudgeRow]) -> Table:
    """Build the table of all differences, by kind and judge; those that no judge can have are left out."""
    rows = list(_build_rows(judges))
    caption = (
        "Differences in the share of VALID; 0 is none. Leniency: compared with the known truth of the same answers or, "
        "in a survey, with the median judge on the same traces, which shows a bias if more than half of the judges "
        "have none. Longer traces: compared with shorter ones of the same author. Own family: models of its family "
        "compared with others. Later verdicts: compared with its earlier ones. An association does not show a bias, "
        "since traces differ in other ways too, such as quality. P-values are adjusted for all rows (Holm)."
    )
    label_error_columns = (
        [Column("With up to 10% wrong truths", "estimate", "with_label_errors", style="signed")]
        if any(row.with_label_errors for row in rows)
        else []
    )
    columns = [
        Column("Judge", "name"),
        Column("Difference"),
        Column("Evidence"),
        Column("Points of VALID", "estimate", "estimate", style="signed", emphasis=True),
        *label_error_columns,
        ADJUSTED_P_COLUMN,
    ]
    return tabulate("judge-biases", "Biases and associations of each judge", caption, rows, columns)


def _build_rows(judges: Sequence[JudgeRow]) -> Iterator[_BiasRow]:
    """Yield the rows, without kinds of differences that no judge has a value of."""
    for field, title in TITLES.items():
        contrasts: list[tuple[str, JudgeContrast]] = [(row.judge, getattr(row, field)) for row in judges]
        if field == "verbosity_against_truth" and all(contrast.value is None for _, contrast in contrasts):
            continue
        for judge, contrast in contrasts:
            low, high = contrast.label_error_ci_low, contrast.label_error_ci_high
            yield _BiasRow(
                judge,
                title,
                EVIDENCE_TITLES[contrast.evidence],
                contrast,
                None if low is None else replace(contrast, ci_low=low, ci_high=high),
                contrast.adjusted_p_value,
            )
