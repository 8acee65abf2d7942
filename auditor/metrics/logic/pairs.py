"""PairS (COLM 2024): ranking by merge sort with a judge as comparator, live and on recorded answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.logic.consistency import as_preferences, average_answered_orders

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
MIN_PROBABILITY = 1e-6  # a judge's 0 or 1 must not outweigh all its other answers


class BeamSearch(NamedTuple):
    """Settings of the search in each merge.

    Attributes:
        beam: number of partial merges to follow; 1 is greedy.
        uncertainty: with a beam, both outcomes are followed where the probability is closer to 1/2 than this.
    """

    beam: int = 1
    uncertainty: float = 0.1


class Comparisons(NamedTuple):
    """Comparisons that are needed next, shape (m,) each.

    Attributes:
        first, second: the items; the answer is the probability in [0, 1] that the first is preferred, nan if unknown.
        row: the initial order that the comparison is for.
    """

    first: Ints
    second: Ints
    row: Ints


ArrayGenerator: TypeAlias = Generator[Comparisons, Floats, Ints]
"""Yields comparisons, is sent one probability for each, and returns ranked items, best first, shape (rows, items)."""


def sort_orders(initial_orders: Ints, search: BeamSearch) -> ArrayGenerator:
    """Rank items by merge sort (PairS-greedy), or by a beam search over each merge (PairS-beam).

    As in the authors' program, a run of n items is split after the first n // 2. Merges at one depth need comparisons
    at the same time. A comparison without an answer takes the next item from the half of which a smaller share is used
    up, which favours neither half.

    Args:
        initial_orders: shape (rows, items), one order in each row.
        search: its settings.

    Raises:
        ValueError: the beam is below 1, or the uncertainty is not in [0, 0.5].
    """
    if search.beam < 1 or not 0 <= search.uncertainty <= 0.5:
        raise ValueError(f"beam >= 1, uncertainty in [0, 0.5]; got {search.beam!r}, {search.uncertainty!r}")
    return _sort(np.array(initial_orders, dtype=np.intp), search)


def _sort(orders: Ints, search: BeamSearch) -> ArrayGenerator:
    """As `sort_orders`, in place."""
    n_rows = len(orders)
    for merges in reversed(_list_merges(orders.shape[1])):
        merged = yield from _run_together(
            [_merge_runs(*_stack_runs(orders, group), search) for group in merges], n_rows
        )
        for group, blocks in zip(merges, merged, strict=True):
            for start, block in zip(group.starts, np.split(blocks, len(group.starts)), strict=True):
                orders[:, start : start + group.n_left + group.n_right] = block
    return orders


class _Merges(NamedTuple):
    """Merges of runs of the same lengths.

    Attributes:
        starts: positions of the left runs; each is followed by its right run.
        n_left, n_right: lengths of the runs.
    """

    starts: list[int]
    n_left: int
    n_right: int


def _list_merges(n: int) -> list[list[_Merges]]:
    """Merges of n items by depth, that of the whole order first, and at each depth by the lengths of the runs."""
    depths, runs = [], {n: [0]}  # positions of runs by their length, at most two lengths at a depth
    while any(length > 1 for length in runs):
        merges = [_Merges(starts, length // 2, length - length // 2) for length, starts in runs.items() if length > 1]
        runs = {}
        for starts, n_left, n_right in merges:
            runs.setdefault(n_left, []).extend(starts)
            runs.setdefault(n_right, []).extend(start + n_left for start in starts)
        depths.append(merges)
    return depths


def _stack_runs(orders: Ints, merges: _Merges) -> tuple[Ints, Ints]:
    """The left and the right runs of merges, those of each merge below those of the one before."""
    left, right = (
        np.concatenate([orders[:, start + offset : start + offset + length] for start in merges.starts])
        for offset, length in ((0, merges.n_left), (merges.n_left, merges.n_right))
    )
    return left, right


def _run_together(merges: list[ArrayGenerator], n_rows: int) -> Generator[Comparisons, Floats, list[Ints]]:
    """Run merges in parallel: what each of them needs next is yielded together; returns the merged runs of each."""
    results: dict[int, Ints] = {}
    pending: dict[int, Comparisons] = {}

    def advance(index: int, answers: Floats | None) -> None:
        """Send answers to one merge (None starts it), and store what it needs next, or its result at the end."""
        try:
            pending[index] = next(merges[index]) if answers is None else merges[index].send(answers)
        except StopIteration as stop:
            pending.pop(index, None)
            results[index] = stop.value

    for index in range(len(merges)):
        advance(index, None)
    while pending:
        batch = list(pending.items())
        first, second, row = (np.concatenate(columns) for columns in zip(*pending.values(), strict=True))
        answers = yield Comparisons(first, second, row % n_rows)
        ends = np.cumsum([len(comparisons.first) for _, comparisons in batch])
        for (index, _), part in zip(batch, np.split(answers, ends[:-1]), strict=True):
            advance(index, part)
    return [results[index] for index in range(len(merges))]


def _merge_runs(left: Ints, right: Ints, search: BeamSearch) -> ArrayGenerator:
    """Merge B pairs of ranked runs, item by item from the best; a row of its comparisons is a pair.

    A state is the number of items taken from the left run: the next comparison depends on nothing else. Each state
    holds its most probable path, so that no comparison is needed twice.

    Args:
        left, right: shapes (B, n_left) and (B, n_right), the runs, best first.
    """
    n_left, n_right = left.shape[1], right.shape[1]
    state = np.arange(n_left + 1)
    log_probability = np.full((len(left), n_left + 1), -np.inf)
    log_probability[:, 0] = 0.0
    priority = np.zeros(log_probability.shape, dtype=np.intp)  # among equally probable paths, lower first
    came_from_left = np.empty((n_left + n_right, *log_probability.shape), dtype=bool)
    for step in range(n_left + n_right):
        n_right_taken = step - state
        is_open = (state < n_left) & (n_right_taken >= 0) & (n_right_taken < n_right)
        probability = np.full(log_probability.shape, np.nan)
        row, column = np.nonzero(is_open & np.isfinite(log_probability))
        if len(row):
            first, second = left[row, state[column]], right[row, n_right_taken[column]]
            probability[row, column] = yield Comparisons(first, second, row)
        balance = (state + 0.5) * n_right <= (n_right_taken + 0.5) * n_left  # without an answer, no half is favoured
        log_left, log_right = _log_outcomes(probability, balance, search)
        # Where one run is used up, the other's next item follows.
        log_left = np.where(is_open, log_left, np.where(state < n_left, 0.0, -np.inf))
        log_right = np.where(is_open, log_right, np.where(state < n_left, -np.inf, 0.0))
        log_probability, priority, came_from_left[step] = _extend_paths(
            log_probability, priority, log_left, log_right, search.beam
        )
    return _trace_back(came_from_left, left, right)


def _log_outcomes(probability: Floats, balance: Bools, search: BeamSearch) -> tuple[Floats, Floats]:
    """Log-probabilities of taking from the left and from the right run; -inf for an outcome that is not followed.

    Args:
        probability: shape (B, states), that the left run's next item is preferred; nan without an answer.
        balance: shape (states,), whether the left run is taken from without an answer.
    """
    is_missing = np.isnan(probability)
    p = np.clip(np.where(is_missing, 0.5, probability), MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    follows_both = ~is_missing & (np.abs(p - 0.5) < search.uncertainty) & (search.beam > 1)
    prefers_left = np.where(is_missing, balance, p >= 0.5)
    return (
        np.where(follows_both | prefers_left, np.log(p), -np.inf),
        np.where(follows_both | ~prefers_left, np.log(1 - p), -np.inf),
    )


def _extend_paths(
    log_probability: Floats, priority: Ints, log_left: Floats, log_right: Floats, beam: int
) -> tuple[Floats, Ints, Bools]:
    """Extend all paths by one item, and keep the `beam` most probable ones.

    Returns:
        Shape (B, states) each: log-probabilities, priorities, and whether a state was reached by taking from the left.
    """
    from_left, from_right = np.full_like(log_probability, -np.inf), log_probability + log_right
    from_left[:, 1:] = (log_probability + log_left)[:, :-1]
    left_priority = np.zeros_like(priority)
    left_priority[:, 1:] = 2 * priority[:, :-1]
    right_priority = 2 * priority + 1
    is_left_first = left_priority < right_priority
    came_from_left = (from_left > from_right) | ((from_left == from_right) & is_left_first)
    extended = np.maximum(from_left, from_right)
    if beam == 1:  # there is one path only
        return extended, priority, came_from_left
    is_from_both = np.isfinite(from_left) & np.isfinite(from_right)
    reached = np.where(
        is_from_both,
        np.minimum(left_priority, right_priority),
        np.where(np.isfinite(from_left), left_priority, right_priority),
    )
    ranking = np.argsort(np.lexsort((reached, -extended), axis=-1), axis=-1)
    return np.where(ranking < beam, extended, -np.inf), ranking, came_from_left


def _trace_back(came_from_left: Bools, left: Ints, right: Ints) -> Ints:
    """The merged runs, shape (B, n_left + n_right), from the steps by which each state was reached."""
    merged = np.empty((len(left), left.shape[1] + right.shape[1]), dtype=np.intp)
    rows, state = np.arange(len(left)), np.full(len(left), left.shape[1], dtype=np.intp)
    for step in reversed(range(merged.shape[1])):
        is_left = came_from_left[step, rows, state]
        state = state - is_left
        from_left = left[rows, np.minimum(state, left.shape[1] - 1)]
        from_right = right[rows, np.clip(step - state, 0, right.shape[1] - 1)]
        merged[:, step] = np.where(is_left, from_left, from_right)
    return merged


PairQuestion = tuple[int, int]
"""Two items, the first shown first. The answer is the probability in [0, 1] that it is preferred, nan if none."""

QuestionGenerator = Generator[list[PairQuestion], Sequence[float], list[int]]
"""Yields batches of questions, is sent one answer per question, and returns items, best first."""


@dataclass(frozen=True, slots=True)
class PairsRanking:
    """A ranking and what it took.

    Attributes:
        order: items, best first.
        asked: number of questions asked.
        failed: questions asked that had no answer.
        over_budget: questions not asked, since the budget was used up.
    """

    order: tuple[int, ...]
    asked: int
    failed: int
    over_budget: int

    @property
    def complete(self) -> bool:
        """Whether every comparison of the ranking had an answer."""
        return self.failed == self.over_budget == 0


def rank_with_pairs(
    items: Iterable[int],
    *,
    beam: int = 1,
    uncertainty: float = 0.1,
    calibrated: bool = False,
    budget: int | None = None,
) -> Generator[list[PairQuestion], Sequence[float], PairsRanking]:
    """Rank items by merge sort (PairS-greedy), or by a beam search over each merge (PairS-beam).

    See `sort_orders`. Merges at one depth run in parallel: their questions form one batch.

    Args:
        items: distinct; in the initial order.
        beam, uncertainty: see `BeamSearch`.
        calibrated: whether each comparison is asked in both orders and averaged.
        budget: most questions to ask, both orders counted; further comparisons have no answer.

    Returns:
        A generator of batches of questions, to which their answers are sent (see the module); its value is the ranking.

    Raises:
        ValueError: an item occurs twice, beam is below 1, uncertainty is not in [0, 0.5] or the budget is negative; on
            sending, the number of answers is wrong or one is not in [0, 1].
    """
    initial_order = list(items)
    if len(set(initial_order)) < len(initial_order):
        raise ValueError("items must be distinct")
    if budget is not None and budget < 0:
        raise ValueError(f"the budget must not be negative, but got {budget!r}")
    merge_sort = _ask(sort_orders(np.array([initial_order], dtype=np.intp), BeamSearch(beam, uncertainty)))
    return _limit_questions(_ask_both_orders(merge_sort) if calibrated else merge_sort, budget)


def _ask(sort: ArrayGenerator) -> QuestionGenerator:
    """The comparisons of a sort of one initial order, as a batch of questions."""
    try:
        comparisons = next(sort)
        while True:
            questions = list(zip(comparisons.first.tolist(), comparisons.second.tolist(), strict=True))
            comparisons = sort.send(np.array((yield questions), dtype=float))
    except StopIteration as stop:
        order: list[int] = stop.value[0].tolist()
        return order


def run_ranking(
    algorithm: Generator[list[PairQuestion], Sequence[float], PairsRanking],
    answer_questions: Callable[[list[PairQuestion]], Sequence[float]],
) -> PairsRanking:
    """Run a generator of `rank_with_pairs` to its end with a function that answers a batch of questions."""
    try:
        questions = next(algorithm)
        while True:
            questions = algorithm.send(answer_questions(questions))
    except StopIteration as stop:
        ranking: PairsRanking = stop.value
        return ranking


def _limit_questions(
    generator: QuestionGenerator, budget: int | None
) -> Generator[list[PairQuestion], Sequence[float], PairsRanking]:
    """Pass on a generator's questions up to the budget, check and count the answers, and return the ranking.

    Questions over the budget are not asked: they are answered with nan. Without a budget (None) all are asked.
    """
    n_asked = n_failed = n_over_budget = 0
    try:
        questions = next(generator)
        while True:
            allowed = questions if budget is None else questions[: budget - n_asked]
            answers = list((yield allowed)) if allowed else []
            n_questions = len(allowed)
            if len(answers) != n_questions:
                raise ValueError(f"{n_questions} questions need {n_questions} answers, but got {len(answers)}")
            invalid_answers = [answer for answer in answers if not (math.isnan(answer) or 0 <= answer <= 1)]
            if invalid_answers:
                raise ValueError(f"answers must be probabilities in [0, 1] or nan, but got {invalid_answers[0]!r}")
            n_asked += len(allowed)
            n_failed += sum(math.isnan(answer) for answer in answers)
            n_over_budget += len(questions) - len(allowed)
            questions = generator.send(answers + [math.nan] * (len(questions) - len(allowed)))
    except StopIteration as stop:
        return PairsRanking(tuple(stop.value), n_asked, n_failed, n_over_budget)


def _ask_both_orders(generator: QuestionGenerator) -> QuestionGenerator:
    """Ask each question of a generator in both orders, and send it the mean of the valid answers to both.

    The answer to the swapped question is the probability that j is preferred, so 1 minus it is the one of i.
    """
    try:
        questions = next(generator)
        while True:
            answers = yield [q for i, j in questions for q in ((i, j), (j, i))]
            questions = generator.send(
                [_mean_of_answered(p, 1 - q) for p, q in zip(answers[::2], answers[1::2], strict=True)]
            )
    except StopIteration as stop:
        order: list[int] = stop.value
        return order


def _mean_of_answered(p: float, q: float) -> float:
    """Mean of two probabilities; if one of them is nan, the one that is not; nan if both are."""
    if math.isnan(p) or math.isnan(q):
        return q if math.isnan(p) else p
    return (p + q) / 2


@dataclass(frozen=True, slots=True)
class PairsReplay:
    """Rankings from S initial orders of N items, and what they took.

    Attributes:
        orders: shape (S, N), items, best first.
        asked: shape (S,), number of questions asked.
        failed: shape (S,), questions asked that had no answer.
    """

    orders: Ints
    asked: Ints
    failed: Ints


def replay_pairs(
    preferences: ArrayLike,
    initial_orders: ArrayLike,
    *,
    beam: int = 1,
    uncertainty: float = 0.1,
    calibrated: bool = False,
) -> PairsReplay:
    """Rank items by merge sort with recorded answers, as `rank_with_pairs` does from each initial order.

    Args:
        preferences: shape (N, N), see `auditor.metrics.logic.consistency`.
        initial_orders: shape (S, N), permutations of the N items.
        beam, uncertainty: see `BeamSearch`.
        calibrated: whether each comparison is asked in both orders and averaged.

    Raises:
        ValueError: the preferences are not valid, an initial order is not a permutation of the items, beam is below 1,
            or uncertainty is not in [0, 0.5].
    """
    values, orders = as_preferences(preferences), np.array(initial_orders, dtype=np.intp)
    n = len(values)
    if orders.ndim != 2 or orders.shape[1] != n or (np.sort(orders, axis=1) != np.arange(n)).any():
        raise ValueError(f"initial orders must have the shape (S, {n}) and be permutations of the items")
    is_missing = np.isnan(values).astype(np.intp)
    probabilities, failed_by_pair, cost = values, is_missing, 1
    if calibrated:
        probabilities, failed_by_pair, cost = average_answered_orders(values), is_missing + is_missing.T, 2
    asked, failed = np.zeros((2, len(orders)), dtype=np.intp)
    sort = sort_orders(orders, BeamSearch(beam, uncertainty))
    try:
        first, second, row = next(sort)
        while True:
            asked += cost * np.bincount(row, minlength=len(orders))
            np.add.at(failed, row, failed_by_pair[first, second])
            first, second, row = sort.send(probabilities[first, second])
    except StopIteration as stop:
        return PairsReplay(stop.value, asked, failed)
