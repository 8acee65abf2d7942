"""Tables of the experiments on consistency by every measure of the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from auditor.probes.semantic.figures.experiment_rows import (
    ConsistencyAccuracyRow,
    MeasureByRuleRow,
    MeasureByWordingRow,
    RuleFollowingRow,
    SemanticTemperatureRow,
    TaskConsistencyRow,
)
from auditor.probes.semantic.section_consistency_measures import SCORED_TEXT_LABELS, name_metric
from auditor.reports.document import Column, Section
from auditor.reports.sections.tables import DerivedCells, list_columns, tabulate

ALL_MEASURES_TITLE = "All measures"
ALL_MEASURES_NOTE = "with 95% CI, which are not adjusted for the number of measures; n counts questions."
M = TypeVar("M", MeasureByWordingRow, MeasureByRuleRow, TaskConsistencyRow)
R = TypeVar("R", SemanticTemperatureRow, RuleFollowingRow, ConsistencyAccuracyRow)


class _Record(NamedTuple, Generic[R, M]):
    """A measure and the row that it belongs to."""

    row: R
    measure: M


def build_wording_measures(rows: Sequence[SemanticTemperatureRow]) -> list[Section]:
    """The section with every measure at each temperature; an empty list where there is none."""
    records = [_Record(row, measure) for row in rows for measure in row.measures]
    columns = [
        Column("Model", "name", "row.model"),
        Column("Temperature", "number", "row.temperature"),
        *list_columns(MeasureByWordingRow, prefix="measure."),
    ]
    caption = f"Every measure at each temperature, {ALL_MEASURES_NOTE}"
    table = tabulate("temperature-measures", ALL_MEASURES_TITLE, caption, records, columns, _measure_cells())
    return [Section("temperature-all", ALL_MEASURES_TITLE, [table])] if records else []


def build_rule_measures(rows: Sequence[RuleFollowingRow]) -> list[Section]:
    """The section with every measure with and without a rule; an empty list where there is none."""
    records = [_Record(row, measure) for row in rows for measure in row.measures]
    columns = [
        Column("Model", "name", "row.model"),
        *list_columns(MeasureByRuleRow, prefix="measure."),
    ]
    caption = f"Every measure with and without a rule to follow, {ALL_MEASURES_NOTE}"
    table = tabulate("rules-measures", ALL_MEASURES_TITLE, caption, records, columns, _measure_cells())
    return [Section("rules-all", ALL_MEASURES_TITLE, [table])] if records else []


def name_scored(rows: Sequence[ConsistencyAccuracyRow]) -> str:
    """What the consistency of choices is of."""
    return "the chosen answers" if any(row.scored == "choices" for row in rows) else "the reasons"


def build_task_measures(rows: Sequence[ConsistencyAccuracyRow]) -> list[Section]:
    """The section with every measure of the reasons or of the choices; an empty list where there is none."""
    records = [_Record(row, measure) for row in rows for measure in row.measures]
    columns = [
        Column("Model", "name", "row.model"),
        *list_columns(TaskConsistencyRow, prefix="measure."),
    ]
    caption = f"Consistency of {name_scored(rows)} by every measure, {ALL_MEASURES_NOTE}"
    table = tabulate("accuracy-measures", ALL_MEASURES_TITLE, caption, records, columns, _measure_cells())
    return [Section("accuracy-all", ALL_MEASURES_TITLE, [table])] if records else []


def _measure_cells() -> DerivedCells[_Record[R, M]]:
    """Cells that name the measure of a record and its texts."""
    return {
        "metric": lambda record: name_metric(record.measure.metric),
        "text": lambda record: SCORED_TEXT_LABELS[record.measure.text],
    }
