"""A progress bar for the whole audit: rate, cost so far, time left. Hidden if standard error is no terminal."""

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
    """Shows the progress of a run; implements `auditor.agents.run_context.ProgressReporter`.

    The total grows as stages are planned: the number of reviews is known only after the traces.
    """

    def __init__(self, *, expected_reviews: int = 0) -> None:
        """Show an empty bar.

        Args:
            expected_reviews: expected calls of the review stage, so that the bar does not jump back.
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
        """Show the stage that the graph has entered."""
        self._progress.update(self._task, description=stage)

    def on_notice(self, text: str) -> None:
        """Print a notice on a line of its own."""
        print_message(text)

    def on_calls_planned(self, stage: str, calls: int, recorded: int) -> None:
        """Add planned calls of a stage to the total; recorded ones count as completed."""
        self._planned_by_stage[stage] += calls
        self.n_recorded += recorded
        self._n_completed += recorded
        self._update_bar()

    def on_answer(self, stage: str, answer: Answer) -> None:
        """Count a completed call, its outcome and its cost."""
        self.n_calls += 1
        self._n_completed += 1
        self.outcomes[answer.outcome.value] += 1
        self.cost_usd += answer.cost_usd or 0.0
        self.n_unpriced += answer.outcome.is_answer and answer.cost_usd is None
        self._update_bar()

    def on_steps_completed(self, stage: str, steps: int) -> None:
        """Count completed steps that were no calls."""
        self._n_completed += steps
        self._update_bar()

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._start_time

    @property
    def cost_text(self) -> str:
        """Cost of this run in USD, and the number of answers without a known price."""
        unpriced_note = f" + {self.n_unpriced} of unknown price" if self.n_unpriced else ""
        return f"${self.cost_usd:.4f}{unpriced_note}"

    def _update_bar(self) -> None:
        """Redraw the bar; the total counts at least the expected reviews."""
        reviews = max(self._planned_by_stage["review"], self._expected_reviews)
        total = sum(self._planned_by_stage.values()) - self._planned_by_stage["review"] + reviews
        rate = f"{self.n_calls / max(self.elapsed_seconds, 1e-9):.1f}/s" if self.n_calls else ""
        self._progress.update(self._task, total=total, completed=self._n_completed, rate=rate, cost=self.cost_text)


@contextmanager
def show_download_bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar for a download; yields a function that takes the bytes so far and in all (None if unknown)."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(name, total=None)
        yield lambda n_bytes, total_bytes: bar.update(task, completed=n_bytes, total=total_bytes)


@contextmanager
def show_embedding_bar() -> Iterator[Callable[[int, int], None]]:
    """Show a bar for embedding texts; yields a function of the numbers of newly planned and newly embedded texts."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("embed", total=0)

        def on_progress(n_added: int, n_embedded: int) -> None:
            """Add newly planned texts to the bar's total, and newly embedded ones to its progress."""
            bar.update(task, total=(bar.tasks[0].total or 0) + n_added, advance=n_embedded)

        yield on_progress
