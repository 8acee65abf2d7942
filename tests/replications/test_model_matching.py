"""Which model of the user's is set beside which published one."""

from __future__ import annotations

import pytest

from auditor.errors import UsageError
from auditor.replications.model_matching import match_models
from auditor.replications.presets import load_paper


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("absent", "GPT-4o")], "no audited model 'absent'"),
        ([("a", "GPT-9")], r"no published model 'GPT-9'.*PaLM-2"),
        ([("a", "GPT-4o"), ("b", "GPT-4o")], "two models are beside 'GPT-4o': 'a' and 'b'"),
        ([("a", "GPT-4")], "two models are beside 'GPT-4': 'GPT-4' and 'a'"),
    ],
)
def test_pairs_that_cannot_be_used_are_refused(pairs: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        match_models(load_paper("evalmoraal"), ["a", "b", "GPT-4"], pairs)


def test_models_of_equal_names_are_compared() -> None:
    pairs = [("mine", "GPT-4o"), ("mine", "PaLM-2"), ("GPT-4", "GPT-4")]
    assert match_models(load_paper("evalmoraal"), ["GPT-4", "mine"], pairs) == {
        "GPT-4": "GPT-4",
        "GPT-4o": "mine",
        "PaLM-2": "mine",
    }
