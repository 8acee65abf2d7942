"""The result of an estimation: a value with its sample size and 95% confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate from a sample, with the sample size and a 95% confidence interval."""

    __pydantic_config__: ClassVar[dict[str, object]] = {
        "extra": "forbid",
        "use_attribute_docstrings": True,
        "allow_inf_nan": False,
    }
    """How pydantic validates it where a report embeds it; this module does not import pydantic."""

    value: float | None
    n: int
    """Sample size: the number of observations, such as cells or verdicts."""
    ci_low: float | None = None
    ci_high: float | None = None
    reason: str | None = None
    """Why there is no value, or no interval; or why the interval covers fewer sources of variation than usual."""

    def __post_init__(self) -> None:
        """Check the figures.

        Raises:
            ValueError: the value or the interval is missing without a reason, or a figure is nan or infinite.
        """
        if not all(figure is None or isfinite(figure) for figure in (self.value, self.ci_low, self.ci_high)):
            raise ValueError("a figure that is not finite is a missing value, with a reason")
        if None in (self.value, self.ci_low, self.ci_high) and not self.reason:
            raise ValueError("a missing value or interval needs a reason")
