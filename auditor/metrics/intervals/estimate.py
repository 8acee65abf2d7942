"""Estimates: a value with its sample size and its 95% interval; proportions, and cases without missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from auditor.lazy_imports import import_when_used

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]
else:  # commands that show estimates, and compute none, need no numpy
    np = import_when_used("numpy")
    Floats = Any

SIGNIFICANCE_LEVEL = 0.05
"""A p-value below it is reported as a difference."""
SHARED_LEVEL = 0.01
"""The level of each of five families of sentences that share 5%: gaps in MAE and in bias between regions, errors in
countries and on topics against those in the others, and structure. At 5% each, a report would state something false in
more than 10% of audits (docs/method.md)."""
CONFIDENCE_LEVEL = 1 - SIGNIFICANCE_LEVEL
LOWER_QUANTILE, UPPER_QUANTILE = SIGNIFICANCE_LEVEL / 2, 1 - SIGNIFICANCE_LEVEL / 2
"""Cumulative probabilities at the ends of a two-sided interval."""
NORMAL_QUANTILE = 1.959963984540054
"""The standard normal distribution's quantile at `UPPER_QUANTILE`, as a number: loading scipy takes half a second."""

MIN_DF = 4
"""The fewest degrees of freedom of an interval over units: it needs five of them."""
_STUDENT_QUANTILE = 2.7764451051977987
"""Quantile of Student's distribution with `MIN_DF` degrees of freedom at `UPPER_QUANTILE`."""


def bound_p_value(value: float, ci_low: float, ci_high: float, reference: float = 0.0) -> float:
    """Upper bound of the two-sided p-value that belongs to a 95% interval: it is 0.05 where the interval ends.

    The interval is taken as one of Student's with `MIN_DF` degrees of freedom, whose tails are the heaviest. An
    interval without length excludes any other value.

    Args:
        value: the estimate, between `ci_low` and `ci_high`.
        reference: the value under the null hypothesis.
    """
    distance = abs(value - reference)
    half_width = value - ci_low if value > reference else ci_high - value
    if distance == 0 or half_width <= 0:
        return 1.0 if distance == 0 else 0.0
    t = _STUDENT_QUANTILE * distance / half_width
    scale = 1 + t * t / MIN_DF  # the distribution function of 4 degrees of freedom is a polynomial of t / sqrt(scale)
    upper_tail = 0.5 - 0.375 * t / sqrt(scale) * (1 - t * t / scale / 12)
    return min(1.0, max(0.0, 2 * upper_tail))


def bonferroni_level(n_intervals: int) -> float:
    """The confidence level of each of `n_intervals` intervals that hold together at `CONFIDENCE_LEVEL` (Bonferroni)."""
    return 1 - SIGNIFICANCE_LEVEL / n_intervals


PLURAL_BY_UNIT = {
    "cell": "cells",
    "conflict": "conflicts",
    "country": "countries",
    "dialogue": "dialogues",
    "family": "model families",
    "item": "items",
    "judge": "judges",
    "language": "languages",
    "model": "models",
    "pair": "pairs",
    "question": "questions",
    "set": "item sets",
    "topic": "topics",
    "trace": "traces",
    "wording": "wordings",
    "zone": "cultural zones",
}
"""Units that an interval may resample, and their plurals."""
SPECIAL_POPULATIONS = {
    "sample": "other samples of the same cells",
    "split": "other random halves of the survey’s respondents",
    "comparison": "other answers to the same comparisons",
}
"""Populations that are not "other … like these"."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate from a sample, with the sample size and a 95% confidence interval."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}
    """How pydantic validates it where a report embeds it; this module does not import pydantic."""

    value: float | None
    n: int
    """Sample size: the number of observations, such as cells or verdicts."""
    ci_low: float | None = None
    ci_high: float | None = None
    reason: str | None = None
    """Why there is no value, or no interval; or why the interval covers fewer sources of variation than usual, or lost
    observations leave the sign of the value open."""
    resampled: tuple[str, ...] = ()
    """The units over which the interval is computed, such as country and topic; empty without an interval."""
    generalizes_to: str | None = None
    """What the interval is a statement about, such as other countries and topics like these; null without one."""

    def __post_init__(self) -> None:
        """Check the figures, and describe the population of the interval.

        Raises:
            ValueError: the value or the interval is missing without a reason, or a figure is nan or infinite; or the
                interval resamples a unit that has no name in this module.
        """
        if not all(figure is None or isfinite(figure) for figure in (self.value, self.ci_low, self.ci_high)):
            raise ValueError("a figure that is not finite is a missing value, with a reason")
        if None in (self.value, self.ci_low, self.ci_high) and not self.reason:
            raise ValueError("a missing value or interval needs a reason")
        if self.resampled and self.generalizes_to is None:
            object.__setattr__(self, "generalizes_to", describe_population(self.resampled))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """The schema for pydantic, made once: it would make that of a dataclass anew for each model that embeds it."""
        if cls not in _PYDANTIC_SCHEMAS:
            _PYDANTIC_SCHEMAS[cls] = handler.resolve_ref_schema(handler(source))
        return _PYDANTIC_SCHEMAS[cls]


_PYDANTIC_SCHEMAS: dict[type[Estimate], Any] = {}


@dataclass(frozen=True)  # without slots, so that a class can inherit from it and from another kind of estimate
class Tested(Estimate):
    """An estimate with the p-value of a test, and the same adjusted for all tests of its family."""

    p_value: float | None = None
    """Two-sided p-value of one test alone, of a true value of 0 unless its row says otherwise, in [0, 1]; null without
    a test."""
    adjusted_p_value: float | None = None
    """`p_value` adjusted for all tests of the family (Holm); null without a test, or without a family."""
    test_family: str | None = None
    """What is tested together, so that any false finding has a probability of 5%; null without a family."""

    @property
    def is_significant(self) -> bool:
        """Whether the value is distinguishable from the null hypothesis, given the number of tests of the family."""
        return self.is_significant_at(SIGNIFICANCE_LEVEL)

    def is_significant_at(self, level: float) -> bool:
        """Whether any false finding of the family has a probability of at most this level."""
        return self.adjusted_p_value is not None and self.adjusted_p_value < level


@dataclass(frozen=True, slots=True)
class ShareEstimate(Estimate):
    """A share, with a second interval for the cells that were measured."""

    cells_ci_low: float | None = None
    """Lower end of the 95% interval for these cells: over other samples of the same cells. `ci_low` and `ci_high` also
    include the variation between units such as countries and topics."""
    cells_ci_high: float | None = None


@dataclass(frozen=True, slots=True)
class TestedShare(ShareEstimate, Tested):
    """A share that is tested against a given one, such as that of guesses that are right by chance."""


@dataclass(frozen=True, slots=True)
class BoundedEstimate(Estimate):
    """A figure of which some observations are lost: the bounds hold whatever the lost ones are.

    `value` is over the usable samples; the interval and the bounds are about all planned samples, lost ones included,
    and need not contain `value` (Imbens & Manski, Econometrica 72, 2004).
    """

    bound_low: float | None = None
    """Lower worst-case bound: the figure if the lost observations were those that make it smallest."""
    bound_high: float | None = None
    """Upper worst-case bound."""

    def __post_init__(self) -> None:
        """Check the figures, and describe the population of the interval: it is about all planned samples."""
        if self.resampled and self.generalizes_to is None:
            object.__setattr__(
                self, "generalizes_to", f"all planned samples, for {describe_population(self.resampled)}"
            )
        Estimate.__post_init__(self)


@dataclass(frozen=True, slots=True)
class NullDistribution:
    """The mean score expected by chance: answers of a group are drawn from different questions."""

    mean: float | None
    """Mean over the shuffles; None, with a reason, if unknown."""
    low: float | None
    """2.5% point over the shuffles."""
    high: float | None
    """97.5% point over the shuffles."""
    shuffles: int
    questions: int
    """Questions whose answers were shuffled."""
    reason: str | None = None


def describe_population(resampled: Sequence[str]) -> str:
    """Describe what an interval over these units is a statement about.

    Args:
        resampled: keys of `PLURAL_BY_UNIT`, or one key of `SPECIAL_POPULATIONS`.

    Raises:
        ValueError: an unknown unit.
    """
    if len(resampled) == 1 and resampled[0] in SPECIAL_POPULATIONS:
        return SPECIAL_POPULATIONS[resampled[0]]
    unknown = [unit for unit in resampled if unit not in PLURAL_BY_UNIT]
    if unknown:
        raise ValueError(f"no name for the unit {unknown[0]!r}; the units are {sorted(PLURAL_BY_UNIT)}")
    return f"other {' and '.join(PLURAL_BY_UNIT[unit] for unit in resampled)} like these"


def proportion(part: int, whole: int, unit: str = "") -> Estimate:
    """Share of `part` in `whole` with the 95% score interval of Wilson (JASA 22, 1927, 209-212).

    The interval stays in [0, 1] and has a width even when all or none were counted. It assumes independent cases.

    Args:
        unit: what a case is, a key of `PLURAL_BY_UNIT` such as `item`, where the interval is over other cases.

    Returns:
        None with a reason if `whole` is 0.

    Raises:
        ValueError: not 0 <= part <= whole, or an unknown unit.
    """
    if not 0 <= part <= whole:
        raise ValueError(f"a part must be between 0 and the whole, but got {part} of {whole}")
    if whole == 0:
        return Estimate(None, 0, reason="nothing to count")
    p = part / whole
    return Estimate(p, whole, *wilson_interval(p, whole), resampled=(unit,) if unit else ())


def wilson_interval(p: float, n: float) -> tuple[float, float]:
    """Wilson's 95% interval of a share `p` in [0, 1] over `n` > 0 cases; n may be fractional."""
    z2 = NORMAL_QUANTILE**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_QUANTILE * sqrt(p * (1 - p) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    return (0.0 if p == 0 else centre - half), (1.0 if p == 1 else centre + half)


NO_POOLED_INTERVAL = "the audits share models and countries, so that their intervals cannot be combined"


def sum_counts(counts: Sequence[Estimate]) -> Estimate:
    """The sum of the counts of several audits; n is the sum of the cases in which was counted.

    Raises:
        ValueError: there is no count, or one has no value.
    """
    values = [count.value for count in counts if count.value is not None]
    if not values or len(values) < len(counts):
        raise ValueError("every audit must have a count")
    return Estimate(sum(values), sum(count.n for count in counts), reason=NO_POOLED_INTERVAL)


def pool_shares(shares: Sequence[Estimate]) -> Estimate:
    """The share in the cases of several audits together, sum(n p) / sum(n).

    Args:
        shares: of each audit, n being its number of cases; an audit without a case has no value and no weight.

    Raises:
        ValueError: there is no case, or an audit with cases has no share.
    """
    counted = [(share.value, share.n) for share in shares if share.n > 0]
    n = sum(n_cases for _, n_cases in counted)
    if n == 0 or any(value is None for value, _ in counted):
        raise ValueError("there must be a case, and every audit with cases must have a share")
    return Estimate(sum((value or 0.0) * n_cases for value, n_cases in counted) / n, n, reason=NO_POOLED_INTERVAL)


CONSTANT_TOLERANCE = 1e-12
"""Range of values, as a share of the largest absolute one, up to which they are equal but for rounding."""


def complete_cases(*columns: ArrayLike) -> tuple[list[Floats], NDArray[np.bool_]]:
    """Drop the rows in which any column is nan (listwise deletion).

    Args:
        columns: shape (n,) each.

    Returns:
        The columns without these rows, and the mask, shape (n,), of the rows that remain.

    Raises:
        ValueError: a column is not one-dimensional, the lengths differ, or a value is infinite.
    """
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    array_shapes = [array.shape for array in arrays]
    if len(array_shapes[0]) != 1 or len(set(array_shapes)) > 1:
        raise ValueError(f"columns must be one-dimensional and of one length, but have shapes {array_shapes}")
    table = np.array(arrays)
    is_complete = np.asarray(np.isfinite(table).all(axis=0))
    if is_complete.all():
        return list(table), is_complete
    if np.isinf(table).any():
        raise ValueError("columns must be finite, or nan where a value is missing, but one holds an infinity")
    return list(table[:, is_complete]), is_complete


def is_constant(values: Floats) -> bool:
    """Whether all values are equal up to rounding (0.1 + 0.2 counts as 0.3)."""
    low, high = float(values.min()), float(values.max())
    return high - low <= CONSTANT_TOLERANCE * max(-low, high)
