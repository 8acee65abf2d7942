"""The question that names the known word closest to a misspelt one."""

from __future__ import annotations

import pytest

from auditor.errors import did_you_mean


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("cult", "Did you mean 'culture'?"),
        ("GPT-4O", "Did you mean 'gpt-4o'?"),
        ("egypt", "Did you mean 'Egypt'?"),
        ("order", "Known: all."),
    ],
)
def test_the_closest_word_is_named_in_any_capitals(word: str, hint: str) -> None:
    assert did_you_mean(word, ["culture", "gpt-4o", "Egypt", "score"], "Known: all.") == hint
