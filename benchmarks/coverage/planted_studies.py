"""The methods that are to name the judges with a planted fault, and faults of growing size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.stats import pearsonr

from auditor.metrics.agreement import leave_one_rater_out
from auditor.metrics.judge_bias import exposure_effects, leniency
from auditor.metrics.judge_copying import compare_errors
from auditor.metrics.judge_difference import JudgeDifference, adjust_p_values
from auditor.metrics.label_difference import length_bias_against_labels, leniency_against_labels
from auditor.metrics.multiple_testing import holm
from benchmarks.coverage import naive
from benchmarks.coverage.judge_figures import exposures_to_own_family, panel_units
from benchmarks.coverage.planted import PlantedStudy
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.panel_worlds import N_JUDGES, PanelSample, Plant


def name_lenient(sample: PanelSample) -> set[int]:
    """Judges that differ from the median judge, adjusted for all judges and for the test of the own family."""
    units = panel_units(sample)
    tests = [
        *leniency(sample.verdicts, units),
        *exposure_effects(sample.verdicts, exposures_to_own_family(sample), units),
    ]
    return _significant(tests)


def name_lenient_by_labels(sample: PanelSample) -> set[int]:
    """Judges that differ from the labels."""
    return _significant(leniency_against_labels(sample.verdicts, sample.label, panel_units(sample)))


def name_verbose(sample: PanelSample) -> set[int]:
    """Judges that say VALID more often on longer traces than the labels do."""
    return _significant(
        length_bias_against_labels(sample.verdicts, sample.label, sample.is_longer, panel_units(sample))
    )


def name_copying(sample: PanelSample) -> set[int]:
    """Judges of pairs that err together more often than the other pairs."""
    pairs = compare_errors(sample.verdicts, sample.label, panel_units(sample))
    return {judge for pair in pairs if pair.is_copying for judge in (pair.first, pair.second)}


def name_lenient_or_copying(sample: PanelSample) -> set[int]:
    """Judges that are named for either fault."""
    return name_lenient(sample) | name_copying(sample)


def name_disagreeing(sample: PanelSample) -> set[int]:
    """Judges without which the others agree better."""
    rows = leave_one_rater_out(sample.verdicts, units=panel_units(sample))
    adjusted = holm([np.nan if row.p_value is None else row.p_value for row in rows])
    return {i for i, row in enumerate(rows) if adjusted[i] < 0.05 and (row.difference.value or 0.0) > 0}


def _significant(tests: Sequence[JudgeDifference]) -> set[int]:
    """The judges of significant tests; the tests come in rounds of one for each judge."""
    return {i % N_JUDGES for i, test in enumerate(adjust_p_values(tests)) if test.is_significant}


def _excludes_zero(interval: Interval) -> bool:
    return (interval[1] or 0.0) > 0 or (interval[2] or 0.0) < 0


def naively_name_lenient(sample: PanelSample) -> set[int]:
    """Judges that differ from the mean of the others, by Student's interval over traces."""
    named = set()
    for judge in range(N_JUDGES):
        differences = sample.verdicts[judge] - np.nanmean(np.delete(sample.verdicts, judge, axis=0), axis=0)
        if _excludes_zero(naive.student_interval(differences[~np.isnan(differences)])):
            named.add(judge)
    return named


def naively_name_verbose(sample: PanelSample) -> set[int]:
    """Judges whose share of VALID differs by length, by Welch's interval over traces."""
    is_longer = sample.is_longer == 1
    return {
        judge
        for judge, verdicts in enumerate(sample.verdicts)
        if _excludes_zero(naive.welch_interval(verdicts[is_longer], verdicts[~is_longer]))
    }


def naively_name_copying(sample: PanelSample) -> set[int]:
    """Judges of pairs whose errors are correlated, by a test that takes traces for independent."""
    errors = sample.verdicts != sample.label
    return {
        judge
        for pair in combinations(range(N_JUDGES), 2)
        if pearsonr(errors[pair[0]], errors[pair[1]]).pvalue < 0.05 / 10
        for judge in pair
    }


COPYING_RUNS = 150
"""Comparing the errors of all pairs takes long."""
LENIENT = {f"{100 * size:.0f} points": Plant(leniency=size, level=0.2) for size in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)}
COPYING = {
    f"{n} of 5 copy {share:.0%} of the verdicts": Plant(n_copying=n, copied_share=share)
    for n in (2, 3)
    for share in (0.0, 0.3, 0.5, 0.7, 1.0)
}
PLANTED_STUDIES = (
    PlantedStudy("a lenient judge, named from verdicts", __name__, LENIENT, name_lenient, naively_name_lenient),
    PlantedStudy("a lenient judge, named by labels", __name__, LENIENT, name_lenient_by_labels, naively_name_lenient),
    PlantedStudy(
        "a lenient judge where INVALID is rare",
        __name__,
        {f"{100 * size:.1f} points": Plant(leniency=size, level=2.2) for size in (0.0, 0.02, 0.04, 0.06)},
        name_lenient,
        naively_name_lenient,
    ),
    PlantedStudy(
        "a judge that prefers length, which is no quality",
        __name__,
        {f"{100 * size:.0f} points": Plant(verbosity=size) for size in (0.0, 0.05, 0.1, 0.2)},
        name_verbose,
        naively_name_verbose,
    ),
    PlantedStudy(
        "a judge that prefers length, where longer traces are better",
        __name__,
        {
            f"{100 * size:.0f} points": Plant(verbosity=size, quality_of_length=0.6)
            for size in (0.0, 0.05, 0.1, 0.2, 0.3)
        },
        name_verbose,
        naively_name_verbose,
    ),
    PlantedStudy("judges that copy", __name__, COPYING, name_copying, naively_name_copying, n_runs=COPYING_RUNS),
    PlantedStudy(
        "a lenient judge, and others that copy",
        __name__,
        {
            f"{n} of 5 copy, {100 * size:.0f} points": Plant(leniency=size, n_copying=n, copied_share=1.0, level=0.2)
            for n in (2, 3)
            for size in (0.1, 0.3)
        },
        name_lenient_or_copying,
    ),
    PlantedStudy(
        "a judge that says VALID without looking",
        __name__,
        {f"{share:.0%} of traces": Plant(constant_share=share) for share in (0.0, 0.2, 0.5, 1.0)},
        name_lenient,
        naively_name_lenient,
    ),
    PlantedStudy(
        "a judge that tosses a coin",
        __name__,
        {f"{share:.0%} of traces": Plant(random_share=share) for share in (0.0, 0.2, 0.5, 1.0)},
        name_disagreeing,
    ),
    PlantedStudy(
        "a judge that refuses unsound traces, which is no leniency",
        __name__,
        {f"slope {slope:g}": Plant(refusal_slope=slope, level=0.2) for slope in (0.0, 1.0, 2.0)},
        name_lenient,
        naively_name_lenient,
    ),
)
