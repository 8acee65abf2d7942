"""An estimate says why it lacks a value or an interval, and validates the same way inside a report."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from auditor.metrics.intervals.estimate import Estimate, Tested


@pytest.mark.parametrize(("value", "reason", "message"), [
    (None, None, "needs a reason"),
    (0.5, None, "needs a reason"),
    (float("nan"), "no scores", "not finite"),
    (float("inf"), "no scores", "not finite"),
])  # fmt: skip
def test_a_figure_that_is_missing_or_not_finite_is_refused(
    value: float | None, reason: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Estimate(value, 1, reason=reason)


@pytest.mark.parametrize("fields", [
    {"value": None, "n": 0},
    {"value": float("nan"), "n": 1, "reason": "no scores"},
    {"value": 0.5, "n": 1, "reason": "one cell", "unknown_key": 1},
])  # fmt: skip
def test_pydantic_refuses_what_the_class_refuses_and_unknown_keys(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Estimate).validate_python(fields)


def test_an_estimate_survives_json() -> None:
    adapter = TypeAdapter(Estimate)
    estimate = Estimate(0.5, 25, 0.31, 0.68)
    assert adapter.validate_json(adapter.dump_json(estimate)) == estimate


def test_json_has_the_figures_of_the_type_of_the_field() -> None:
    tested = Tested(0.5, 3, 0.1, 0.9, resampled=("item",), p_value=0.04)
    [stored] = TypeAdapter(list[Estimate]).dump_python([tested], mode="json")
    assert "p_value" not in stored
    assert TypeAdapter(Tested).dump_python(tested, mode="json")["p_value"] == 0.04
