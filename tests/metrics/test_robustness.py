"""Figures of a design: runs and scores that fit together."""

import pytest

from auditor.metrics.robustness import DesignRun, DesignScore, measure_robustness


def test_runs_and_scores_that_do_not_fit_are_refused() -> None:
    runs = [DesignRun(0, {"wording": "1"}), DesignRun(1, {"wording": "2"})]
    with pytest.raises(ValueError, match="at least two runs"):
        measure_robustness(runs[:1], [])
    with pytest.raises(ValueError, match="same factors"):
        measure_robustness([runs[0], DesignRun(1, {"scale": "words"})], [])
    with pytest.raises(ValueError, match="does not have: \\[7\\]"):
        measure_robustness(runs, [DesignScore("m", 7, "SE", "a", 0.1, 0.2)])
