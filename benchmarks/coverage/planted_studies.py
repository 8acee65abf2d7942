"""The methods that are to name the judges with a planted fault, and faults of growing size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np
from scipy.stats import pearsonr

from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.judges.accuracy import JudgeDifference, length_bias_against_labels, leniency_against_labels
from auditor.metrics.judges.agreement import leave_one_rater_out
from auditor.metrics.judges.bias import exposure_effects, leniency
from auditor.metrics.judges.consistency import consistency_weights, measure_consistency
from auditor.metrics.judges.copying import compare_errors
from benchmarks.coverage import naive
from benchmarks.coverage.judge_figures import exposures_to_own_family
from benchmarks.coverage.planted import PlantedStudy, Scenario
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.set_figures import to_judge_answers
from benchmarks.coverage.worlds.panel_worlds import N_JUDGES, PanelSample, Plant, draw_panel
from benchmarks.coverage.worlds.preference_worlds import Comparisons, Fault, SetDesign, draw_panel_comparisons

FAULTS: tuple[Fault, ...] = ("always TIE", "constant", "random")
"""Judges that compare without looking. Version 0.1 did notice the one that always names the first item."""


def name_lenient(sample: PanelSample) -> set[int]:
    """Judges that differ from the median judge, adjusted for all judges and for the test of the own family."""
    units = sample.units
    tests = [
        *leniency(sample.verdicts, units),
        *exposure_effects(sample.verdicts, exposures_to_own_family(sample), units),
    ]
    return _significant(tests)


def name_lenient_by_labels(sample: PanelSample) -> set[int]:
    """Judges that differ from the labels."""
    return _significant(leniency_against_labels(sample.verdicts, sample.label, sample.units))


def name_verbose(sample: PanelSample) -> set[int]:
    """Judges that say VALID more often on longer traces than the labels do."""
    return _significant(length_bias_against_labels(sample.verdicts, sample.label, sample.is_longer, sample.units))


def name_copying(sample: PanelSample) -> set[int]:
    """Judges of pairs that err together more often than the other pairs."""
    pairs = compare_errors(sample.verdicts, sample.label, sample.units)
    return {judge for pair in pairs if pair.is_more_alike for judge in (pair.first, pair.second)}


def name_lenient_or_copying(sample: PanelSample) -> set[int]:
    """Judges that are named for either fault."""
    return name_lenient(sample) | name_copying(sample)


def name_disagreeing(sample: PanelSample) -> set[int]:
    """Judges without which the others agree better."""
    changes = adjust_tests(
        (rater.difference for rater in leave_one_rater_out(sample.verdicts, units=sample.units)), "a"
    )
    return {i for i, change in enumerate(changes) if change.is_significant and (change.value or 0.0) > 0}


def _significant(tests: Sequence[JudgeDifference]) -> set[int]:
    """The judges of significant tests; the tests come in rounds of one for each judge."""
    return {i % N_JUDGES for i, test in enumerate(adjust_tests(tests, "bias")) if test.is_significant}


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
        if pearsonr(errors[pair[0]], errors[pair[1]]).pvalue < SIGNIFICANCE_LEVEL / 10
        for judge in pair
    }


def name_inconsistent(panel: Sequence[Sequence[Comparisons]]) -> set[int]:
    """Judges whose vote, weighted by consistency, counts less than a quarter of the largest."""
    measures = {str(i): measure_consistency(to_judge_answers(sets), 3, 200, 0) for i, sets in enumerate(panel)}
    weights = {int(name): row.weight for name, row in consistency_weights(measures).items()}
    return {judge for judge, weight in weights.items() if weight < max(weights.values()) / 4}


def naively_name_inconsistent(panel: Sequence[Sequence[Comparisons]]) -> set[int]:
    """The same, by the share of pairs that are not contradicted in the other order; ties contradict nothing."""
    shares = []
    for sets in panel:
        tables = [answers.preferences for answers in sets]
        agrees = [((table == 0.5) | (table + table.T == 1))[~np.eye(len(table), dtype=bool)] for table in tables]
        shares.append(float(np.concatenate(agrees).mean()))
    return {judge for judge, share in enumerate(shares) if share < max(shares) / 4}


def _panels(plants: Mapping[str, Plant]) -> dict[str, Scenario]:
    """Scenarios of panels that rule on traces."""
    return {name: Scenario(partial(draw_panel, plant), plant.planted) for name, plant in plants.items()}


def _draw_comparisons(fault: Fault, design: SetDesign, rng: np.random.Generator) -> list[list[Comparisons]]:
    return draw_panel_comparisons(fault, design.n_sets, rng)


def _comparing_panels(faults: Sequence[Fault]) -> dict[str, Scenario]:
    """Scenarios of panels that compare items; without a fault first."""
    return {
        fault: Scenario(
            partial(_draw_comparisons, fault),
            frozenset() if fault == "none" else frozenset({0}),
        )
        for fault in ("none", *faults)
    }


LENIENT = _panels(
    {f"{100 * size:.0f} points": Plant(leniency=size, level=0.2) for size in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)}
)
COPYING = _panels(
    {
        f"{n} of 5 copy {share:.0%} of the verdicts": Plant(n_copying=n, copied_share=share)
        for n in (2, 3)
        for share in (0.0, 0.3, 0.5, 0.7, 1.0)
    }
)
PLANTED_STUDIES = (
    PlantedStudy("a lenient judge, named from verdicts", __name__, LENIENT, name_lenient, naively_name_lenient),
    PlantedStudy("a lenient judge, named by labels", __name__, LENIENT, name_lenient_by_labels, naively_name_lenient),
    PlantedStudy(
        "a lenient judge where INVALID is rare",
        __name__,
        _panels({f"{100 * size:.0f} points": Plant(leniency=size, level=2.2) for size in (0.0, 0.02, 0.04, 0.06)}),
        name_lenient,
        naively_name_lenient,
    ),
    PlantedStudy(
        "a judge that prefers length, which is no quality",
        __name__,
        _panels({f"{100 * size:.0f} points": Plant(verbosity=size) for size in (0.0, 0.05, 0.1, 0.2)}),
        name_verbose,
        naively_name_verbose,
    ),
    PlantedStudy(
        "a judge that prefers length, where longer traces are better",
        __name__,
        _panels(
            {
                f"{100 * size:.0f} points": Plant(verbosity=size, quality_of_length=0.6)
                for size in (0.0, 0.05, 0.1, 0.2, 0.3)
            }
        ),
        name_verbose,
        naively_name_verbose,
    ),
    PlantedStudy("judges that copy", __name__, COPYING, name_copying, naively_name_copying),
    PlantedStudy(
        "a lenient judge, and others that copy",
        __name__,
        _panels(
            {
                f"{n} of 5 copy, {100 * size:.0f} points": Plant(
                    leniency=size, n_copying=n, copied_share=1.0, level=0.2
                )
                for size in (0.1, 0.3)
                for n in (2, 3)
            }
        ),
        name_lenient_or_copying,
    ),
    PlantedStudy(
        "a judge that says VALID without looking",
        __name__,
        _panels({f"{share:.0%} of traces": Plant(constant_share=share) for share in (0.0, 0.2, 0.5, 1.0)}),
        name_lenient,
        naively_name_lenient,
    ),
    PlantedStudy(
        "a judge that tosses a coin",
        __name__,
        _panels(
            {
                f"{share:.0%} of traces": Plant(random_share=share, has_equal_judges=True)
                for share in (0.0, 0.2, 0.5, 1.0)
            }
        ),
        name_disagreeing,
    ),
    PlantedStudy(
        "a judge that refuses unsound traces, which is no leniency",
        __name__,
        _panels({f"slope {slope:g}": Plant(refusal_slope=slope, level=0.2) for slope in (0.0, 1.0, 2.0)}),
        name_lenient,
        naively_name_lenient,
    ),
    *(
        PlantedStudy(
            f"a judge that compares without looking: {fault}",
            __name__,
            _comparing_panels([fault]),
            name_inconsistent,
            None if fault == "constant" else naively_name_inconsistent,
            designs=(SetDesign(3, 8), SetDesign(10, 8)),
        )
        for fault in FAULTS
    ),
)
