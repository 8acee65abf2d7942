"""Format numbers for readers: a true minus sign, intervals in words, a dash for missing values."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Literal, assert_never

from auditor import errors
from auditor.errors import pluralize as pluralize
from auditor.metrics.intervals.estimate import PLURAL_BY_UNIT, Estimate, ShareEstimate, Tested

if TYPE_CHECKING:
    from auditor.metrics.people.over_models import ModelCorrelation

NumberStyle = Literal["decimal", "signed", "p_value", "percent", "usd"]
"""Format of a number: with decimals, with its sign, as a p-value, as a percentage of a fraction, or as US dollars."""

MISSING_SYMBOL = "–"
MIN_P_VALUE = 0.001
"""Smaller p-values are only said to be below it, in all forms of a report."""
MINUS_SIGN = "\u2212"


def format_number(value: float | None, digits: int = 2) -> str:
    """Format a number with a fixed number of decimals; a dash for None."""
    return (
        MISSING_SYMBOL
        if value is None
        else _replace_hyphen_minus(f"{_round_without_negative_zero(value, digits):.{digits}f}")
    )


def format_styled(value: float | None, style: NumberStyle = "decimal", digits: int = 2) -> str:
    """Format a number in a style; an integer with the style `decimal` or `signed` is a count. A dash for None."""
    if value is None:
        return MISSING_SYMBOL
    match style:
        case "decimal":
            return format_count(value) if isinstance(value, int) else format_number(value, digits)
        case "signed":
            return format_signed(value, 0 if isinstance(value, int) else digits)
        case "p_value":
            return format_p_value(value)
        case "percent":
            return f"{format_number(100 * value, digits)}%"
        case "usd":
            return format_usd(value)
    assert_never(style)


def format_signed(value: float | None, digits: int = 2) -> str:
    """Format a difference with its sign, unless it rounds to zero; a dash for None."""
    if value is None:
        return MISSING_SYMBOL
    rounded = _round_without_negative_zero(value, digits)
    return _replace_hyphen_minus(f"{rounded:+.{digits}f}" if rounded else f"{rounded:.{digits}f}")


def format_interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """Format an interval as "low to high"; a dash if there is none."""
    return (
        MISSING_SYMBOL
        if low is None or high is None
        else f"{format_number(low, digits)} to {format_number(high, digits)}"
    )


def format_p_value(value: float | None) -> str:
    """Format a p-value with three decimals, "< 0.001" if smaller; a dash for None."""
    if value is None:
        return MISSING_SYMBOL
    return f"< {MIN_P_VALUE}" if value < MIN_P_VALUE else f"{value:.3f}"


def describe_p_value(value: float | None) -> str:
    """Format a p-value for a sentence, as "p = 0.012" or "p < 0.001"."""
    text = format_p_value(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def describe_adjusted_p_value(test: Tested) -> str:
    """Format a p-value, to which an unadjusted 95% CI belongs, and its value adjusted for several tests."""
    value, adjusted = test.p_value, test.adjusted_p_value
    unadjusted_text, adjusted_text = describe_p_value(value), describe_p_value(adjusted)
    if value == adjusted:
        return unadjusted_text
    if value is None or unadjusted_text == adjusted_text:
        return f"adjusted {adjusted_text}"
    return f"{unadjusted_text}, adjusted {adjusted_text}"


def format_percent(numerator: int, denominator: int) -> str:
    """Format a share of a count in percent, as `format_share` does; a dash without a denominator."""
    return format_share(numerator / denominator if denominator else None)


def format_share(share: float | None) -> str:
    """Format a share in percent. Only exact shares give 0% or 100%; others near them give "< 1%" or "> 99%"."""
    if share is None:
        return MISSING_SYMBOL
    percent = 100 * share
    if 0 < percent < 1:
        return "< 1%"
    return "> 99%" if 99 < percent < 100 else format_styled(share, "percent", 0)


def format_count(value: int | None) -> str:
    """Format an integer with a thin space between thousands; a dash for None."""
    return MISSING_SYMBOL if value is None else errors.format_count(value)


def format_usd(value: float | None, lower_bound: bool = False) -> str:
    """Format US dollars with two decimals, four for amounts below one dollar; "≥" marks a lower bound."""
    if value is None:
        return "unknown"
    digits = 2 if value == 0 or value >= 1 else 4
    return f"{'≥ ' if lower_bound else ''}${value:,.{digits}f}"


def format_estimate(estimate: Estimate, digits: int = 2) -> str:
    """Format an estimate with its interval in brackets; a dash if there is no value."""
    if estimate.value is None:
        return MISSING_SYMBOL
    return f"{format_number(estimate.value, digits)} ({format_interval(estimate.ci_low, estimate.ci_high, digits)})"


def describe_estimate(
    symbol: str, estimate: Estimate, unit: str = "", *, digits: int = 2, style: NumberStyle = "decimal"
) -> str:
    """Format an estimate for a sentence, such as "r = 0.52, 95% CI 0.31 to 0.68, 25 cells".

    Without an interval, n is before the reason: "r = 0.52, 25 cells, no 95% CI: too few topics".

    Args:
        symbol: what is estimated; empty for the value alone.
        unit: what n counts, in the singular; empty to leave n out.
    """
    prefix = f"{symbol} = " if symbol else ""
    if estimate.value is None:
        return f"{symbol + ' ' if symbol else ''}not available: {estimate.reason}"
    n_text = f", {pluralize(estimate.n, unit)}" if unit else ""
    value, interval = (
        f"{prefix}{format_styled(estimate.value, style, digits)}",
        describe_interval(estimate, digits, style),
    )
    has_interval = estimate.ci_low is not None and estimate.ci_high is not None
    return f"{value}, {interval}{n_text}" if has_interval else f"{value}{n_text}, {interval}"


def describe_interval(estimate: Estimate, digits: int = 2, style: NumberStyle = "decimal") -> str:
    """Format an estimate's interval for a sentence, such as "95% CI 0.31 to 0.68", or say why there is none.

    A share's two intervals are named, where they differ: "95% CI 0.31 to 0.68 for other countries and topics like
    these, 0.42 to 0.55 for these cells". In a task these are items.
    """
    cells_interval = format_cells_interval(estimate, digits, style)
    if estimate.ci_low is None or estimate.ci_high is None:
        return f"no 95% CI: {estimate.reason}" + (
            f"; 95% CI for {name_cells(estimate)} only: {cells_interval}" if cells_interval else ""
        )
    low, high = (format_styled(end, style, digits) for end in (estimate.ci_low, estimate.ci_high))
    if cells_interval and estimate.generalizes_to:
        return f"95% CI {low} to {high} for {estimate.generalizes_to}, {cells_interval} for {name_cells(estimate)}"
    return f"95% CI {low} to {high}"


def format_cells_interval(estimate: Estimate, digits: int = 2, style: NumberStyle = "decimal") -> str:
    """Format a share's interval for the cells that were measured; empty if there is none, or it is the other one.

    Ends that round to the same number have one more digit.
    """
    if not isinstance(estimate, ShareEstimate) or estimate.cells_ci_low is None or estimate.cells_ci_high is None:
        return ""
    cells_ends = (estimate.cells_ci_low, estimate.cells_ci_high)
    ends = [format_styled(end, style, digits) for end in cells_ends]
    other_ends = [format_styled(end, style, digits) for end in (estimate.ci_low, estimate.ci_high)]
    if ends == other_ends:
        return ""
    return " to ".join(ends if ends[0] != ends[1] else [format_styled(end, style, digits + 1) for end in cells_ends])


def name_cells(estimate: Estimate) -> str:
    """Name the measured cells that a share's second interval is about: in a task they are items or questions."""
    units = estimate.resampled or (_unit_by_reason().get(estimate.reason, "cell"),)
    unit = units[0] if units in (("item",), ("question",)) else "cell"
    return f"these {PLURAL_BY_UNIT[unit]}"


@cache
def _unit_by_reason() -> dict[str | None, str]:
    """Units other than cells, by the reason why a share over them has no interval: such a share does not name them."""
    from auditor.metrics.intervals.jackknife_interval import (  # loads numpy, which few messages need
        MIN_UNITS,
        too_few_reason,
    )

    return {too_few_reason({unit: [n]}): unit for unit in ("item", "question") for n in range(MIN_UNITS)}


def describe_populations(estimates: Iterable[Estimate]) -> str:
    """Say what the intervals are about, as a sentence with a space after it; empty without an interval."""
    populations = dict.fromkeys(estimate.generalizes_to for estimate in estimates if estimate.generalizes_to)
    return f"95% CIs are for {' or '.join(populations)}. " if populations else ""


def describe_model_correlation(correlation: ModelCorrelation) -> str:
    """Format a correlation over models for a sentence, such as "r = 0.39, 95% CI −0.06 to 0.71, p = 0.089, 20 models".

    Where models of one family are averaged, the families are counted too.
    """
    families = f" of {pluralize(correlation.n, 'family', 'families')}" if correlation.n < correlation.models else ""
    models = f"{pluralize(correlation.models, 'model')}{families}"
    if correlation.value is None:
        return f"r not available: {correlation.reason}; {models}"
    interval = "" if correlation.ci_low is None else f", {describe_interval(correlation)}"
    p_text = "" if correlation.p_value is None else f", {describe_p_value(correlation.p_value)}"
    remark = f"; no 95% CI: {correlation.reason}" if correlation.ci_low is None else ""
    return f"r = {format_number(correlation.value)}{interval}{p_text}, {models}{remark}"


def format_span(fewest: int, most: int) -> int | str:
    """A number of each of several things; its ends, such as `2 to 5`, if they differ."""
    return fewest if fewest == most else f"{fewest} to {most}"


def describe_points(share: float | None) -> str:
    """Format a difference of shares for a sentence, such as "+1 percentage point"."""
    points = format_signed(None if share is None else 100 * share, 0)
    return f"{points} percentage {'point' if points.strip(f'+{MINUS_SIGN}') == '1' else 'points'}"


def _round_without_negative_zero(value: float, digits: int) -> float:
    """Round to a number of decimals; adding 0.0 turns -0.0 into 0.0."""
    return round(value, digits) + 0.0


def _replace_hyphen_minus(text: str) -> str:
    """Replace the hyphens of a formatted number by true minus signs."""
    return text.replace("-", MINUS_SIGN)
