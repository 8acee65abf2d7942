from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from auditor.agents.cell_scoring import chance_similarities, compute_cell_score, self_consistencies
from auditor.domain import Cell, CellScore, Outcome, Trace
from tests.support.fixed_address import WordEncoder

WORDS = {"yes": (1.0, 0.0), "no": (0.0, 1.0), "half": (0.6, 0.8)}


class Toy:
    """Puts each word where the table says."""

    revision = "toy"

    def encode(self, texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.array([WORDS[text.rstrip(".")] for text in texts], dtype=np.float32)


def test_only_answers_in_the_same_language_are_compared() -> None:
    # en: one pair of cosine 0.6; de: three pairs of cosines 1, 0 and 0; one French answer has no partner.
    texts = {"a": {"en": ["yes", "half"], "de": ["yes", "yes", "no"], "fr": ["no"]}, "b": {"en": ["yes"]}, "c": {}}
    consistencies = self_consistencies(texts, Toy)
    assert consistencies["a"] == pytest.approx((0.6 + 1 + 0 + 0) / 4)
    assert (consistencies["b"], consistencies["c"]) == (None, None)


def test_no_encoder_is_loaded_if_nothing_is_compared() -> None:
    def load() -> WordEncoder:
        raise AssertionError("the encoder was loaded")

    assert self_consistencies({"a": {"en": ["yes"], "de": ["no"]}}, load) == {"a": None}


def cell_score_of(n_planned: int, **scores: Sequence[float | None]) -> CellScore:
    """The score by scores in each language; None is a refusal."""
    traces = [
        Trace("m", CELL, i, Outcome.REFUSED if score is None else Outcome.OK, score, language=code)
        for code, values in scores.items()
        for i, score in enumerate(values)
    ]
    return compute_cell_score("m", CELL, traces, n_planned, None, "")


CELL = Cell("Egypt", "divorce")


def test_each_language_counts_alike_however_much_of_it_was_lost() -> None:
    cell_score = cell_score_of(10, en=[0.5] * 5, ar=[-0.5, None, None, None, None])
    assert (cell_score.score, cell_score.variance, cell_score.n_ok, cell_score.n_planned) == (0.0, 0.0, 6, 10)
    # The languages differ, and not the samples of one.
    assert (cell_score.sign_agreement, cell_score.straddles) == (1.0, False)


def test_the_variance_over_n_is_that_of_the_score() -> None:
    rng = np.random.default_rng(1)
    drawn = [cell_score_of(8, en=list(rng.normal(0.2, 0.1, 6)), ar=list(rng.normal(-0.4, 0.1, 2))) for _ in range(3000)]
    claimed = np.mean([(d.variance or 0.0) / d.n_ok for d in drawn])
    assert claimed == pytest.approx(np.var([d.score or 0.0 for d in drawn]), rel=0.08)
    one = cell_score_of(3, en=[0.1, 0.3, 0.8])
    assert (one.score, one.variance) == pytest.approx((0.4, np.var([0.1, 0.3, 0.8], ddof=1)))
    assert cell_score_of(2, en=[0.1], ar=[0.3]).variance is None
    assert cell_score_of(1, en=[None]).score is None


def test_reasonings_about_different_cells_are_compared_in_each_language() -> None:
    """One of the two equal texts of each cell; a language with one text, or one country, has nothing to compare."""
    word_by_cell = {Cell("A", "t"): "yes", Cell("A", "u"): "no", Cell("B", "t"): "half", Cell("B", "u"): "yes"}
    texts = {cell: {"en": [word.ljust(9, ".")] * 2, "de": [word]} for cell, word in word_by_cell.items()}
    values = chance_similarities(texts, Toy, 0)
    assert [values[cell]["chance_similarity"] for cell in texts] == pytest.approx([1, 0.8, 0.8, 1])
    assert [values[cell]["topic_similarity"] for cell in texts] == pytest.approx([0.6, 0, 0.6, 0])
    single = {cell: {"en": [word]} for cell, word in word_by_cell.items()}
    assert all(set(row.values()) == {None} for row in chance_similarities(single, Toy, 0).values())
