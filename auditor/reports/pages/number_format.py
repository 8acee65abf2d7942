"""Numbers as people read them: a true minus, an interval in words, a dash for what is not there."""

from __future__ import annotations

from auditor.reports.measurement_schema import Estimate

MISSING_SYMBOL = "–"
MINUS_SIGN = "\u2212"


def format_number(value: float | None, digits: int = 2) -> str:
    """A number with fixed digits; a dash for None."""
    return (
        MISSING_SYMBOL
        if value is None
        else _replace_hyphen_minus(f"{_round_without_negative_zero(value, digits):.{digits}f}")
    )


def format_signed(value: float | None, digits: int = 2) -> str:
    """A difference: always with its sign, but for zero."""
    if value is None:
        return MISSING_SYMBOL
    rounded = _round_without_negative_zero(value, digits)
    return _replace_hyphen_minus(f"{rounded:+.{digits}f}" if rounded else f"{rounded:.{digits}f}")


def format_interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """Both ends of an interval; a dash when there is none."""
    return (
        MISSING_SYMBOL
        if low is None or high is None
        else f"{format_number(low, digits)} to {format_number(high, digits)}"
    )


def format_p_value(value: float | None) -> str:
    """A p-value to three digits, never as zero."""
    if value is None:
        return MISSING_SYMBOL
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def format_percent(numerator: int, denominator: int) -> str:
    """A share in percent; never 0% or 100% of what is not quite so."""
    if denominator == 0:
        return MISSING_SYMBOL
    percent = 100 * numerator / denominator
    if 0 < percent < 1:
        return "< 1%"
    return "> 99%" if 99 < percent < 100 else f"{percent:.0f}%"


def format_count(value: int | None) -> str:
    """A whole number with a thin space between thousands."""
    return MISSING_SYMBOL if value is None else f"{value:,}".replace(",", "\u202f")


def format_usd(value: float | None, lower_bound: bool = False) -> str:
    """US dollars; small sums keep two significant digits."""
    if value is None:
        return "unknown"
    digits = 2 if value == 0 or value >= 1 else 4
    return f"{'≥ ' if lower_bound else ''}${value:,.{digits}f}"


def format_estimate(estimate: Estimate, digits: int = 2) -> str:
    """An estimate with its interval in brackets, or why there is none."""
    if estimate.value is None:
        return MISSING_SYMBOL
    return f"{format_number(estimate.value, digits)} ({format_interval(estimate.ci_low, estimate.ci_high, digits)})"


def pluralize(n: int, singular: str, plural_form: str = "") -> str:
    """A number with its noun."""
    return f"{format_count(n)} {singular if n == 1 else plural_form or singular + 's'}"


def _round_without_negative_zero(value: float, digits: int) -> float:
    return round(value, digits) + 0.0


def _replace_hyphen_minus(text: str) -> str:
    return text.replace("-", MINUS_SIGN)
