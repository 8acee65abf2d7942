"""The result of an estimation: a value with its sample size and 95% confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

from auditor.metrics.confidence import SIGNIFICANCE_LEVEL

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
