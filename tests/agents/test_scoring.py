from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from auditor.agents.scoring import self_consistencies

WORDS = {"yes": (1.0, 0.0), "no": (0.0, 1.0), "half": (0.6, 0.8)}


class Toy:
    """Puts each word where the table says."""

    revision = "toy"

    def encode(self, texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.array([WORDS[t] for t in texts], dtype=np.float32)


def test_only_answers_in_the_same_language_are_compared() -> None:
    # en: one pair of cosine 0.6; de: three pairs of cosines 1, 0 and 0; one French answer has no partner.
    texts = {"a": {"en": ["yes", "half"], "de": ["yes", "yes", "no"], "fr": ["no"]}, "b": {"en": ["yes"]}, "c": {}}
    found = self_consistencies(texts, Toy)
    assert found["a"] == pytest.approx((0.6 + 1 + 0 + 0) / 4)
    assert (found["b"], found["c"]) == (None, None)


def test_without_an_encoder_there_is_none() -> None:
    assert self_consistencies({"a": {"en": ["yes", "no"]}}, None) == {"a": None}
