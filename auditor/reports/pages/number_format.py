"""Numbers as people read them: a true minus, an interval in words, a dash for what is not there."""

from __future__ import annotations

from auditor.reports.measurement_schema import Estimate

NONE = "–"
MINUS = "\u2212"


def number(value: float | None, digits: int = 2) -> str:
    """A number with fixed digits; a dash for None."""
    return NONE if value is None else _minus(f"{_no_negative_zero(value, digits):.{digits}f}")


def signed(value: float | None, digits: int = 2) -> str:
    """A difference: always with its sign, but for zero."""
    if value is None:
        return NONE
    rounded = _no_negative_zero(value, digits)
    return _minus(f"{rounded:+.{digits}f}" if rounded else f"{rounded:.{digits}f}")


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """Both ends of an interval; a dash when there is none."""
    return NONE if low is None or high is None else f"{number(low, digits)} to {number(high, digits)}"


def p_value(value: float | None) -> str:
    """A p-value to three digits, never as zero."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def share(part: int, whole: int) -> str:
    """A share in percent; never 0% or 100% of what is not quite so."""
    if whole == 0:
        return NONE
    percent = 100 * part / whole
    if 0 < percent < 1:
        return "< 1%"
    return "> 99%" if 99 < percent < 100 else f"{percent:.0f}%"


def count(value: int | None) -> str:
    """A whole number with a thin space between thousands."""
    return NONE if value is None else f"{value:,}".replace(",", "\u202f")


def usd(value: float | None, lower_bound: bool = False) -> str:
    """US dollars; small sums keep two significant digits."""
    if value is None:
        return "unknown"
    digits = 2 if value == 0 or value >= 1 else 4
    return f"{'≥ ' if lower_bound else ''}${value:,.{digits}f}"


def with_interval(estimate: Estimate, digits: int = 2) -> str:
    """An estimate with its interval in brackets, or why there is none."""
    if estimate.value is None:
        return NONE
    return f"{number(estimate.value, digits)} ({interval(estimate.ci_low, estimate.ci_high, digits)})"


def plural(n: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def _no_negative_zero(value: float, digits: int) -> float:
    return round(value, digits) + 0.0


def _minus(text: str) -> str:
    return text.replace("-", MINUS)
