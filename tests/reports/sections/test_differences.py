"""Sections on verdicts and settled conflicts say which answers are compared, and count what is not listed."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate, Tested
from auditor.reports.data.differences.schema import ResolutionDifferences, ResolutionFlipRow, VerdictDifferences
from auditor.reports.sections.differences import (
    build_resolution_section,
    build_verdict_section,
    describe_resolutions,
    describe_verdicts,
)
from auditor.storage.votes import VerdictFlip
from tests.reports.sections.node_text import assert_consistent, cells_of, tables_of, text_of

KAPPA = Estimate(0.4, 10, 0.2, 0.6, resampled=("country", "topic"))
CHANGE = Tested(-0.1, 10, -0.15, -0.05, resampled=("country", "topic"), p_value=0.0004)
SHARE = ShareEstimate(1 / 3, 3, 0.06, 0.79, resampled=("country", "topic"))
FLIP = VerdictFlip(
    judge="x", other_judge="y", model="a", country="Japan", topic="divorce", sample=0,
    first="VALID", second="INVALID", same_answer=True,
)  # fmt: skip


@pytest.fixture
def verdicts() -> VerdictDifferences:
    return VerdictDifferences(
        first="one", second="two", about="answers", n=10, traces=5, both_valid=6, both_invalid=1, to_valid=1,
        to_invalid=2, other_answers=3, change=CHANGE, kappa=KAPPA, flips=[FLIP], not_listed=2,
    )  # fmt: skip


def test_agreement_and_change_are_described_and_in_a_table(verdicts: VerdictDifferences) -> None:
    section = build_verdict_section(verdicts, "judges-1")
    assert_consistent(section)
    assert describe_verdicts(verdicts) == (
        "one and two give the same verdict in 70% of 10 pairs of verdicts on the same answer, on 5 traces. 1 changed "
        "from INVALID to VALID and 2 from VALID to INVALID (p < 0.001 for other countries and topics like these)."
    )
    [flip] = cells_of(tables_of(section)["judges-1-flips"])
    assert flip == ["Japan", "divorce", "a", "x", "y", 0, "VALID", "INVALID", "the same"]
    assert "A further 3 verdicts are on other answers and excluded from all figures." in text_of(section)
    assert "2 further verdicts are not listed; --flips N lists more." in text_of(section)


def test_verdicts_on_different_answers_are_labelled(verdicts: VerdictDifferences) -> None:
    sentences = describe_verdicts(verdicts.model_copy(update={"about": "cells", "p_value": None}))
    assert "10 pairs of verdicts on the same cell, on 5 traces" in sentences
    assert "p = " not in sentences
    assert "No answer is the same in both, so differences are not due to the judges alone." in sentences


def test_no_table_of_verdicts_without_any_that_differ(verdicts: VerdictDifferences) -> None:
    section = build_verdict_section(verdicts.model_copy(update={"flips": [], "not_listed": 0}), "judges-1")
    assert list(tables_of(section)) == ["judges-1-agreement"]


def test_conflicts_settled_differently_are_counted_with_an_interval() -> None:
    flip = ResolutionFlipRow(
        country="Japan", topic="divorce", first_winner="a", first_by="majority", second_winner="b", second_by="person"
    )
    comparison = ResolutionDifferences(
        first="one", second="two", shared=6, n=3, flipped=1, share=SHARE, only_first=1, only_second=1,
        neither=1, flips=[flip], not_listed=0,
    )  # fmt: skip
    section = build_resolution_section(comparison, "conflicts-1")
    assert_consistent(section)
    assert describe_resolutions(comparison) == (
        "one and two have 6 conflicts in common. The outcome differs in 1 of 3 that both settled for one side "
        "(33%, 95% CI 6% to 79%)."
    )
    assert cells_of(tables_of(section)["conflicts-1-flips"]) == [["Japan", "divorce", "a", "judges", "b", "people"]]
    nothing = comparison.model_copy(update={"n": 0, "share": ShareEstimate(None, 0, reason="nothing to count")})
    assert describe_resolutions(nothing).endswith("in common, none of which both audits settled for one side.")
