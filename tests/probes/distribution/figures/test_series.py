"""Answers of a cell become shares: orders weigh alike, and too few answers are no figure."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.domain import Cell, Outcome
from auditor.probes.distribution.figures.series import align_cells, combine_answers
from auditor.probes.distribution.opinions import Opinion, OpinionMode, ScaleOrder
from auditor.surveys.distributions import CellShares
from tests.support.known import known

POINTS = np.array([-1.0, 0.0, 1.0])
LOW, HIGH = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
CELL = Cell("Japan", "divorce")


def make_opinion(
    shares: tuple[float, ...] | None, order: str = "", mode: str = "sampled", n: int | None = 1, sample: int = 0
) -> Opinion:
    """One answer about the cell."""
    outcome = Outcome.UNPARSED if shares is None else Outcome.OK
    return Opinion("m", CELL, "", "", OpinionMode(mode), ScaleOrder(order), sample, outcome, shares, n)


def test_both_orders_weigh_alike_whatever_their_number_of_answers() -> None:
    answers = [make_opinion(LOW, "up"), make_opinion(LOW, "up"), *[make_opinion(HIGH, "down")] * 6]
    combined = known(combine_answers(answers, POINTS))
    assert combined.shares == pytest.approx([0.5, 0, 0.5])
    assert combined.n == 8
    assert combined.variance == pytest.approx(0.25)
    assert known(combined.orders)[0] == pytest.approx(LOW)


def test_fewer_than_two_answers_in_an_order_are_no_figure() -> None:
    assert combine_answers([make_opinion(LOW, "up"), *[make_opinion(HIGH, "down")] * 6], POINTS) is None
    assert combine_answers([make_opinion(LOW)], POINTS) is None
    assert combine_answers([make_opinion(None), make_opinion(None)], POINTS) is None


def test_answers_of_one_order_are_pooled_with_their_sampling_error() -> None:
    combined = known(combine_answers([make_opinion(LOW, n=3), make_opinion(HIGH)], POINTS))
    assert combined.shares == pytest.approx([0.75, 0, 0.25])
    assert combined.cut_variances == pytest.approx([0.1875 / 3] * 2)
    assert combined.orders is None


def test_stated_shares_have_no_sampling_error() -> None:
    stated = [make_opinion(LOW, "up", "verbalized", None), make_opinion((0.5, 0.5, 0.0), "down", "verbalized", None)]
    combined = known(combine_answers(stated, POINTS))
    assert combined.shares == pytest.approx([0.75, 0.25, 0])
    assert (combined.n, combined.cut_variances.sum()) == (np.inf, 0)
    assert combined.orders is not None


def test_cells_that_both_have_are_aligned() -> None:
    answer = known(combine_answers([make_opinion(LOW, mode="tokens", n=None)], POINTS))
    people = CellShares(
        country="Japan", topic="divorce", shares=(0.2, 0.3, 0.5), n=None, n_effective=None, cut_variances=None
    )
    series = known(align_cells({CELL: people}, {CELL: answer, Cell("Kenya", "divorce"): answer}))
    assert series.countries.tolist() == ["Japan"]
    assert np.isinf(series.sizes).all()
    assert (series.people_cut_variances == 0).all()
    assert align_cells({CELL: people}, {}) is None


def test_fewer_than_half_of_the_answers_or_one_of_two_orders_are_no_figure() -> None:
    up, down = [make_opinion(LOW, "up")] * 2, [make_opinion(HIGH, "down")] * 2
    assert combine_answers([*up, *down, *[make_opinion(None, "up")] * 4], POINTS) is not None
    assert combine_answers([*up, *down, *[make_opinion(None, "up")] * 5], POINTS) is None
    assert combine_answers([*up, *up, make_opinion(None, "down")], POINTS) is None
    stated = make_opinion(LOW, "up", "verbalized", None)
    assert combine_answers([stated], POINTS) is not None
    assert combine_answers([stated, make_opinion(None, "down", "verbalized", None)], POINTS) is None
