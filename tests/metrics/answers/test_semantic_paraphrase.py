from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from auditor.metrics.answers.semantic import (
    DIVERGENCE_WEIGHT,
    MAX_COUNTED_DISTANCE,
    edit_distance,
    lexical_divergence,
    parascore,
)


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [("kitten", "sitting", 3 / 7), ("", "", 0.0), ("", "abc", 1.0), ("May I?", " may  i ", 0.0), ("abc", "xyz", 1.0)],
)
def test_edit_distance_is_levenshteins_over_the_longer_text(left: str, right: str, distance: float) -> None:
    assert edit_distance(left, right) == pytest.approx(distance)


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_edit_distance_is_symmetric_and_zero_only_for_copies(a: str, b: str, c: str) -> None:
    assert edit_distance(a, b) == edit_distance(b, a)
    assert 0 <= edit_distance(a, b) <= 1
    assert edit_distance(a, a) == 0


def test_divergence_is_the_papers() -> None:
    # gamma = 0.35: -1 for a copy, 0 at gamma / (gamma + 1), gamma from gamma on.
    assert lexical_divergence(0.0) == -1
    assert lexical_divergence(MAX_COUNTED_DISTANCE / (MAX_COUNTED_DISTANCE + 1)) == pytest.approx(0)
    assert lexical_divergence(MAX_COUNTED_DISTANCE) == pytest.approx(MAX_COUNTED_DISTANCE)
    assert lexical_divergence(0.9) == MAX_COUNTED_DISTANCE


def test_more_divergence_never_scores_less() -> None:
    scores = [parascore(0.9, d / 100) for d in range(101)]
    assert scores == sorted(scores)
    assert scores[0] == pytest.approx(0.9 - DIVERGENCE_WEIGHT)
    assert scores[-1] == pytest.approx(0.9 + DIVERGENCE_WEIGHT * MAX_COUNTED_DISTANCE)
