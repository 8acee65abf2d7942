"""Widths of the intervals over designs, against an estimator that knows the noise and needs no Student quantile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy.stats import norm, t

from benchmarks.coverage.run_figures import RUN_STUDY

MAX_WIDTH = 1.5
MAX_WIDTH_OVER_DESIGNS = 1.8
"""A known limit, which docs/robustness.md and docs/method.md explain: five wordings have 4 degrees of freedom."""
RESULTS = Path(__file__).parents[2] / "docs" / "coverage.json"
INTERVALS = [
    result
    for result in json.loads(RESULTS.read_text(encoding="utf-8"))["intervals"]
    if result["study"] == RUN_STUDY.name
]


@pytest.mark.parametrize("figure", [figure.key for figure in RUN_STUDY.figures if figure.has_width_rule])
def test_intervals_are_little_wider_than_with_known_noise(figure: str) -> None:
    summaries = [result["summary"] for result in INTERVALS if result["figure"] == figure]
    assert summaries
    limit = MAX_WIDTH_OVER_DESIGNS if figure.endswith("over designs") else MAX_WIDTH
    for summary in summaries:
        assert summary["coverage"] >= 0.92
        student = t.ppf(0.975, summary["smaller_side"] - 1) / norm.ppf(0.975)
        assert summary["mean_width"] * student <= limit
