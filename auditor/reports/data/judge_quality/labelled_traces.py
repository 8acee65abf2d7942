"""Traces with verdicts and, on a random sample of them, people's labels: the input of the figures of judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Ruling
from auditor.domain.labels import UNSURE
from auditor.metrics.intervals.jackknife_interval import Labels
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix, build_verdict_matrix
from auditor.reports.data.report_source import FloatArray, ReportSource, Units
from auditor.storage.votes import TraceKey

MIN_STRATUM_LABELS = 2
"""Fewest labels of a stratum for a variance; smaller strata of a part of the units are merged."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class LabelColumns:
    """The arguments that functions on labelled samples share, of some of the units; arrays have shape (units,).

    Attributes:
        rows: positions of these units among all.
        labels: people's, in [0, 1]; nan without a label.
        inclusion: probability of a labelled unit to be labelled; nan without a label.
        strata: numbers of strata, each with at least two labels where the part has as many.
        units: what the units are of, such as countries and topics, or items; empty where not needed.
    """

    rows: NDArray[np.intp]
    labels: FloatArray
    inclusion: FloatArray
    strata: NDArray[np.intp]
    units: Units

    @property
    def n(self) -> int:
        """Number of labelled units."""
        return int((~np.isnan(self.labels)).sum())


def select_columns(
    labels: FloatArray,
    inclusion: FloatArray,
    strata: NDArray[np.intp],
    is_selected: Bools,
    *,
    groups: NDArray[np.str_] | None = None,
    units: Labels | None = None,
) -> LabelColumns:
    """Select the sample within a part of the units.

    Labelling may stop early, so the probability of a label is the planned one times the share of the stratum's
    sample that is labelled. In a part of the units a stratum may have too few labels by chance. Such strata are
    merged, which keeps their weights; those of which no unit of the audit is labelled are not.

    Args:
        labels: shape (units,); nan without a label.
        inclusion: planned probability of each unit to be in the sample, shape (units,); nan where it is not.
        strata: number of each unit's stratum, shape (units,); -1 for a unit that could not be drawn.
        is_selected: shape (units,).
        groups: strata are divided by these, such as the models that are compared; shape (units,).
        units: labels of countries and topics, or items, shape (units,) each.
    """
    rows = np.nonzero(is_selected & (strata >= 0))[0]
    is_labelled = ~np.isnan(labels)
    rates = np.where(is_labelled, inclusion * _labelled_shares(labels, inclusion, strata), np.nan)
    group_index = np.zeros_like(strata) if groups is None else np.unique(groups, return_inverse=True)[1]
    merged = merge_small_strata(
        (group_index * (strata.max(initial=0) + 1) + strata)[rows],
        is_labelled[rows],
        np.isin(strata, strata[is_labelled])[rows],
    )
    selected_units = {unit: np.asarray(names)[rows].tolist() for unit, names in (units or {}).items()}
    return LabelColumns(rows, labels[rows], rates[rows], merged, selected_units)


def _labelled_shares(labels: FloatArray, inclusion: FloatArray, strata: NDArray[np.intp]) -> FloatArray:
    """Share of the sampled units of each unit's stratum that are labelled, shape (units,)."""
    n_strata = int(strata.max(initial=0)) + 1
    is_drawable = strata >= 0
    n_sampled = np.bincount(strata[is_drawable & ~np.isnan(inclusion)], minlength=n_strata)
    n_labelled = np.bincount(strata[is_drawable & ~np.isnan(labels)], minlength=n_strata)
    shares: FloatArray = (n_labelled / np.maximum(n_sampled, 1))[strata]
    return shares


def merge_small_strata(strata: NDArray[np.intp], is_labelled: Bools, may_merge: Bools) -> NDArray[np.intp]:
    """Merge strata that have fewer than two labels with the next ones; all arguments have shape (units,).

    Args:
        may_merge: whether each unit's stratum may be merged.
    """
    names, index = np.unique(strata, return_inverse=True)
    n_labels = np.bincount(index[is_labelled], minlength=len(names))
    n_units = np.bincount(index, minlength=len(names))
    mergeable = np.bincount(index[may_merge], minlength=len(names)) > 0
    merged, current, n_current = np.arange(len(names)), -1, 0
    last = -1
    for i in np.nonzero(mergeable)[0]:
        if current < 0:
            current, n_current = int(i), 0
        merged[i] = current
        n_current += int(n_labels[i])
        is_census = current == i and n_labels[i] == n_units[i]
        if n_current >= MIN_STRATUM_LABELS or is_census:
            last, current = current, -1
    if current >= 0 and last >= 0:
        merged[merged == current] = last
    return np.unique(merged[index], return_inverse=True)[1]


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
        return compute_valid_shares(self.matrix.unconditional_verdicts)

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


def compute_valid_shares(verdicts: FloatArray) -> FloatArray:
    """Share of VALID among the verdicts on each trace, shape (traces,), from (judges, traces); nan without any."""
    with np.errstate(invalid="ignore"):
        shares: FloatArray = np.nansum(verdicts, axis=0) / (~np.isnan(verdicts)).sum(axis=0)
    return shares


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
