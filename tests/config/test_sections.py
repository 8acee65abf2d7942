"""Tests of rules within one section of a configuration: keys that need or exclude each other."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from auditor.config import TaskSection


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"answer": "score"}, "'range' is missing"),
        ({"answer": "score", "range": [10, 0]}, "lowest score, then the highest"),
        ({"answer": "exact", "range": [0, 1]}, "'range' applies only to"),
        ({"answer": "exact", "options": ["a", "b"]}, "'options' applies only to"),
        ({"answer": "choice", "options": ["a", "a"]}, "twice"),
        ({"answer": "choice", "numbers": True}, "'numbers' applies only to"),
        ({"answer": "choice", "tolerance": 1}, "'tolerance' applies only to"),
    ],
)
def test_keys_that_do_not_fit_the_kind_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=message):
        TaskSection.model_validate({"source": "items.csv", **keys})
