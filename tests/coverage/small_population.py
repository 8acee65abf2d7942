"""Truths of planted opinions from a smaller population than that of the study, for tests whose bars are wide."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.coverage.worlds import opinion_worlds


@pytest.fixture(scope="module", autouse=True)
def small_population() -> Iterator[None]:
    """Compute truths from 5 times 62,500 cells; their errors are an eighth of the width of an audit's intervals."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opinion_worlds, "N_REPEATS", 5)
        opinion_worlds.measure_opinion_truth.cache_clear()
        yield
    opinion_worlds.measure_opinion_truth.cache_clear()
