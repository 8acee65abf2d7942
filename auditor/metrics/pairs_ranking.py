"""PairS (COLM 2024): ranking by merge sort with a judge as comparator, in N log N questions.

The algorithm does not call a model: `rank_with_pairs` returns a generator that yields batches of questions, each of
which can be asked in parallel, and is sent the answers. It therefore works with blocking and with async callers. Its
questions depend only on the answers, so a run is resumed by starting it again and replaying the recorded answers.

    algorithm = rank_with_pairs(items)
    questions = next(algorithm)
    while True: questions = algorithm.send([await judge(first, second) for first, second in questions])

ends with StopIteration, whose value is the `PairsRanking`; `run_ranking` does the same for a plain function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from auditor.metrics.pairs_merge import ArrayGenerator, BeamSearch, sort_orders

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

    See `auditor.metrics.pairs_merge.sort_orders`. Merges at one depth run in parallel: their questions form one batch.

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
            _check_answers(answers, len(allowed))
            n_asked += len(allowed)
            n_failed += sum(math.isnan(answer) for answer in answers)
            n_over_budget += len(questions) - len(allowed)
            questions = generator.send(answers + [math.nan] * (len(questions) - len(allowed)))
    except StopIteration as stop:
        return PairsRanking(tuple(stop.value), n_asked, n_failed, n_over_budget)


def _check_answers(answers: Sequence[float], n_questions: int) -> None:
    """Raise ValueError unless there is one answer per question, each in [0, 1] or nan."""
    if len(answers) != n_questions:
        raise ValueError(f"{n_questions} questions need {n_questions} answers, but got {len(answers)}")
    invalid_answers = [answer for answer in answers if not (math.isnan(answer) or 0 <= answer <= 1)]
    if invalid_answers:
        raise ValueError(f"answers must be probabilities in [0, 1] or nan, but got {invalid_answers[0]!r}")


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
