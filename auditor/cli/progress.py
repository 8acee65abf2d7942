"""One progress bar over the whole audit: rate, cost so far, time left. Quiet when nobody watches a terminal."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from auditor.cli.output import say
from auditor.domain import Answer


class RunProgress:
    """Watches a run; implements `auditor.agents.run_context.Progress`.

    The total grows as stages are planned: how many reviews there will be is known only when the traces are there.
    """

    def __init__(self, *, judged: int = 0) -> None:
        """Show an empty bar.

        Args:
            judged: calls of the review stage that must be expected, so that the bar does not jump back.
        """
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.outcomes: Counter[str] = Counter()
        self.asked = 0
        self.recorded = 0
        self.cost_usd = 0.0
        self.unpriced = 0
        self._planned: Counter[str] = Counter()
        self._expected = judged
        self._done = 0
        self._started = time.monotonic()
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
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def entered(self, stage: str) -> None:
        """The graph entered a stage."""
        self._progress.update(self._task, description=stage)

    def noted(self, text: str) -> None:
        """Something to know, on a line of its own."""
        say(text)

    def planned(self, stage: str, calls: int, recorded: int) -> None:
        """More calls of a stage; those recorded before count as done."""
        self._planned[stage] += calls
        self.recorded += recorded
        self._done += recorded
        self._show()

    def answered(self, stage: str, answer: Answer) -> None:
        """A call ended."""
        self.asked += 1
        self._done += 1
        self.outcomes[answer.outcome.value] += 1
        self.cost_usd += answer.cost_usd or 0.0
        self.unpriced += answer.outcome.is_answer and answer.cost_usd is None
        self._show()

    def worked(self, stage: str, n: int) -> None:
        """Steps that were no calls."""
        self._done += n
        self._show()

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return time.monotonic() - self._started

    @property
    def cost(self) -> str:
        """What this run has cost, as far as prices are known."""
        unknown = f" + {self.unpriced} of unknown price" if self.unpriced else ""
        return f"${self.cost_usd:.4f}{unknown}"

    def _show(self) -> None:
        reviews = max(self._planned["review"], self._expected)
        total = sum(self._planned.values()) - self._planned["review"] + reviews
        rate = f"{self.asked / max(self.seconds, 1e-9):.1f}/s" if self.asked else ""
        self._progress.update(self._task, total=total, completed=self._done, rate=rate, cost=self.cost)


@contextmanager
def download_bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar for a download, as a function that is told the bytes so far and in all."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def embedding_bar() -> Iterator[Callable[[int, int], None]]:
    """A bar for embedding texts, as a function that is told texts to come and texts that are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("embed", total=0)

        def told(more: int, done: int) -> None:
            bar.update(task, total=(bar.tasks[0].total or 0) + more, advance=done)

        yield told
