"""Figures of single judges: leniency, length, own family, and errors that two judges make together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.judges.accuracy import length_association, length_bias_against_labels, leniency_against_labels
from auditor.metrics.judges.bias import exposure_effects, leniency
from auditor.metrics.judges.copying import PairErrors, compare_errors
from auditor.metrics.judges.panels import effective_judges
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import SIZES, Floats
from benchmarks.coverage.worlds.panel_worlds import LENIENT_JUDGE, N_JUDGES, PANEL_WORLDS, PanelSample
from benchmarks.coverage.worlds.trace_cells import TRACE_ITEM_DESIGNS


def _of_first_judge(compute: Callable[[PanelSample], Sequence[Estimate]]) -> Callable[[PanelSample], Interval]:
    """The interval of the first judge's row."""
    return lambda sample: to_interval(compute(sample)[LENIENT_JUDGE])


def exposures_to_own_family(sample: PanelSample) -> Floats:
    """Whether a trace was written by a model of the judge's family, shape (judges, traces)."""
    return np.asarray(sample.model[None, :] == np.arange(N_JUDGES)[:, None], dtype=np.float64)


@lru_cache(maxsize=1)
def _compare_errors(sample: PanelSample) -> list[PairErrors]:
    return compare_errors(sample.verdicts, sample.label, sample.units)


def _excess(sample: PanelSample) -> Interval:
    return to_interval(_compare_errors(sample)[0].excess)


def _max_excess_error(sample: PanelSample) -> float:
    """The largest error of the excess among all pairs, where the truth is 0 for all."""
    return max(abs(pair.excess.value or 0.0) for pair in _compare_errors(sample))


def _effective_number(sample: PanelSample) -> Interval:
    return to_interval(effective_judges(sample.verdicts, sample.label, sample.units).number)


def _naive_leniency(sample: PanelSample) -> Interval:
    """The first judge against the mean of the others, with Student's interval over traces."""
    return naive.student_interval(sample.verdicts[0] - sample.verdicts[1:].mean(axis=0))


def _naive_length(sample: PanelSample) -> Interval:
    verdicts, is_longer = sample.verdicts[0], sample.is_longer == 1
    return naive.welch_interval(verdicts[is_longer], verdicts[~is_longer])


JUDGE_FIGURES = (
    Figure(
        "leniency against the median judge",
        _of_first_judge(lambda s: leniency(s.verdicts, s.units)),
        _naive_leniency,
        "against the mean of the others, Student's over traces",
    ),
    Figure(
        "leniency against labels",
        _of_first_judge(lambda s: leniency_against_labels(s.verdicts, s.label, s.units)),
        lambda s: naive.student_interval(s.verdicts[0] - s.label),
        "Student's, over traces",
    ),
    Figure(
        "length association",
        _of_first_judge(lambda s: length_association(s.verdicts, s.is_longer, s.units)),
    ),
    Figure(
        "length bias against labels",
        _of_first_judge(lambda s: length_bias_against_labels(s.verdicts, s.label, s.is_longer, s.units)),
        _naive_length,
        "difference in VALID by length, quality not held fixed, Welch's over traces",
    ),
    Figure(
        "leniency with the judge's own family",
        _of_first_judge(lambda s: exposure_effects(s.verdicts, exposures_to_own_family(s), s.units)),
    ),
    Figure("error correlation beyond other pairs", _excess, max_error=_max_excess_error),
    Figure("effective number of judges", _effective_number),
)

JUDGE_STUDY = Study("judges", __name__, JUDGE_FIGURES, PANEL_WORLDS, SIZES)
ITEM_JUDGE_STUDY = Study("judges of items", __name__, JUDGE_FIGURES, PANEL_WORLDS, TRACE_ITEM_DESIGNS, n_unit_kinds=1)
