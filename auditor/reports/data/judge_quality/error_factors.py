"""What the judges' errors go with: properties of the traces, and whether one correction holds in all groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from auditor.metrics.difference_interval import subtract_independent, widen_for_choice
from auditor.metrics.error_regression import regress_errors
from auditor.metrics.estimate import Tested
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.judge_quality.judges import (
    MIN_GROUP_LABELS,
    Groups,
    estimate_excess,
)
from auditor.reports.data.judge_quality.label_columns import Bools
from auditor.reports.data.judge_quality.labelled_traces import LabelledTraces
from auditor.reports.data.judge_quality.schema import Dimension, ErrorFactorRow, TransportRow
from auditor.reports.data.report_source import FloatArray

MIN_REGRESSION_LABELS = 50
"""Fewest labels of a judge's traces for the regression."""
MIN_FACTOR_LABELS = 10
"""Fewest labels of a language or region for its own coefficient; smaller ones are compared with nothing."""
TRANSPORT_DIMENSIONS: tuple[Dimension, ...] = ("model", "language")


def build_factor_rows(traces: LabelledTraces, groups: Groups) -> list[ErrorFactorRow]:
    """Regress each judge's errors on the properties of the traces; p-values are adjusted for all judges and factors."""
    judges = range(len(traces.matrix.judges))
    return adjust_rows(
        (row for judge in judges for row in _regress_judge(traces, judge, groups)),
        "effect",
        "factors of judges’ errors",
    )


def _regress_judge(traces: LabelledTraces, judge: int, groups: Groups) -> Iterator[ErrorFactorRow]:
    """Yield a row for each property; none with too few labels."""
    verdicts = traces.matrix.unconditional_verdicts[judge]
    columns = traces.select(~np.isnan(verdicts))
    is_labelled = ~np.isnan(columns.labels)
    if columns.n < MIN_REGRESSION_LABELS:
        return
    rows = columns.rows[is_labelled]
    factors = dict(_list_factors(traces, judge, rows, groups))
    if not factors:
        return
    units = {unit: np.asarray(names)[is_labelled].tolist() for unit, names in columns.units.items()}
    effects = regress_errors(
        verdicts[rows] - traces.labels[rows],
        np.stack(list(factors.values()), axis=1),
        units,
        weights=1 / columns.inclusion[is_labelled],
    )
    for factor, effect in zip(factors, effects, strict=True):
        yield ErrorFactorRow(judge=traces.matrix.judges[judge], factor=factor, effect=effect)


def _list_factors(
    traces: LabelledTraces, judge: int, rows: np.ndarray, groups: Groups
) -> Iterator[tuple[str, FloatArray]]:
    """Yield the name and the values, shape (labelled traces,), of each property that varies."""
    lengths = np.log1p(np.asarray(traces.matrix.votes.lengths, dtype=np.float64))[rows]
    recorded_at = traces.matrix.recorded_at[judge]
    order = np.full(len(recorded_at), np.nan)
    recorded = np.nonzero(~np.isnan(recorded_at))[0]
    order[recorded[np.argsort(recorded_at[recorded], kind="stable")]] = np.arange(len(recorded))
    for name, values in (("length", lengths), ("position in the run", order[rows])):
        if not np.isnan(values).any() and values.std() > 0:
            yield name, (values - values.mean()) / values.std()
    own_family = traces.matrix.is_same_family[judge][rows].astype(np.float64)
    if MIN_FACTOR_LABELS <= own_family.sum() <= len(rows) - MIN_FACTOR_LABELS:
        yield "own family", own_family
    for dimension in ("language", "region"):
        names, counts = np.unique(groups[dimension][rows], return_counts=True)
        reference = names[counts.argmax()] if len(names) else ""
        for name, n in zip(names.tolist(), counts.tolist(), strict=True):
            if name and name != reference and n >= MIN_FACTOR_LABELS:
                yield f"{dimension} {name}", (groups[dimension][rows] == name).astype(np.float64)


def build_transport_rows(traces: LabelledTraces, groups: Groups) -> list[TransportRow]:
    """Test by model and by language whether the panel's errors are equal in all groups."""
    rows = (_test_transport(traces, dimension, groups) for dimension in TRANSPORT_DIMENSIONS)
    return adjust_rows((row for row in rows if row is not None), "largest_excess", "equal errors of the panel")


def _test_transport(traces: LabelledTraces, dimension: Dimension, groups: Groups) -> TransportRow | None:
    """Compare the panel's excess in each group with that of the others; None if there is one group only."""
    panel, names = traces.panel_share, groups[dimension]
    is_usable = ~np.isnan(panel) & (names != "")
    is_labelled = is_usable & ~np.isnan(traces.labels)
    all_groups = [str(name) for name in np.unique(names[is_usable])]
    if len(all_groups) < 2:
        return None
    n_labels = {group: int((is_labelled & (names == group)).sum()) for group in all_groups}
    missing = sum(max(0, MIN_GROUP_LABELS - n) for n in n_labels.values())
    if missing:
        reason = f"the test needs {MIN_GROUP_LABELS} labels of each {dimension}"
        undefined = Tested(None, int(is_labelled.sum()), reason=reason)
        return TransportRow(
            dimension=dimension,
            groups=[],
            largest_excess=undefined,
            largest_group=None,
            missing=missing,
            reason=reason,
        )
    compared = all_groups if len(all_groups) > 2 else all_groups[:1]
    differences = [(_compare(traces, is_usable, names == group), group) for group in compared]
    estimate, group = min(differences, key=lambda row: 2.0 if row[0].p_value is None else row[0].p_value)
    p_value = None if estimate.p_value is None else min(1.0, estimate.p_value * len(compared))
    return TransportRow(
        dimension=dimension,
        groups=all_groups,
        largest_excess=Tested(**asdict(widen_for_choice(estimate, len(compared))) | {"p_value": p_value}),
        largest_group=group,
        missing=0,
        reason=estimate.reason,
    )


def _compare(traces: LabelledTraces, is_usable: Bools, is_in_group: Bools) -> Tested:
    """The panel's excess in a group minus that on the other traces."""
    panel = traces.panel_share
    sides = [traces.select(is_usable & side) for side in (is_in_group, ~is_in_group)]
    inside, outside = (estimate_excess(panel[columns.rows], columns) for columns in sides)
    return subtract_independent(inside, outside)
