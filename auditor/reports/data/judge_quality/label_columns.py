"""A labelled random sample, or a part of it, as functions on stratified samples take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.reports.data.report_source import FloatArray
from auditor.reports.data.sampling_units import Units

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
    units: Mapping[str, Sequence[str]] | None = None,
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
