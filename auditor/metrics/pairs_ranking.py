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
from typing import NamedTuple

PairQuestion = tuple[int, int]
"""Two items, the first shown first. The answer is the probability in [0, 1] that it is preferred, nan if none."""

QuestionGenerator = Generator[list[PairQuestion], Sequence[float], list[int]]
"""Yields batches of questions, is sent one answer per question, and returns items, best first."""

MIN_PROBABILITY = 1e-6  # a judge's 0 or 1 must not outweigh all its other answers


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

    Merges of one level run in parallel: their questions form one batch. A comparison without an answer takes the next
    item from the half of which a smaller share is used up, which favours neither half.

    Args:
        items: distinct; in the initial order.
        beam: number of partial merges to follow; 1 is greedy.
        uncertainty: with a beam, both outcomes are followed where the probability is closer to 1/2 than this.
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
    if beam < 1 or not 0 <= uncertainty <= 0.5 or (budget is not None and budget < 0):
        raise ValueError(f"beam >= 1, uncertainty in [0, 0.5], budget >= 0; got {beam!r}, {uncertainty!r}, {budget!r}")
    merge_sort = _merge_sort(initial_order, lambda left, right: _merge_runs(left, right, beam, uncertainty))
    return _limit_questions(_ask_both_orders(merge_sort) if calibrated else merge_sort, budget)


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


def _merge_sort(items: list[int], merge: Callable[[list[int], list[int]], QuestionGenerator]) -> QuestionGenerator:
    """Bottom-up merge sort, level by level; returns the items, best first, when the generator ends.

    A run is a list of ranked items. Neighbouring runs are merged; a run without a neighbour waits for the next level.

    Args:
        merge: from the left and the right run to a generator of the questions of their merge.
    """
    runs = [[item] for item in items]
    while len(runs) > 1:
        odd_run = runs[len(runs) // 2 * 2 :]
        merges = [merge(left, right) for left, right in zip(runs[::2], runs[1::2], strict=False)]
        runs = [*(yield from _interleave_merges(merges)), *odd_run]
    return runs[0] if runs else []


def _interleave_merges(
    merges: list[QuestionGenerator],
) -> Generator[list[PairQuestion], Sequence[float], list[list[int]]]:
    """Run several merges in parallel: a batch holds the next questions of each of them.

    Returns the merged runs, in the order of the merges, when the generator ends.
    """
    merged_runs: dict[int, list[int]] = {}
    pending_questions: dict[int, list[PairQuestion]] = {}

    def advance(index: int, answers: Sequence[float] | None) -> None:
        """Send answers to one merge (None starts it), and store its next questions, or its merged run at the end."""
        try:
            pending_questions[index] = next(merges[index]) if answers is None else merges[index].send(answers)
        except StopIteration as stop:
            pending_questions.pop(index, None)
            merged_runs[index] = stop.value

    for index in range(len(merges)):
        advance(index, None)
    while pending_questions:
        batch = list(pending_questions.items())
        answers = yield [question for _, questions in batch for question in questions]
        n_used = 0
        for index, questions in batch:
            advance(index, answers[n_used : n_used + len(questions)])
            n_used += len(questions)
    return [merged_runs[index] for index in range(len(merges))]


class _MergePath(NamedTuple):
    """A partial merge: its log probability, and for each item taken whether it came from the left run."""

    log_probability: float
    takes_left: tuple[bool, ...]


def _merge_runs(left: list[int], right: list[int], beam: int, uncertainty: float) -> QuestionGenerator:
    """Merge two ranked runs, item by item from the best, by beam search.

    The next question depends only on the number of items taken from the left run. Of all paths with the same number,
    only the most probable is kept, and no comparison is asked twice.
    """
    paths = {0: _MergePath(0.0, ())}  # by the number of items taken from the left run
    for step in range(len(left) + len(right)):
        undecided = [
            n_left_placed for n_left_placed in paths if n_left_placed < len(left) and step - n_left_placed < len(right)
        ]
        answers = (
            (yield [(left[n_left_placed], right[step - n_left_placed]) for n_left_placed in undecided])
            if undecided
            else []
        )
        probabilities = dict(zip(undecided, answers, strict=True))
        next_paths: dict[int, _MergePath] = {}
        for n_left_placed, path in paths.items():
            for take_left, probability in _next_steps(
                n_left_placed,
                step - n_left_placed,
                len(left),
                len(right),
                probabilities.get(n_left_placed),
                beam,
                uncertainty,
            ):
                extended = _MergePath(path.log_probability + math.log(probability), (*path.takes_left, take_left))
                key = n_left_placed + take_left  # True counts as 1
                if key not in next_paths or extended.log_probability > next_paths[key].log_probability:
                    next_paths[key] = extended
        best_keys = sorted(next_paths, key=lambda key: -next_paths[key].log_probability)[:beam]
        paths = {key: next_paths[key] for key in best_keys}
    runs = (iter(right), iter(left))  # indexed by take_left: False is 0, True is 1
    return [next(runs[take_left]) for take_left in paths[len(left)].takes_left]


def _next_steps(
    n_left_placed: int,
    n_right_placed: int,
    n_left: int,
    n_right: int,
    probability: float | None,
    beam: int,
    uncertainty: float,
) -> list[tuple[bool, float]]:
    """The outcomes to follow from a partial merge, as (take from the left run, probability).

    Args:
        n_left_placed, n_right_placed: items already taken from each run.
        n_left, n_right: lengths of the runs.
        probability: that the left run's next item is preferred; None where one run is used up, nan without an answer.
    """
    if probability is None:
        return [(n_left_placed < n_left, 1.0)]
    if math.isnan(probability):
        # Without an answer, take from the run of which the smaller share is used up.
        return [((n_left_placed + 0.5) * n_right <= (n_right_placed + 0.5) * n_left, 0.5)]
    probability = min(max(probability, MIN_PROBABILITY), 1 - MIN_PROBABILITY)
    outcomes = [(True, probability), (False, 1 - probability)]
    # outcomes[probability < 0.5] is the more probable one: False is 0, True is 1.
    return outcomes if beam > 1 and abs(probability - 0.5) < uncertainty else [outcomes[probability < 0.5]]
