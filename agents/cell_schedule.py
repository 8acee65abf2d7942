"""The order of work on an audit's cells: which batch a model answers, and which answers it reviews, next.

A model's answers to a batch of cells are reviewed as soon as they are complete, whatever other models have answered.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from auditor.config import AuditConfig

MAX_CELLS_PER_BATCH = 32
"""Bounds the memory of a batch. Each batch takes about 0.5 ms of CPU, and some queries."""
MIN_BATCHES = 20
"""Smaller audits have smaller batches, so that judges need not wait for answers they could have."""


class Role(StrEnum):
    """What a lane of a model works on."""

    ANSWER = "answer"
    """Its own answers."""
    REVIEW = "review"
    """The answers of others."""


class Task(StrEnum):
    """What a model is asked about a batch of cells."""

    ANSWER = "answer"
    """Its answers to the direct questions."""
    REVIEW = "review"
    """Its verdicts on an author's traces."""
    GUESS = "guess"
    """Its guesses of where an author's traces come from."""
    RESTATE = "restate"
    """An author's traces in other words."""
    REVIEW_RESTATED = "review_restated"
    """Its verdicts on an author's restated traces."""


class Step(NamedTuple):
    """A model's next piece of work.

    Attributes:
        author: the model whose traces it is about.
        start, stop: range of cells, [start, stop), in the order of asking.
    """

    task: Task
    author: str
    start: int
    stop: int


class Lane(NamedTuple):
    """One of several loops over the steps of a model."""

    model: str
    role: Role


class CellSchedule:
    """The steps of a run that are open, by model. It holds names and positions, no texts.

    Steps on one batch depend on each other only: an author's answers come before their reviews, and restated traces
    before the verdicts on them. Reviews wait for more in two cases. With `target_width` they wait until it is known
    which cells are asked about, by `release_reviews`. With `[batch]` they wait for all answers of the author, since a
    provider returns its batches as a whole, and small ones would be sent at full price.

    Attributes:
        answers_complete: set when no more answers are asked for.
    """

    def __init__(
        self,
        config: AuditConfig,
        n_cells: int,
        max_concurrent_calls: Callable[[str], int],
        stop_event: threading.Event,
    ) -> None:
        """Create a schedule without steps.

        Args:
            config: of the audit.
            n_cells: number of its cells.
            max_concurrent_calls: how many calls may be in flight to a model.
            stop_event: once set, no further step is taken.
        """
        self._config, self._stop_event, self._max_concurrent_calls = config, stop_event, max_concurrent_calls
        # Calls to a provider's batch API are gathered until none has come for a time, so they come together.
        min_batches = MIN_BATCHES if config.batch is None else 1
        self.cells_per_batch = max(1, min(MAX_CELLS_PER_BATCH, n_cells // min_batches))
        self.answers_complete = asyncio.Event()
        self._holds_reviews = config.direct.target_width is not None
        self._held: dict[str, list[Step]] = {model.name: [] for model in config.models}
        self._n_unanswered = dict.fromkeys(self._held, 0)
        self._n_open = 0
        self._n_open_by_start = Counter[int]()
        self._steps: defaultdict[Lane, deque[Step]] = defaultdict(deque)
        self._waiting: defaultdict[Lane, deque[asyncio.Future[None]]] = defaultdict(deque)
        self._begun_tasks: set[Task] = set()
        if not config.probes.direct:
            self.answers_complete.set()

    def add_answers(self, start: int, stop: int) -> None:
        """Let every model answer the cells from `start` to `stop`, exclusive."""
        for first in range(start, stop, self.cells_per_batch):
            for model in self._config.models:
                self._n_unanswered[model.name] += 1
                self._add(model.name, Step(Task.ANSWER, model.name, first, min(first + self.cells_per_batch, stop)))

    def release_reviews(self) -> None:
        """No more answers are asked for; add the reviews that waited for this."""
        self._holds_reviews = False
        self.answers_complete.set()
        for author in self._held:
            self._add_held(author)

    def lanes(self) -> Iterator[Lane]:
        """Yield the lanes that work on the open steps and on those that follow from them, until there are none.

        They are enough to keep all concurrent requests of a model in flight, so they do not grow with the cells.
        """
        samples, probe = self._config.direct.guaranteed_samples, self._config.probes.review
        n_batches = sum(self._n_unanswered.values()) + sum(map(len, self._steps.values()))
        for model, n_unanswered in self._n_unanswered.items():
            yield from self._lanes_of(Lane(model, Role.ANSWER), n_unanswered, samples)
        reviewers = [] if self._holds_reviews else [judge.name for judge in self._config.judge_models]
        if reviewers and probe.rewriter is not None:
            reviewers.append(probe.rewriter)
        for model in dict.fromkeys(reviewers):
            yield from self._lanes_of(
                Lane(model, Role.REVIEW), n_batches, samples if probe.traces == "all" else min(probe.traces, samples)
            )

    def _lanes_of(self, lane: Lane, max_lanes: int, samples_per_cell: int) -> list[Lane]:
        """The lanes of a model and role: those that it takes for twice as many calls as may be in flight."""
        calls_per_batch = self.cells_per_batch * samples_per_cell
        return [lane] * min(max_lanes, 2 * self._max_concurrent_calls(lane.model) // calls_per_batch + 2)

    async def take(self, lane: Lane) -> Step | None:
        """Wait for the next step of a lane; None once there will be none, or the run was stopped."""
        steps = self._steps[lane]
        while not self._stop_event.is_set():
            if steps:
                return steps.popleft()
            if not self._n_open or lane.role is Role.ANSWER:
                return None
            changed = asyncio.get_running_loop().create_future()
            self._waiting[lane].append(changed)
            await changed
        return None

    def begins(self, task: Task) -> bool:
        """Whether no step of this task has begun before."""
        is_first = task not in self._begun_tasks
        self._begun_tasks.add(task)
        return is_first

    def complete(self, step: Step) -> bool:
        """Add the steps that follow from a step that a lane has finished; none if the run was stopped.

        Returns:
            Whether this was the last step on its batch of cells: all answers and reviews are there. Always False where
            reviews wait for other batches.
        """
        if step.task is Task.ANSWER:
            self._n_unanswered[step.author] -= 1
            self._held[step.author].append(step)
            if not self._holds_reviews and not any(self._n_unanswered.values()):
                self.answers_complete.set()
            self._add_held(step.author)
        elif step.task is Task.RESTATE:
            for judge in self._judges(step.author):
                if judge != self._config.probes.review.rewriter:
                    self._add(judge, step._replace(task=Task.REVIEW_RESTATED))
        self._n_open -= 1
        self._n_open_by_start[step.start] -= 1
        if self._stop_event.is_set():
            self.answers_complete.set()
        if not self._n_open or self._stop_event.is_set():
            for lane, waiting in self._waiting.items():
                self._wake(lane, len(waiting))
        waits_for_others = self._config.direct.target_width is not None or self._config.batch is not None
        return not (self._n_open_by_start[step.start] or waits_for_others or self._stop_event.is_set())

    def _add_held(self, author: str) -> None:
        """Add the reviews of an author's answers, unless they still have to wait."""
        if self._holds_reviews or (self._config.batch is not None and self._n_unanswered[author]):
            return
        steps, self._held[author] = self._held[author], []
        probe = self._config.probes.review
        for step in steps:
            for judge in self._judges(author):
                if not self._config.panel.adaptive:
                    self._add(judge, step._replace(task=Task.REVIEW))
                if probe.guess:
                    self._add(judge, step._replace(task=Task.GUESS))
            if self._config.judge_models and probe.rewrite == "neutral" and probe.rewriter not in (None, author):
                self._add(probe.rewriter, step._replace(task=Task.RESTATE))

    def _judges(self, author: str) -> Sequence[str]:
        """Names of the judges that may review an author's traces."""
        return [judge.name for judge in self._config.judges_of(author)]

    def _add(self, model: str, step: Step) -> None:
        """Add a step to those of a model, unless the run was stopped."""
        if not self._stop_event.is_set():
            lane = Lane(model, Role.ANSWER if step.task is Task.ANSWER else Role.REVIEW)
            self._n_open += 1
            self._n_open_by_start[step.start] += 1
            self._steps[lane].append(step)
            self._wake(lane, 1)

    def _wake(self, lane: Lane, n_lanes: int) -> None:
        """Let some lanes that wait look for a step."""
        waiting = self._waiting[lane]
        while waiting and n_lanes:
            changed = waiting.popleft()
            if not changed.done():  # it was cancelled
                changed.set_result(None)
                n_lanes -= 1
