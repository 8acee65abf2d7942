"""The certificate's sentences on biases and associations of judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from auditor.metrics.judge_difference import JudgeDifference
from auditor.reports.data.panel.schema import JudgeRow
from auditor.reports.number_format import describe_adjusted_p_value, describe_interval, format_signed, pluralize

LENIENT, OFTEN, LENGTH = ("more lenient", "stricter"), ("more", "less"), ("longer", "shorter")
PHRASES = {
    ("padding", "experiment"): ("says VALID {} often when the same trace is padded", OFTEN),
    ("leniency", "truth"): ("says VALID {} often than the known truth of the same answers", OFTEN),
    ("leniency", "panel"): ("is {} than the median judge on the same traces", LENIENT),
    ("verbosity_against_truth", "truth"): ("favours {} traces beyond what the truth of the answers explains", LENGTH),
    ("verbosity", "association"): ("says VALID {} often for longer traces", OFTEN),
    ("own_family", "association"): ("is {} with its own model family", LENIENT),
    ("order", "association"): ("is {} in the later half of its verdicts", LENIENT),
}
"""By field of `JudgeRow` and kind of evidence: a phrase, and its words for differences above and below 0."""
Finding = tuple[str, str, JudgeDifference]
"""A judge, a field of `JudgeRow`, and its difference."""


def describe_biases(judges: Sequence[JudgeRow]) -> Iterator[str]:
    """Yield sentences on tests of biases and on associations, which are no biases.

    They name the judges whose p-value, adjusted for the number of all tests, is below 0.05.
    """
    if not judges:
        return
    fields = dict.fromkeys(field for field, _ in PHRASES)
    differences = [(row.judge, field, getattr(row, field)) for field in fields for row in judges]
    tested = [item for item in differences if item[2].adjusted_p_value is not None]
    associations = [item for item in tested if item[2].evidence == "association"]
    bias_tests = [item for item in tested if item[2].evidence != "association"]
    adjustment = describe_adjustment(len(tested))
    yield _describe_bias_tests(bias_tests, adjustment)
    if named := _select_significant(associations):
        yield (
            f"Associations: {_join(named)}. They do not show a bias, since traces differ in other ways too, such as "
            f"quality. {adjustment}"
        )
    elif associations:
        yield (
            "No association of verdicts with length, model family or order is statistically distinguishable from zero "
            f"(none of {pluralize(len(associations), 'test')}). {adjustment}"
        )


def _describe_bias_tests(bias_tests: Sequence[Finding], adjustment: str) -> str:
    """State which biases are shown, that none is, or that none was tested."""
    if not bias_tests:
        return "No bias of the judges was tested."
    named = _select_significant(bias_tests)
    if not named:
        return f"No judge is shown to have a bias (none of {pluralize(len(bias_tests), 'test')}). {adjustment}"
    assumption = (
        " A difference from the median judge is a bias if more than half of the judges have none."
        if any(difference.evidence == "panel" for *_, difference in named)
        else ""
    )
    return f"Biases beyond chance: {_join(named)}.{assumption} {adjustment}"


def _select_significant(tested: Sequence[Finding]) -> list[Finding]:
    """Those that are significant given the number of tests."""
    return [item for item in tested if item[2].is_significant]


def _join(named: Sequence[Finding]) -> str:
    """The findings with their figures, separated by semicolons."""
    return "; ".join(f"{judge} {_describe_difference(field, difference)}" for judge, field, difference in named)


def _describe_difference(field: str, difference: JudgeDifference) -> str:
    """Describe a difference in words, with its figures in percentage points."""
    value, low, high = (100 * (figure or 0.0) for figure in (difference.value, difference.ci_low, difference.ci_high))
    phrase, (above, below) = PHRASES[field, difference.evidence]
    points = replace(difference, value=value, ci_low=low, ci_high=high)
    p_text = describe_adjusted_p_value(difference)
    return (
        f"{phrase.format(above if value > 0 else below)} ({format_signed(value, 0)} percentage points, "
        f"{describe_interval(points, 0, 'signed')}, {p_text})"
    )


def describe_adjustment(n_tests: int) -> str:
    """Say what the p-values are adjusted for."""
    return f"P-values are adjusted for {pluralize(n_tests, 'test')} (Holm)."
