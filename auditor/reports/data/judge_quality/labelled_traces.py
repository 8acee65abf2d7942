"""Traces with verdicts and, on a random sample of them, people's labels: the input of the figures of judges.

The label of a trace is the share of its raters that say VALID, so that figures are about a random rater of the pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Ruling
from auditor.domain.labels import UNSURE
from auditor.reports.data.judge_quality.label_columns import Bools, LabelColumns, select_columns
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix, build_verdict_matrix
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.storage.votes import TraceKey


@dataclass(frozen=True)
class LabelledTraces:
    """Traces that judges ruled on, and people's labels.

    Attributes:
        matrix: the verdicts; its traces are the columns of all arrays below.
        raters: names, in order.
        ratings: shape (raters, traces): 1 VALID, 0 INVALID, nan unsure or without a label.
        is_unsure: shape (raters, traces).
        strata: stratum of each trace, shape (traces,), as numbers; -1 for a trace that could not be drawn.
        inclusion: planned probability of each trace to be in the sample, shape (traces,); nan where it is not.
        n_not_used: labels of traces that are not in the sample, or that no judge ruled on.
    """

    matrix: VerdictMatrix
    raters: Sequence[str]
    ratings: FloatArray
    is_unsure: Bools
    strata: NDArray[np.intp]
    inclusion: FloatArray
    n_not_used: int = 0

    @cached_property
    def n_unsure(self) -> NDArray[np.intp]:
        """Number of raters that are unsure, shape (traces,)."""
        return np.asarray(self.is_unsure.sum(axis=0), dtype=np.intp)

    @cached_property
    def n_ratings(self) -> NDArray[np.intp]:
        """Number of raters that say VALID or INVALID, shape (traces,)."""
        return np.asarray((~np.isnan(self.ratings)).sum(axis=0), dtype=np.intp)

    @cached_property
    def labels(self) -> FloatArray:
        """Share of VALID among the raters that are not unsure, shape (traces,); nan without one."""
        with np.errstate(invalid="ignore"):
            labels: FloatArray = np.nansum(self.ratings, axis=0) / self.n_ratings
        return labels

    def labels_if_unsure(self, values: FloatArray | float) -> FloatArray:
        """The labels if all raters that are unsure gave a value, in [0, 1], of shape (traces,) or one for all."""
        totals = np.nansum(self.ratings, axis=0) + self.n_unsure * values
        with np.errstate(invalid="ignore"):
            labels: FloatArray = totals / (self.n_ratings + self.n_unsure)
        return labels

    @cached_property
    def panel_share(self) -> FloatArray:
        """Share of VALID among each trace's verdicts that were asked for in any case, shape (traces,); nan without."""
        verdicts = self.matrix.unconditional_verdicts
        n_verdicts = (~np.isnan(verdicts)).sum(axis=0)
        with np.errstate(invalid="ignore"):
            shares: FloatArray = np.nansum(verdicts, axis=0) / n_verdicts
        return shares

    @cached_property
    def models(self) -> NDArray[np.str_]:
        """The author of each trace, shape (traces,)."""
        return np.array([key[0] for key in self.matrix.traces], dtype=np.str_)

    def select(
        self, is_selected: Bools, labels: FloatArray | None = None, *, groups: NDArray[np.str_] | None = None
    ) -> LabelColumns:
        """The sample within a part of the traces, as `select_columns`; all arguments have shape (traces,).

        Args:
            labels: by default `self.labels`.
        """
        return select_columns(
            self.labels if labels is None else labels,
            self.inclusion,
            self.strata,
            is_selected,
            groups=groups,
            units=self.matrix.units,
        )


def load_labelled_traces(source: ReportSource) -> LabelledTraces | None:
    """Match people's labels with the traces that judges ruled on; None without verdicts or labels."""
    matrix = build_verdict_matrix(source)
    if not matrix.traces or not source.label_records.labels or source.label_records.reason:
        return None
    columns = {key: column for column, key in enumerate(matrix.traces)}
    inclusion = _read_inclusion(source, columns)
    rows = {rater: row for row, rater in enumerate(sorted({label.rater for label in source.label_records.labels}))}
    ratings = np.full((len(rows), len(columns)), np.nan)
    is_unsure = np.zeros(ratings.shape, dtype=np.bool_)
    n_not_used = 0
    for label in source.label_records.labels:
        column = columns.get(read_trace_key(label.unit.parts))
        if column is None or np.isnan(inclusion[column]):
            n_not_used += 1
        elif label.value == UNSURE:
            is_unsure[rows[label.rater], column] = True
        else:
            ratings[rows[label.rater], column] = float(label.value == Ruling.VALID.value)
    return LabelledTraces(
        matrix, list(rows), ratings, is_unsure, _number_strata(source, columns), inclusion, n_not_used
    )


def read_trace_key(parts: Sequence[str]) -> TraceKey:
    """The key of a trace from the parts of a `LabelUnit`."""
    model, country, topic, sample = parts
    return model, country, topic, int(sample)


def _read_inclusion(source: ReportSource, columns: Mapping[TraceKey, int]) -> FloatArray:
    """Planned inclusion probabilities of the sampled traces, shape (traces,); nan for others."""
    inclusion = np.full(len(columns), np.nan)
    for row in source.label_records.sample:
        column = columns.get(read_trace_key(row.unit.parts))
        if column is not None:
            inclusion[column] = row.inclusion
    return inclusion


def _number_strata(source: ReportSource, columns: Mapping[TraceKey, int]) -> NDArray[np.intp]:
    """Number of each trace's stratum, shape (traces,); all are in one if the strata of the traces are not known."""
    if not source.label_records.frame:
        return np.zeros(len(columns), dtype=np.intp)
    numbers = {stratum: i for i, stratum in enumerate(sorted({stratum for _, stratum in source.label_records.frame}))}
    strata = np.full(len(columns), -1, dtype=np.intp)
    for unit, stratum in source.label_records.frame:
        column = columns.get(read_trace_key(unit.parts))
        if column is not None:
            strata[column] = numbers[stratum]
    return strata
