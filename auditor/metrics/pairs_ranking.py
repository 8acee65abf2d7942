"""PairS (COLM 2024): ranking by merge sort with a judge as comparator, in N log N questions.

The algorithm asks and does not call: `pairs` is a generator that yields a batch of questions, all of which may be put
at once, and is sent their answers. So any caller can drive it, blocking or not. What it asks depends on nothing but the
answers, so it is resumed by starting it anew and answering from what was recorded.

    algorithm = pairs(items)
    questions = next(algorithm)
    while True: questions = algorithm.send([await judge(first, second) for first, second in questions])

ends with StopIteration, whose value is the `PairsRanking`; `drive` does the same for a plain function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

PairQuestion = tuple[int, int]
"""Two items; the first is shown first. The answer is the probability in [0, 1] that it is preferred, nan if none."""

QuestionGenerator = Generator[list[PairQuestion], Sequence[float], list[int]]

_MIN_PROBABILITY = 1e-6  # a judge's 0 or 1 must not outweigh all its other answers


@dataclass(frozen=True, slots=True)
class PairsRanking:
    """Items, best first; the questions `asked`; those of them, and those beyond the budget, that had no answer."""

    order: tuple[int, ...]
    asked: int
    failed: int
    over_budget: int

    @property
    def complete(self) -> bool:
        """Whether every comparison that the ranking rests on had an answer."""
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

    Merges of one level run side by side: their questions come in one batch. A comparison without an answer puts the two
    items by how far each merged half is used up, which favours neither half.

    Args:
        items: distinct; their order is the one to start from.
        beam: ways to merge that are followed at a time; 1 is greedy.
        uncertainty: with a beam, both outcomes are followed where the probability is nearer to 1/2 than this.
        calibrated: whether each comparison is asked in both orders and averaged.
        budget: the most questions to ask, both orders counted; from then on there is no answer.

    Raises:
        ValueError: an item comes twice, beam is below 1, uncertainty is not in [0, 0.5] or the budget is negative; on
            sending, the number of answers is wrong or one is not in [0, 1].
    """
    start = list(items)
    if len(set(start)) < len(start):
        raise ValueError("items must be distinct")
    if beam < 1 or not 0 <= uncertainty <= 0.5 or (budget is not None and budget < 0):
        raise ValueError(f"beam >= 1, uncertainty in [0, 0.5], budget >= 0; got {beam!r}, {uncertainty!r}, {budget!r}")
    sort = _merge_sort(start, lambda left, right: _merge_runs(left, right, beam, uncertainty))
    return _limit_questions(_ask_both_orders(sort) if calibrated else sort, budget)


def run_ranking(
    algorithm: Generator[list[PairQuestion], Sequence[float], PairsRanking],
    answer_questions: Callable[[list[PairQuestion]], Sequence[float]],
) -> PairsRanking:
    """Run `pairs` to its end with a function that answers a batch of questions."""
    try:
        questions = next(algorithm)
        while True:
            questions = algorithm.send(answer_questions(questions))
    except StopIteration as end:
        result: PairsRanking = end.value
        return result


def _limit_questions(
    generator: QuestionGenerator, budget: int | None
) -> Generator[list[PairQuestion], Sequence[float], PairsRanking]:
    """Checks and counts answers, and lets no more questions through than the budget."""
    asked = failed = over = 0
    try:
        questions = next(generator)
        while True:
            allowed = questions if budget is None else questions[: budget - asked]
            answers = list((yield allowed)) if allowed else []
            _check_answers(answers, len(allowed))
            asked += len(allowed)
            failed += sum(math.isnan(answer) for answer in answers)
            over += len(questions) - len(allowed)
            questions = generator.send(answers + [math.nan] * (len(questions) - len(allowed)))
    except StopIteration as end:
        return PairsRanking(tuple(end.value), asked, failed, over)


def _check_answers(answers: Sequence[float], n_questions: int) -> None:
    if len(answers) != n_questions:
        raise ValueError(f"{n_questions} questions need {n_questions} answers, but got {len(answers)}")
    wrong = [answer for answer in answers if not (math.isnan(answer) or 0 <= answer <= 1)]
    if wrong:
        raise ValueError(f"answers must be probabilities in [0, 1] or nan, but got {wrong[0]!r}")


def _ask_both_orders(generator: QuestionGenerator) -> QuestionGenerator:
    """Each question also the other way round; the mean of what was answered goes on."""
    try:
        questions = next(generator)
        while True:
            answers = yield [q for i, j in questions for q in ((i, j), (j, i))]
            questions = generator.send(
                [_mean_of_answered(p, 1 - q) for p, q in zip(answers[::2], answers[1::2], strict=True)]
            )
    except StopIteration as end:
        order: list[int] = end.value
        return order


def _mean_of_answered(p: float, q: float) -> float:
    if math.isnan(p) or math.isnan(q):
        return q if math.isnan(p) else p
    return (p + q) / 2


def _merge_sort(items: list[int], merge: Callable[[list[int], list[int]], QuestionGenerator]) -> QuestionGenerator:
    """Bottom up, level by level; an odd run waits for the next level."""
    runs = [[item] for item in items]
    while len(runs) > 1:
        waiting = runs[len(runs) // 2 * 2 :]
        merges = [merge(left, right) for left, right in zip(runs[::2], runs[1::2], strict=False)]
        runs = [*(yield from _interleave_merges(merges)), *waiting]
    return runs[0] if runs else []


def _interleave_merges(
    merges: list[QuestionGenerator],
) -> Generator[list[PairQuestion], Sequence[float], list[list[int]]]:
    """Advance all at once: one batch holds what each of them asks next."""
    done: dict[int, list[int]] = {}
    wanted: dict[int, list[PairQuestion]] = {}

    def advance(index: int, answers: Sequence[float] | None) -> None:
        try:
            wanted[index] = next(merges[index]) if answers is None else merges[index].send(answers)
        except StopIteration as end:
            wanted.pop(index, None)
            done[index] = end.value

    for index in range(len(merges)):
        advance(index, None)
    while wanted:
        batch = list(wanted.items())
        answers = yield [question for _, questions in batch for question in questions]
        used = 0
        for index, questions in batch:
            advance(index, answers[used : used + len(questions)])
            used += len(questions)
    return [done[index] for index in range(len(merges))]


class _MergePath(NamedTuple):
    """A way to merge: its log probability, and from which half (True: left) each item came."""

    log_probability: float
    takes_left: tuple[bool, ...]


def _merge_runs(left: list[int], right: list[int], beam: int, uncertainty: float) -> QuestionGenerator:
    """Merge two ranked runs, item by item from the best.

    What is asked next depends only on how many items of the left run are placed, so of the paths that agree in this the
    most probable one is enough, and no comparison is asked twice.
    """
    paths = {0: _MergePath(0.0, ())}
    for step in range(len(left) + len(right)):
        open_ = [a for a in paths if a < len(left) and step - a < len(right)]
        answers = (yield [(left[a], right[step - a]) for a in open_]) if open_ else []
        p = dict(zip(open_, answers, strict=True))
        following: dict[int, _MergePath] = {}
        for a, path in paths.items():
            for take_left, chance in _next_steps(a, step - a, len(left), len(right), p.get(a), beam, uncertainty):
                longer = _MergePath(path.log_probability + math.log(chance), (*path.takes_left, take_left))
                key = a + take_left
                if key not in following or longer.log_probability > following[key].log_probability:
                    following[key] = longer
        best = sorted(following, key=lambda key: -following[key].log_probability)[:beam]
        paths = {key: following[key] for key in best}
    halves = (iter(right), iter(left))
    return [next(halves[take_left]) for take_left in paths[len(left)].takes_left]


def _next_steps(
    n_left_placed: int,
    n_right_placed: int,
    n_left: int,
    n_right: int,
    probability: float | None,
    beam: int,
    uncertainty: float,
) -> list[tuple[bool, float]]:
    """The outcomes to follow after a items of the left run and b of the right, with their probabilities."""
    if probability is None:
        return [(n_left_placed < n_left, 1.0)]
    if math.isnan(probability):
        return [((n_left_placed + 0.5) * n_right <= (n_right_placed + 0.5) * n_left, 0.5)]
    probability = min(max(probability, _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)
    both = [(True, probability), (False, 1 - probability)]
    return both if beam > 1 and abs(probability - 0.5) < uncertainty else [both[probability < 0.5]]
