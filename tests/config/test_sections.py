"""Tests of rules within one section of a configuration: keys that need or exclude each other."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from auditor.config import CheckSection, TaskSection


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


def test_thresholds_of_a_probe_are_keys_of_the_table_check() -> None:
    section = CheckSection.model_validate({"min_pearson": 0.5, "min_skill": -1, "max_order_effect": None})
    assert (section.find("min_skill"), section.find("max_order_effect"), section.find("min_pearson")) == (-1, None, 0.5)
    assert CheckSection.model_validate(section.model_dump()) == section
    for name, value in (("min_skill", 2), ("max_order_effect", 1.5), ("min_variance_ratio", float("inf"))):
        with pytest.raises(pydantic.ValidationError, match=name):
            CheckSection.model_validate({name: value})
    with pytest.raises(pydantic.ValidationError, match="Extra inputs"):
        CheckSection.model_validate({"min_skil": 0.1})
