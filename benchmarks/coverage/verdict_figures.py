"""Figures of the panel: agreement of judges beyond chance, the share of VALID, and shares of a judge's verdicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from auditor.metrics.intervals.paired import pair_verdicts, paired_difference_over_units
from auditor.metrics.intervals.unit_means import share_over_units
from auditor.metrics.judges.agreement import (
    count_ratings,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    leave_one_rater_out,
)
from auditor.metrics.judges.consistency import compare_verdicts_over_units
from auditor.metrics.judges.votes import agreement_with_others
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Floats
from benchmarks.coverage.worlds.trace_cells import TRACE_ITEM_DESIGNS
from benchmarks.coverage.worlds.verdict_worlds import (
    GAUSSIAN_VERDICTS,
    RARELY_INVALID,
    VERDICT_WORLDS,
    VerdictSample,
)


def _kappa(sample: VerdictSample) -> Interval:
    return to_interval(fleiss_kappa(count_ratings(sample.verdicts), units=sample.units))


def _alpha(sample: VerdictSample) -> Interval:
    return to_interval(krippendorff_alpha(sample.verdicts, units=sample.units))


def _ac1(sample: VerdictSample) -> Interval:
    return to_interval(gwet_ac1(sample.verdicts, 2, units=sample.units))


def _alpha_without(sample: VerdictSample) -> Interval:
    return to_interval(krippendorff_alpha(sample.verdicts[1:], units=sample.units))


def _alpha_change(sample: VerdictSample) -> Interval:
    return to_interval(leave_one_rater_out(sample.verdicts, units=sample.units)[0].difference)


def _prevalence(sample: VerdictSample) -> Interval:
    n_verdicts = (~np.isnan(sample.verdicts)).sum(axis=0)
    share = share_over_units(
        np.nansum(sample.verdicts, axis=0), n_verdicts, sample.units, independent_cases=np.minimum(n_verdicts, 1)
    )
    return to_interval(share)


def _valid_share(sample: VerdictSample) -> Interval:
    verdicts = sample.verdicts[0]
    return to_interval(share_over_units(np.nan_to_num(verdicts), ~np.isnan(verdicts), sample.units))


def _agreement_with_others(sample: VerdictSample) -> Interval:
    return to_interval(agreement_with_others(sample.verdicts, units=sample.units)[0])


def _paired_difference(sample: VerdictSample) -> Interval:
    """The second judge's share of VALID minus the first's, as before and after a change of the traces."""
    first, second, *_ = sample.verdicts
    return to_interval(paired_difference_over_units(pair_verdicts(first, second, sample.units)))


def _agreement_of_two(sample: VerdictSample) -> Interval:
    first, second = (verdicts == 1 for verdicts in sample.verdicts[:2])
    is_paired = ~np.isnan(sample.verdicts[:2]).any(axis=0)
    outcomes = (first & second, ~first & second, first & ~second, ~first & ~second)
    counts = np.stack([outcome & is_paired for outcome in outcomes], axis=1)
    return to_interval(compare_verdicts_over_units(counts, sample.units).kappa)


def _naive_paired_difference(sample: VerdictSample) -> Interval:
    differences = sample.verdicts[1] - sample.verdicts[0]
    return naive.student_interval(differences[~np.isnan(differences)])


def _counts(sample: VerdictSample) -> Floats:
    """Numbers of INVALID and of VALID verdicts of each trace with at least two, shape (traces, 2)."""
    counts = np.stack([(sample.verdicts == 0).sum(axis=0), (sample.verdicts == 1).sum(axis=0)], axis=1)
    return np.asarray(counts[counts.sum(axis=1) >= 2], dtype=np.float64)


def _bootstrap_over_traces(coefficient: Callable[[Floats, Floats], Floats]) -> Callable[[Any], Interval]:
    """The interval of a coefficient of agreement that resamples traces."""

    def compute(sample: VerdictSample) -> Interval:
        with np.errstate(invalid="ignore"):  # bootstrap samples with one verdict only have no kappa
            return naive.bootstrap_over_rows(_counts(sample), coefficient, np.random.default_rng(0))

    return compute


def _wilson_of_agreement(sample: VerdictSample) -> Interval:
    votes = np.nan_to_num(2 * sample.verdicts - 1)
    majority = np.sign(votes[1:].sum(axis=0))
    is_decided = (majority != 0) & (votes[0] != 0)
    return naive.wilson_interval(float((votes[0] == majority)[is_decided].sum()), float(is_decided.sum()))


def _wilson_of_verdicts(sample: VerdictSample, judges: slice) -> Interval:
    verdicts = sample.verdicts[judges]
    return naive.wilson_interval(float(np.nansum(verdicts)), float((~np.isnan(verdicts)).sum()))


VERDICT_FIGURES = (
    Figure("kappa", _kappa, _bootstrap_over_traces(naive.kappa_of_counts), "bootstrap over traces"),
    Figure("alpha", _alpha, _bootstrap_over_traces(naive.kappa_of_counts), "bootstrap over traces"),
    Figure("ac1", _ac1, _bootstrap_over_traces(naive.ac1_of_counts), "bootstrap over traces"),
    Figure("alpha without a judge", _alpha_without),
    Figure("alpha change", _alpha_change),
    Figure("prevalence", _prevalence, lambda s: _wilson_of_verdicts(s, slice(None)), "Wilson's, over verdicts"),
    Figure("valid share of a judge", _valid_share, lambda s: _wilson_of_verdicts(s, slice(1)), "Wilson's, over traces"),
    Figure("agreement with the others", _agreement_with_others, _wilson_of_agreement, "Wilson's, over traces"),
    Figure("paired difference of verdicts", _paired_difference, _naive_paired_difference, "Student's, over traces"),
    Figure("agreement of two series of verdicts", _agreement_of_two),
)

VERDICT_STUDY = Study("verdicts", __name__, VERDICT_FIGURES, VERDICT_WORLDS)
ITEM_VERDICT_STUDY = Study(
    "verdicts on items",
    __name__,
    VERDICT_FIGURES,
    (GAUSSIAN_VERDICTS, RARELY_INVALID),
    TRACE_ITEM_DESIGNS,
    n_unit_kinds=1,
)
