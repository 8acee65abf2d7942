"""One progress bar over the whole audit: rate, cost so far, time left. Quiet when nobody watches a terminal."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from auditor.cli.output import print_message
from auditor.domain import Answer


class RunProgress:
    """Watches a run; implements `auditor.agents.run_context.Progress`.

    The total grows as stages are planned: how many reviews there will be is known only when the traces are there.
    """

    def __init__(self, *, expected_reviews: int = 0) -> None:
        """Show an empty bar.

        Args:
            judged: calls of the review stage that must be expected, so that the bar does not jump back.
        """
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.outcomes: Counter[str] = Counter()
        self.n_calls = 0
        self.n_recorded = 0
        self.cost_usd = 0.0
        self.n_unpriced = 0
        self._planned_by_stage: Counter[str] = Counter()
        self._expected_reviews = expected_reviews
        self._n_completed = 0
        self._start_time = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description:<8}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[cost]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task("plan", total=None, rate="", cost="")

    def __enter__(self) -> RunProgress:
        self._progress.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_stage_entered(self, stage: str) -> None:
        """The graph entered a stage."""
        self._progress.update(self._task, description=stage)

    def on_notice(self, text: str) -> None:
        """Something to know, on a line of its own."""
        print_message(text)

    def on_calls_planned(self, stage: str, calls: int, recorded: int) -> None:
        """More calls of a stage; those recorded before count as done."""
        self._planned_by_stage[stage] += calls
        self.n_recorded += recorded
        self._n_completed += recorded
        self._update_bar()

    def on_answer(self, stage: str, answer: Answer) -> None:
        """A call ended."""
        self.n_calls += 1
        self._n_completed += 1
        self.outcomes[answer.outcome.value] += 1
        self.cost_usd += answer.cost_usd or 0.0
        self.n_unpriced += answer.outcome.is_answer and answer.cost_usd is None
        self._update_bar()

    def on_steps_completed(self, stage: str, steps: int) -> None:
        """Steps that were no calls."""
        self._n_completed += steps
        self._update_bar()

    @property
    def elapsed_seconds(self) -> float:
        """Time since the run began."""
        return time.monotonic() - self._start_time

    @property
    def cost_text(self) -> str:
        """What this run has cost, as far as prices are known."""
        unknown = f" + {self.n_unpriced} of unknown price" if self.n_unpriced else ""
        return f"${self.cost_usd:.4f}{unknown}"

    def _update_bar(self) -> None:
        reviews = max(self._planned_by_stage["review"], self._expected_reviews)
        total = sum(self._planned_by_stage.values()) - self._planned_by_stage["review"] + reviews
        rate = f"{self.n_calls / max(self.elapsed_seconds, 1e-9):.1f}/s" if self.n_calls else ""
        self._progress.update(self._task, total=total, completed=self._n_completed, rate=rate, cost=self.cost_text)


@contextmanager
def show_download_bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar for a download, as a function that is told the bytes so far and in all."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def show_embedding_bar() -> Iterator[Callable[[int, int], None]]:
    """A bar for embedding texts, as a function that is told texts to come and texts that are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("embed", total=0)

        def told(more: int, done: int) -> None:
            bar.update(task, total=(bar.tasks[0].total or 0) + more, advance=done)

        yield told
