"""Summaries of a figure over models."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.people.over_models import summarize_models


def test_each_model_counts_once_and_a_missing_figure_is_left_out() -> None:
    values = {"a": 0.2, "b": None, "c": 0.5, "d": -0.1, "e": 0.9, "f": 0.4}
    summary = summarize_models(values)
    known = np.array([value for value in values.values() if value is not None])
    assert summary.mean.value == pytest.approx(known.mean())
    assert summary.mean.n == 5
    assert summary.standard_deviation == pytest.approx(known.std(ddof=1))
    assert (summary.lowest, summary.lowest_model) == (-0.1, "d")
    assert (summary.highest, summary.highest_model) == (0.9, "e")
    half_width = 2.7764451 * known.std(ddof=1) / np.sqrt(5)
    assert summary.mean.ci_low == pytest.approx(known.mean() - half_width)


def test_few_models_have_no_interval_and_no_model_has_no_mean() -> None:
    two = summarize_models({"a": 0.1, "b": 0.3})
    assert two.mean.value == pytest.approx(0.2)
    assert two.mean.ci_low is None
    assert "5" in str(two.mean.reason)
    none = summarize_models({"a": None})
    assert (none.mean.value, none.standard_deviation, none.highest_model) == (None, None, None)
