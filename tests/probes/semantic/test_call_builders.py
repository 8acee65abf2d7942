"""Limits of the calls of the probe `semantic`."""

from __future__ import annotations

import pytest

from auditor.probes.semantic.call_builders import build_paraphrase_call
from auditor.probes.semantic.records import MoralQuestion
from tests.e2e.test_semantic import config


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [("Is it?", 5, 400), ("Is it?", 1, 300), ("word " * 90, 5, 900), ("\u5584" * 600, 5, 1000)],
    ids=["short", "one", "long", "without spaces"],
)
def test_the_limit_of_a_call_for_wordings_grows_with_the_text(text: str, count: int, expected: int) -> None:
    audit = config("http://localhost:1", models=1)
    call = build_paraphrase_call(audit, audit.models[0], MoralQuestion("q", text.strip()), count, 0)
    assert call.params["max_tokens"] == expected
