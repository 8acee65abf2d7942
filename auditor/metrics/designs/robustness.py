"""How much scores depend on choices of an audit's design, such as the wording or the direction of the scale.

Every model is asked in all runs of a design, but each cell in some of them only; runs are compared within cells
(`designs.run_effects`). Chosen levels are fixed: an interval is over other countries and topics. Differences
between levels vary little between countries and topics, so their variance is the larger of those over countries (or
topics) and over cells, not the sum with half of the cells' variance: V = max(V_country, V_cell) + max(V_topic, V_cell)
- V_cell, with Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946), at least those of the fewest units.
Where the design does not separate a difference from two factors together, their variance is added
(`LevelContrasts.confounded_variance`), so that what they do is not blamed on single factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.designs.run_effects import LevelContrasts, RunMeans, add_wording_variance, fit_run_means
from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL, UPPER_QUANTILE, Floats, bonferroni_level
from auditor.metrics.intervals.jackknife_interval import (
    CONSTANT_REASON,
    IDENTITY,
    LOG,
    JackknifeInterval,
    too_few_reason,
)
from auditor.metrics.intervals.multiple_testing import adjust_tests, holm
from auditor.metrics.intervals.special_functions import ndtr, stdtr, stdtrit
from auditor.metrics.intervals.two_way import UnitLabels, jackknife_sums, paired_jackknife
from auditor.metrics.people.alignment import BIAS, MAE, Statistic, TwoWayEstimate

ErrorKind: TypeAlias = Literal["mae", "bias"]
"""Mean of absolute errors, or of signed ones."""
SEPARATION_REASON = "the runs with usable answers do not separate these levels"
NO_REGION_REASON = "fewer than two regions have answers in all designs"


@dataclass(frozen=True, slots=True)
class DesignRun:
    """One combination of choices with which all models are asked.

    Attributes:
        number: from 0, the run with the audit's settings.
        levels: the level of each factor, such as `{"wording": "2", "direction": "low first"}`; all runs of a design
            have the same factors, in one order.
    """

    number: int
    levels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DesignScore:
    """The score of a model in a cell that was asked in a run.

    Attributes:
        model, country, topic: the cell, and whose score it is.
        run: `number` of the run.
        score: mean over the usable samples, from -1 to 1; None without one.
        reference: people's score of the cell.
        outcome: of the answer: `ok`, or why there is no score, such as `refused`.
    """

    model: str
    run: int
    country: str
    topic: str
    score: float | None
    reference: float
    outcome: str = "ok"


class LevelPair(NamedTuple):
    """Two levels of a factor; a difference is that of the second minus the first."""

    factor: str
    first: str
    second: str


class ChangedCell(NamedTuple):
    """A cell in which the scores of a model differ most between runs; `low_run` and `high_run` are their numbers."""

    model: str
    country: str
    topic: str
    low_run: int
    high_run: int
    low_score: float
    high_score: float


@dataclass(frozen=True, slots=True)
class LevelDifference:
    """Mean error of a model with one level of a factor minus that with another, all other factors being equal.

    Attributes:
        estimate: its interval holds for all models and pairs of levels together (Bonferroni), and its adjusted p-value
            is for all of them (Holm).
    """

    model: str
    pair: LevelPair
    estimate: TwoWayEstimate


@dataclass(frozen=True, slots=True)
class RankingTest:
    """Whether the difference in MAE between two models depends on a factor.

    Attributes:
        pair: the two levels between which the difference changes most clearly.
        estimate: of the difference between models (first minus second) at the second level minus that at the first. Its
            p-value counts all pairs of levels of the factor (Bonferroni); the adjusted one all tests (Holm).
        at_first, at_second: the difference between the models at each level; below 0 where the first is closer to
            people.
        order_p_value: of no opposite orders, that is, of the less clear of the two differences (intersection-union
            test, one-sided); 1 where both have the same sign. It counts all pairs of levels of the factor, and is
            adjusted for all tests in which the difference is shown to depend on the level (Holm). None without a test.
    """

    first: str
    second: str
    pair: LevelPair
    estimate: TwoWayEstimate
    at_first: float | None
    at_second: float | None
    order_p_value: float | None = None

    @property
    def is_change(self) -> bool:
        """Whether the ranking is shown to change: each of the models is shown to be closer to people at one level."""
        is_shown = self.order_p_value is not None and self.order_p_value <= SIGNIFICANCE_LEVEL
        return is_shown and self.estimate.is_significant


class DesignCount(NamedTuple):
    """In how many designs the first of two models is closer to people.

    Attributes:
        designs: in which both models have answers.
        expected: the count that sampling alone would give, with the mean difference in every design.
    """

    better: int
    designs: int
    expected: float


@dataclass(frozen=True, eq=False)
class DesignTable:
    """Scores of all models in the runs of a design.

    Attributes:
        scores: shape (models, cells, runs), nan where there is none.
        truth: people's scores, shape (cells,).
        countries: of each cell, by name.
        units: what intervals resample in the place of countries, shape (cells,).
    """

    runs: tuple[DesignRun, ...]
    models: tuple[str, ...]
    countries: NDArray[np.str_]
    topics: NDArray[np.str_]
    units: UnitLabels
    scores: Floats
    truth: Floats

    @classmethod
    def from_scores(
        cls, runs: Sequence[DesignRun], scores: Sequence[DesignScore], units: Mapping[str, str] | None = None
    ) -> DesignTable:
        """Arrange scores as a table.

        Args:
            runs: at least two, with distinct numbers.
            scores: of all models; combinations that were not asked are absent, those without a usable answer have no
                score. The last one of several for one combination counts.
            units: the cultural zone of each country, where intervals are to cluster countries by zone.

        Raises:
            ValueError: runs with different factors or equal numbers, or a score of an unknown run.
        """
        position = {run.number: i for i, run in enumerate(runs)}
        if len(runs) < 2 or len(position) < len(runs):
            raise ValueError("a design needs at least two runs, with distinct numbers")
        if any(list(run.levels) != list(runs[0].levels) for run in runs):
            raise ValueError("all runs of a design must have the same factors in one order")
        if unknown := {score.run for score in scores} - set(position):
            raise ValueError(f"there are scores of runs that the design does not have: {sorted(unknown)}")
        models = {name: i for i, name in enumerate(dict.fromkeys(score.model for score in scores))}
        references = {(score.country, score.topic): score.reference for score in scores}
        cells = {cell: i for i, cell in enumerate(references)}
        table = np.full((len(models), len(cells), len(runs)), np.nan)
        for score in scores:
            if score.score is not None:
                table[models[score.model], cells[score.country, score.topic], position[score.run]] = score.score
        countries, topics = (np.array([cell[side] for cell in cells], dtype=np.str_) for side in (0, 1))
        labels = UnitLabels(countries)
        if units is not None:
            labels = UnitLabels(np.array([units.get(str(name), str(name)) for name in countries]), "zone")
        truth = np.array(list(references.values()), dtype=np.float64)
        return cls(tuple(runs), tuple(models), countries, topics, labels, table, truth)

    @cached_property
    def level_contrasts(self) -> LevelContrasts:
        """Weights of the runs in differences between levels."""
        return LevelContrasts.from_levels([run.levels for run in self.runs])

    def pairs(self, *, without: Sequence[str] = ()) -> list[LevelPair]:
        """Every two levels of a factor, but for the factors to leave out."""
        return [
            LevelPair(factor, first, second)
            for factor, levels in self.level_contrasts.factors.items()
            if factor not in without
            for first, second in combinations(levels, 2)
        ]

    def errors(self, model: int, kind: ErrorKind) -> Floats:
        """Errors of one model, shape (cells, runs)."""
        signed = self.scores[model] - self.truth[:, None]
        errors: Floats = np.abs(signed) if kind == "mae" else signed
        return errors

    def run_means(self, model: int, kind: ErrorKind) -> RunMeans | None:
        """Mean errors of a model in each run over all cells (see `fit_run_means`)."""
        if (model, kind) not in self._run_means:
            self._run_means[model, kind] = fit_run_means(self.errors(model, kind))
        return self._run_means[model, kind]

    @cached_property
    def _run_means(self) -> dict[tuple[int, ErrorKind], RunMeans | None]:
        """Fits of `run_means`."""
        return {}


def estimate_contrast(
    by_cell: Floats,
    units: UnitLabels,
    topics: NDArray[np.generic],
    is_second: NDArray[np.bool_] | None = None,
    confounded: tuple[float, int] = (0.0, 0),
) -> TwoWayEstimate:
    """The mean of cell values, such as a difference between two levels, with its interval and test of 0.

    Args:
        by_cell, units, topics: shape (cells,).
        is_second: the cells of a second group of countries, whose mean is subtracted from that of the first group.
        confounded: a further variance and its degrees of freedom (see `LevelContrasts.confounded_variance`).

    Returns:
        No interval, with a reason, for fewer than 5 countries (of each group) or topics.
    """
    groups = [np.ones(len(by_cell), dtype=np.bool_)] if is_second is None else [~is_second, is_second]
    names = np.asarray(units)
    n_countries = [len(np.unique(names[group])) for group in groups]
    topic_index = np.unique(topics, return_inverse=True)[1]
    n_topics = int(topic_index.max(initial=-1)) + 1
    value = float(by_cell[groups[0]].mean()) - (float(by_cell[groups[1]].mean()) if len(groups) > 1 else 0.0)
    if (reason := too_few_reason({units.unit: n_countries, "topic": [n_topics]})) is not None:
        return TwoWayEstimate(value, len(by_cell), reason=reason)
    parts, by_topic, of_cells = [], np.zeros(n_topics), 0.0
    for sign, group in zip((1, -1), groups, strict=False):
        n = int(group.sum())
        share = sign * (by_cell[group] - by_cell[group].mean()) / n
        totals = np.bincount(np.unique(names[group], return_inverse=True)[1], share)
        parts.append((float(len(totals) / (len(totals) - 1) * (totals**2).sum()), len(totals) - 1))
        by_topic += np.bincount(topic_index[group], share, minlength=n_topics)
        of_cells += float(n / (n - 1) * (share**2).sum())
    of_topics = (float(n_topics / (n_topics - 1) * (by_topic**2).sum()), n_topics - 1)
    variance, df = _combine(parts, of_topics, (of_cells, len(by_cell) - len(groups)), units.unit == "country")
    if variance <= 1e-24:
        return TwoWayEstimate(value, len(by_cell), reason=CONSTANT_REASON)
    if confounded[0] > 0:
        spread = variance**2 / df + confounded[0] ** 2 / confounded[1]
        variance += confounded[0]
        df = max(1, int(variance**2 / spread))
    return _to_estimate(value, len(by_cell), variance**0.5, df, (units.unit, "topic"))


def _combine(
    countries: Sequence[tuple[float, int]], topics: tuple[float, int], cells: tuple[float, int], has_cells: bool
) -> tuple[float, int]:
    """Variance and degrees of freedom, from those over countries (by group), topics and cells; zones have no cells."""
    of_countries, fewest = sum(part for part, _ in countries), min(df for _, df in (*countries, topics))
    if not has_cells:
        return of_countries + topics[0], fewest
    variance = max(of_countries, cells[0]) + max(topics[0], cells[0]) - cells[0]
    larger = [*(countries if of_countries > cells[0] else ()), *([topics] if topics[0] > cells[0] else [])] or [cells]
    spread = sum(part**2 / df for part, df in larger)
    return variance, max(fewest, int(variance**2 / spread)) if spread > 0 else fewest


def _to_estimate(value: float, n: int, std_error: float, df: int, resampled: tuple[str, ...]) -> TwoWayEstimate:
    """An estimate with Student's interval and test."""

    def compute_ends(quantile: float) -> tuple[float, float]:
        return value - quantile * std_error, value + quantile * std_error

    low, high = compute_ends(float(stdtrit(df, UPPER_QUANTILE)))
    p_value = float(2 * stdtr(df, -abs(value) / std_error))
    interval = JackknifeInterval(low, high, value, std_error, df, p_value, ends_at=compute_ends)
    return TwoWayEstimate(value, n, low, high, resampled=resampled, p_value=p_value, interval=interval)


def compare_all_levels(
    table: DesignTable,
    kind: ErrorKind,
    random_factors: Sequence[str] = (),
    regions: Mapping[str, str] | None = None,
) -> list[LevelDifference]:
    """Differences between all pairs of levels, of all models, with intervals that hold together.

    Args:
        random_factors: factors whose levels are not compared.
        regions: the region of each country, to compare gaps between regions (see `RegionGap`) instead of means.
    """
    estimates, places = [], []
    for model, name in enumerate(table.models):
        gap = None if regions is None else RegionGap(table, model, kind, regions)
        for pair in table.pairs(without=random_factors):
            estimates.append(compare_levels(table, model, kind, pair) if gap is None else gap.compare_levels(pair))
            places.append((name, pair))
    n_intervals = sum(estimate.ci_low is not None for estimate in estimates)
    level, family = (
        bonferroni_level(max(1, n_intervals)),
        f"levels of the design, {'' if regions is None else 'gap in '}{kind}",
    )
    return [
        LevelDifference(name, pair, estimate.at_level(level))
        for (name, pair), estimate in zip(places, adjust_tests(estimates, family), strict=True)
    ]


def compare_rankings(table: DesignTable) -> list[RankingTest]:
    """Test for every two models and every factor whether their difference in MAE depends on the factor."""
    tests = []
    for first, second in combinations(range(len(table.models)), 2):
        models = ModelPair(table, first, second)
        for factor in table.level_contrasts.factors:
            pairs = [pair for pair in table.pairs() if pair.factor == factor]
            estimates = [models.compare_levels(pair) for pair in pairs]
            chosen = min(range(len(pairs)), key=lambda i: 2.0 if (p := estimates[i].p_value) is None else p)
            p_value = estimates[chosen].p_value
            estimate = replace(
                estimates[chosen].at_level(bonferroni_level(len(pairs))),
                p_value=None if p_value is None else min(1.0, p_value * len(pairs)),
            )
            pair = pairs[chosen]
            levels = [models.at_level(factor, level) for level in (pair.first, pair.second)]
            order = _test_order(levels)
            names = (table.models[first], table.models[second])
            order_p_value = None if order is None else min(1.0, order * len(pairs))
            tests.append(RankingTest(*names, pair, estimate, levels[0].value, levels[1].value, order_p_value))
    adjusted = adjust_tests([test.estimate for test in tests], "models and factors of the design")
    tests = [replace(test, estimate=estimate) for test, estimate in zip(tests, adjusted, strict=True)]
    dependent = [i for i, test in enumerate(tests) if test.estimate.is_significant and test.order_p_value is not None]
    for i, p_value in zip(dependent, holm([tests[i].order_p_value or 0.0 for i in dependent]), strict=True):
        tests[i] = replace(tests[i], order_p_value=float(p_value))
    return tests


def _test_order(levels: Sequence[TwoWayEstimate]) -> float | None:
    """P-value of no opposite orders of two models at two levels; None where a level has no test."""
    values, p_values = [level.value for level in levels], [level.p_value for level in levels]
    if None in values or None in p_values:
        return None
    is_opposite = (values[0] or 0.0) * (values[1] or 0.0) < 0
    return max(p_value or 0.0 for p_value in p_values) / 2 if is_opposite else 1.0


def compare_levels(table: DesignTable, model: int, kind: ErrorKind, pair: LevelPair) -> TwoWayEstimate:
    """Mean error of a model with the second level minus that with the first, all other factors being equal."""
    means = table.run_means(model, kind)
    weights = None if means is None else table.level_contrasts.difference(*pair, means.is_run)
    if means is None or weights is None:
        return TwoWayEstimate(None, 0, reason=SEPARATION_REASON)
    return _estimate_contrast(table, means, weights)


def _estimate_contrast(table: DesignTable, means: RunMeans, weights: Floats) -> TwoWayEstimate:
    """A contrast of levels of all cells."""
    confounded = table.level_contrasts.confounded_variance(weights, [means])
    units, topics = table.units[means.is_used], table.topics[means.is_used]
    return estimate_contrast(means.by_cell @ weights, units, topics, confounded=confounded)


def compare_level_correlations(table: DesignTable, model: int, statistic: Statistic, pair: LevelPair) -> TwoWayEstimate:
    """A correlation with people at the second level minus that at the first, over cells that both were asked.

    Args:
        statistic: PEARSON or CONCORDANCE; of the mean over the runs of a level in each cell.
    """
    levels = table.level_contrasts.levels[pair.factor]
    sides = []
    for level in (pair.first, pair.second):
        scores = table.scores[model][:, [other == level for other in levels]]
        counts = (~np.isnan(scores)).sum(axis=1)
        sides.append(np.where(counts > 0, np.nansum(scores, axis=1) / np.maximum(counts, 1), np.nan))
    return paired_jackknife(statistic, sides[1], sides[0], table.truth, table.units, table.topics)


class RegionGap:
    """Difference of a model's mean error between two regions, and how it depends on levels.

    The regions are those with the largest difference over all designs. A difference between levels is nearly
    independent of that choice.

    Attributes:
        high, low: names of the regions; None where fewer than two can be compared.
    """

    def __init__(self, table: DesignTable, model: int, kind: ErrorKind, regions: Mapping[str, str]) -> None:
        """Choose the regions, of those with at least 5 countries if there are two."""
        self.table, self.high, self.low = table, None, None
        labels = np.array([regions.get(str(country), "") for country in table.countries])
        errors = table.errors(model, kind)
        fits: dict[str, tuple[float, NDArray[np.bool_], RunMeans]] = {}
        sizes = {
            str(region): len(np.unique(table.countries[labels == region])) for region in np.unique(labels) if region
        }
        large = [region for region, size in sizes.items() if size >= 5]
        for region in large if len(large) > 1 else list(sizes):
            is_in = labels == region
            means = fit_run_means(errors[is_in])
            weights = None if means is None else table.level_contrasts.average(means.is_run)
            if means is not None and weights is not None:
                fits[region] = (float(means.means @ weights), is_in, means)
        if len(fits) > 1:
            by_value = sorted(fits, key=lambda name: fits[name][0])
            self.low, self.high = by_value[0], by_value[-1]
            self._sides = [fits[self.high], fits[self.low]]

    def compare_levels(self, pair: LevelPair) -> TwoWayEstimate:
        """The gap with the second level minus that with the first."""
        if self.high is None:
            return TwoWayEstimate(None, 0, reason=NO_REGION_REASON)
        values, names, topics, is_second = [], [], [], []
        confounded = (0.0, 0)
        fits = [side[2] for side in self._sides]
        for i, (_, is_in, means) in enumerate(self._sides):
            weights = self.table.level_contrasts.difference(*pair, means.is_run)
            if weights is None:
                return TwoWayEstimate(None, 0, reason=SEPARATION_REASON)
            confounded = self.table.level_contrasts.confounded_variance(weights, fits)
            values.append(means.by_cell @ weights)
            names.append(np.asarray(self.table.units)[is_in][means.is_used])
            topics.append(self.table.topics[is_in][means.is_used])
            is_second.append(np.full(len(values[-1]), i == 1))
        units = UnitLabels(np.concatenate(names), self.table.units.unit)
        places = np.concatenate(topics)
        return estimate_contrast(np.concatenate(values), units, places, np.concatenate(is_second), confounded)


def average_designs(
    table: DesignTable, model: int, kind: ErrorKind, random_factors: Sequence[str] = ()
) -> TwoWayEstimate:
    """Mean error of a model over designs in which every level of a factor counts alike, with its interval.

    Args:
        random_factors: factors whose levels are a sample of possible ones; the interval includes their variance.
    """
    means = table.run_means(model, kind)
    weights = None if means is None else table.level_contrasts.average(means.is_run)
    if means is None or weights is None:
        return TwoWayEstimate(None, 0, reason=SEPARATION_REASON)
    estimate = _estimate_level(table, means, means.by_cell @ weights, kind)
    for factor in random_factors:
        levels = table.level_contrasts.factors.get(factor, ())
        without = [table.level_contrasts.average(means.is_run, (factor, level)) for level in levels]
        values = [float(means.means @ other) for other in without if other is not None]
        if len(values) == len(levels):
            estimate = add_wording_variance(estimate, values, LOG if kind == "mae" else IDENTITY)
    return estimate


def estimate_designs(table: DesignTable, model: int, kind: ErrorKind) -> Iterator[tuple[DesignRun, TwoWayEstimate]]:
    """Mean error of a model in each run over all cells, in the order of the runs; none for runs without an answer."""
    means = table.run_means(model, kind)
    if means is not None:
        for i in np.nonzero(means.is_run)[0]:
            yield table.runs[i], _estimate_level(table, means, means.by_cell[:, i], kind)


def _estimate_level(table: DesignTable, means: RunMeans, by_cell: Floats, kind: ErrorKind) -> TwoWayEstimate:
    """A mean error with the interval that reports give: over countries (or zones) and topics."""
    statistic = MAE if kind == "mae" else BIAS
    moments = np.stack([np.ones_like(by_cell), by_cell], axis=1)
    units, topics = table.units[means.is_used], table.topics[means.is_used]
    return jackknife_sums(moments, statistic.value, units, topics, LOG if kind == "mae" else IDENTITY)


class ModelPair:
    """Two models in all designs: the absolute error of the first minus that of the second, on cells that both have."""

    def __init__(self, table: DesignTable, first: int, second: int) -> None:
        """Fit the difference in each run."""
        self.table = table
        self.means = fit_run_means(table.errors(first, "mae") - table.errors(second, "mae"))

    def at_level(self, factor: str, level: str) -> TwoWayEstimate:
        """The difference over the designs with a level, the levels of other factors counting alike, with its test."""
        if self.means is None:
            return TwoWayEstimate(None, 0, reason=SEPARATION_REASON)
        average = self.table.level_contrasts.average(self.means.is_run)
        levels = self.table.level_contrasts.factors[factor]
        shifts = [self.table.level_contrasts.difference(factor, other, level, self.means.is_run) for other in levels]
        if average is None or any(shift is None for shift in shifts):
            return TwoWayEstimate(None, 0, reason=SEPARATION_REASON)
        weights = average + np.mean([shift for shift in shifts if shift is not None], axis=0)
        estimate = _estimate_level(self.table, self.means, self.means.by_cell @ weights, "bias")
        if (interval := estimate.interval) is None or not interval.std_error or estimate.value is None:
            return estimate
        added, _ = self.table.level_contrasts.confounded_variance(weights, [self.means])
        std_error = (interval.std_error**2 + added) ** 0.5
        return replace(estimate, p_value=float(2 * stdtr(interval.df, -abs(estimate.value) / std_error)))

    def compare_levels(self, pair: LevelPair) -> TwoWayEstimate:
        """The difference with the second level minus that with the first: model × factor."""
        weights = None if self.means is None else self.table.level_contrasts.difference(*pair, self.means.is_run)
        if self.means is None or weights is None:
            return TwoWayEstimate(None, 0, reason=SEPARATION_REASON)
        return _estimate_contrast(self.table, self.means, weights)

    def count_designs(self) -> DesignCount | None:
        """Count the designs in which the first model is closer to people; None without an interval for them."""
        if self.means is None:
            return None
        cells, by_cell = self.means.is_used, self.means.by_cell[:, self.means.is_run]
        mean, expected = float(by_cell.mean()), 0.0
        for deviations in (by_cell - by_cell.mean(axis=1, keepdims=True)).T:
            interval = estimate_contrast(deviations, self.table.units[cells], self.table.topics[cells]).interval
            if interval is None or not interval.std_error:
                return None
            expected += float(ndtr(-mean / interval.std_error))
        return DesignCount(int((by_cell.mean(axis=0) < 0).sum()), by_cell.shape[1], expected)


def find_changed_cells(table: DesignTable, n_cells: int) -> list[ChangedCell]:
    """The cells whose scores differ most between runs, each cell once, the largest change first."""
    changes: list[ChangedCell] = []
    for name, scores in zip(table.models, table.scores, strict=True):
        for i in np.nonzero((~np.isnan(scores)).sum(axis=1) > 1)[0]:
            low, high = int(np.nanargmin(scores[i])), int(np.nanargmax(scores[i]))
            place = (str(table.countries[i]), str(table.topics[i]))
            runs = (table.runs[low].number, table.runs[high].number)
            changes.append(ChangedCell(name, *place, *runs, float(scores[i, low]), float(scores[i, high])))
    changes.sort(key=lambda change: change.low_score - change.high_score)
    first_of_each = {(change.country, change.topic): change for change in reversed(changes)}
    return [change for change in changes if first_of_each[change.country, change.topic] is change][:n_cells]
