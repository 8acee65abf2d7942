"""Models are compared with guesses from all cells that the audit asked about."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.domain import Cell
from auditor.metrics import world_baseline
from auditor.probes.distribution.figures.rows import AskedPeople
from auditor.probes.distribution.figures.series import ModelCell, align_cells
from auditor.surveys.distributions import CellShares
from tests.support.known import known

COUNTRIES = ("Japan", "Kenya", "Peru", "Chad")


def test_a_model_that_refuses_cells_is_compared_with_the_same_guess_as_one_that_answers_all() -> None:
    people = {
        Cell(country, "divorce"): CellShares(
            country=country, topic="divorce", shares=(share, 1 - share), n=None, n_effective=None, cut_variances=None
        )
        for country, share in zip(COUNTRIES, (0.1, 0.2, 0.6, 0.9), strict=True)
    }
    answer = ModelCell(np.array([0.5, 0.5]), np.zeros(1), 0.25, np.inf, None)
    asked = AskedPeople(people)
    for n_answered in (4, 2):
        series = known(align_cells(people, dict.fromkeys(list(people)[:n_answered], answer)))
        guess = asked.guess(series, world_baseline)
        assert guess.shares[:2, 0] == pytest.approx([(0.2 + 0.6 + 0.9) / 3, (0.1 + 0.6 + 0.9) / 3])
        assert guess.shares.shape == (n_answered, 2)
        assert guess.cut_variances.shape == (n_answered, 1)


def test_the_exact_mean_of_all_countries_has_the_skill_of_one_share_of_them() -> None:
    """It beats the mean of the other countries, since that is one of few, and knows nothing about any country."""
    rng = np.random.default_rng(0)
    shares = dict(zip((Cell(c, f"t{t}") for c in COUNTRIES for t in range(500)), rng.uniform(0, 1, 2000), strict=True))
    people = {
        cell: CellShares(
            country=cell.country, topic=cell.topic, shares=(share, 1 - share), n=None, n_effective=None,
            cut_variances=None,
        )
        for cell, share in shares.items()
    }  # fmt: skip
    asked = AskedPeople(people)
    mean = ModelCell(np.array([0.5, 0.5]), np.zeros(1), 0.25, np.inf, None)
    series = known(align_cells(people, dict.fromkeys(people, mean)))
    others = asked.guess(series, world_baseline).shares[:, 0]
    skill = 1 - np.mean((series.people[:, 0] - 0.5) ** 2) / np.mean((series.people[:, 0] - others) ** 2)
    assert asked.exact_mean_skill(series) == pytest.approx(0.25)
    assert skill == pytest.approx(0.25, abs=0.03)
