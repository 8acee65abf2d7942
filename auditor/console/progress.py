"""Progress of a run: one bar for each stage on a terminal, and a line every 30 seconds elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from auditor.config.installed_probes import find_progress_label
from auditor.console.output import print_message
from auditor.domain import Answer, Outcome
from auditor.input_files import report_reading
from auditor.lazy_imports import import_when_used

if TYPE_CHECKING:
    from rich.progress import TaskID

if not TYPE_CHECKING:
    rich_console = import_when_used("rich.console")
    rich_progress = import_when_used("rich.progress")
else:
    import rich.console as rich_console
    import rich.progress as rich_progress

LINE_INTERVAL_S = 30.0
"""Time between two lines where standard error is not a terminal."""
STAGE_LABELS = {
    "plan": "Planning",
    "preflight": "Testing models",
    "elicit": "Asking models",
    "logprobs": "Log-probabilities",
    "measure": "Computing scores",
    "embed": "Embedding texts",
    "review": "Reviewing answers",
    "detect": "Finding conflicts",
    "resolve": "Resolving conflicts",
    "person": "Waiting for people",
    "report": "Finishing",
}
LONE_STAGES = frozenset({"plan", "preflight", "measure", "detect", "resolve", "report"})
"""Stages beside which no other one runs."""

WIDE_TERMINAL = 100
"""Columns of a terminal from which on bars are drawn wider."""
TEXT_COLUMNS = ("count", "rate", "cost", "time_left", "unusable")
"""Texts beside a bar, from left to right; each is a property of `StageProgress`."""


@dataclass
class StageProgress:
    """Progress of one stage.

    Attributes:
        label: what the stage does.
        expected: number of calls that are expected before they are planned.
        planned: number of calls and steps that are planned so far, recorded ones included.
        completed: number of these that are completed, recorded ones included.
        n_answers: number of calls that were completed in this run.
        n_unusable: number of these whose outcome is not `ok`.
        cost_usd: their known cost, in US dollars.
        is_over: whether all calls of the stage are planned, since a stage that waits for it has begun.
    """

    label: str
    expected: int = 0
    planned: int = 0
    completed: int = 0
    n_answers: int = 0
    n_unusable: int = 0
    cost_usd: float = 0.0
    is_over: bool = False
    started_s: float = field(default_factory=time.monotonic)

    @property
    def total(self) -> int:
        """Number of calls and steps in all."""
        return self.planned if self.is_over else max(self.planned, self.expected)

    @property
    def is_running(self) -> bool:
        """Whether calls of the stage are left."""
        return not self.is_over and self.completed < self.total

    @property
    def count_text(self) -> str:
        """Completed calls and steps of all; empty if the stage has none."""
        return f"{self.completed} of {self.total}" if self.total else ""

    @property
    def rate_text(self) -> str:
        """Calls per second of this run; empty before the first."""
        return f"{self._rate:.1f}/s" if self.n_answers else ""

    @property
    def cost_text(self) -> str:
        """Known cost in this run."""
        return f"${self.cost_usd:.4f}" if self.n_answers else ""

    @property
    def time_left_text(self) -> str:
        """Expected time to the end of the stage; empty if it is not known or over."""
        n_left = self.total - self.completed
        return f"{format_duration(n_left / self._rate)} left" if self.n_answers and n_left > 0 else ""

    @property
    def unusable_text(self) -> str:
        """Number of answers without a usable result; empty if there are none."""
        return f"{self.n_unusable} unusable" if self.n_unusable else ""

    def describe(self) -> str:
        """One line without a bar, such as `Asking models: 12 of 30, 0.5/s, $0.0012, 36 s left`."""
        texts = filter(None, (getattr(self, f"{name}_text") for name in TEXT_COLUMNS))
        return f"{self.label}: {', '.join(texts)}" if self.total else f"{self.label} …"

    @property
    def _rate(self) -> float:
        return self.n_answers / max(time.monotonic() - self.started_s, 1e-9)


class RunProgress:
    """Shows the progress of a run; implements `auditor.agents.run_context.ProgressReporter`."""

    def __init__(self, *, expected_answers: int = 0, expected_reviews: int = 0) -> None:
        """Prepare the bars. `n_calls` counts calls that were sent, `n_unsent` those that a limit kept back.

        Args:
            expected_answers: expected calls of the stage that asks models, whose plan grows batch by batch.
            expected_reviews: expected calls of the review stage, whose plan grows as answers arrive.
        """
        self.outcomes: Counter[str] = Counter()
        self.n_calls = 0
        self.n_unsent = 0
        self.n_recorded = 0
        self.cost_usd = 0.0
        self.n_unpriced = 0
        self._expected = {"elicit": expected_answers, "review": expected_reviews}
        self._stages: dict[str, StageProgress] = {}
        self._current_stage: str | None = None
        self._start_time = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        console = rich_console.Console(stderr=True)
        self._bars = rich_progress.Progress(
            rich_progress.TextColumn("{task.description:<19}"),
            rich_progress.BarColumn(bar_width=20 if console.width >= WIDE_TERMINAL else 8),
            *(rich_progress.TextColumn(f"{{task.fields[stage].{name}_text}}") for name in TEXT_COLUMNS),
            console=console,
            disable=not self._is_terminal,
        )
        self._bar_ids: dict[str, TaskID] = {}
        self._stop_lines = threading.Event()
        self._lines = threading.Thread(target=self._print_lines, name="progress", daemon=True)

    def __enter__(self) -> RunProgress:
        self._bars.start()
        if not self._is_terminal:
            self._lines.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop_lines.set()
        if self._lines.is_alive():
            self._lines.join()
        self._bars.stop()

    def on_stage_entered(self, stage: str) -> None:
        """Show the stage that the graph has entered; if it waits for all others, these are over."""
        self._current_stage = stage
        self._stage(stage)
        for name, progress in self._stages.items():
            progress.is_over |= name != stage and (stage in LONE_STAGES or name in LONE_STAGES)
            self._update_bar(name)

    def on_notice(self, text: str) -> None:
        """Print a notice on a line of its own."""
        print_message(text)

    def on_calls_planned(self, stage: str, calls: int, recorded: int) -> None:
        """Add planned calls of a stage to its total; recorded ones count as completed."""
        progress = self._stage(stage)
        progress.planned += calls
        progress.completed += recorded
        self.n_recorded += recorded
        self._update_bar(stage)

    def on_answer(self, stage: str, answer: Answer) -> None:
        """Count a completed call, its outcome and its cost."""
        progress = self._stage(stage)
        progress.completed += 1
        progress.n_answers += 1
        progress.n_unusable += answer.outcome is not Outcome.OK
        progress.cost_usd += answer.cost_usd or 0.0
        is_unsent = not answer.attempts and answer.outcome in (Outcome.OVER_BUDGET, Outcome.CLIENT_ERROR)
        self.n_calls += not is_unsent
        self.n_unsent += is_unsent
        self.outcomes[answer.outcome.value] += 1
        self.cost_usd += answer.cost_usd or 0.0
        self.n_unpriced += answer.outcome.is_answer and answer.cost_usd is None
        self._update_bar(stage)

    def on_steps_completed(self, stage: str, steps: int) -> None:
        """Count completed steps that were no calls."""
        self._stage(stage).completed += steps
        self._update_bar(stage)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._start_time

    @property
    def cost_text(self) -> str:
        """Cost of this run in USD, and the number of answers without a known price."""
        unpriced_note = f" + {self.n_unpriced} of unknown price" if self.n_unpriced else ""
        return f"${self.cost_usd:.4f}{unpriced_note}"

    def _stage(self, name: str) -> StageProgress:
        """The progress of a stage, which begins when it is entered or its first call is planned."""
        if name not in self._stages:
            label = STAGE_LABELS.get(name) or find_progress_label(name) or name.capitalize()
            self._stages[name] = StageProgress(label, expected=self._expected.get(name, 0))
        return self._stages[name]

    def _update_bar(self, name: str) -> None:
        """Move the bar of a stage on a terminal; a stage without calls has one only while it lasts."""
        if not self._is_terminal:
            return
        progress = self._stages[name]
        if name not in self._bar_ids:
            self._bar_ids[name] = self._bars.add_task(progress.label, total=None, stage=progress)
        self._bars.update(
            self._bar_ids[name],
            total=progress.total or None,
            completed=progress.completed,
            visible=bool(progress.total) or not progress.is_over,
        )

    def _print_lines(self) -> None:
        """Print the progress of the stages that run at intervals, until the run ends."""
        while not self._stop_lines.wait(LINE_INTERVAL_S):
            if (stage := self._current_stage) is not None:
                running = [progress for progress in list(self._stages.values()) if progress.is_running]
                print_message(" | ".join(progress.describe() for progress in running or [self._stages[stage]]))


def format_duration(seconds: float) -> str:
    """A duration in the two largest units: `40 s`, `3 min`, `2 h 5 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def show_download_bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar for a download; yields a function that takes the bytes so far and in all (None if unknown)."""
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TransferSpeedColumn(),
    )
    with rich_progress.Progress(
        *columns, console=rich_console.Console(stderr=True), disable=not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task(name, total=None)
        yield lambda n_bytes, total_bytes: bar.update(task, completed=n_bytes, total=total_bytes)


@contextmanager
def show_reading_bar(label: str) -> Iterator[None]:
    """Show on a terminal how much of a file has been read, at which rate, and the time left, while it is imported."""
    if not sys.stderr.isatty():
        yield
        return

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TransferSpeedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=rich_console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def on_read(position: int, size: int) -> None:
            """Move the bar; once everything is read, rows are converted and stored."""
            is_over = position >= size
            if position < bar.tasks[0].completed:  # another file, or the same one again
                bar.reset(task)
            bar.update(task, completed=position, total=size, description="Storing" if is_over else label)

        with report_reading(on_read):
            yield


@contextmanager
def show_embedding_bar() -> Iterator[Callable[[int, int], None]]:
    """Show a bar for embedding texts; yields a function of the numbers of newly planned and newly embedded texts."""
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(
        *columns, console=rich_console.Console(stderr=True), disable=not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task("embed", total=0)

        def on_progress(n_added: int, n_embedded: int) -> None:
            """Add newly planned texts to the bar's total, and newly embedded ones to its progress."""
            bar.update(task, total=(bar.tasks[0].total or 0) + n_added, advance=n_embedded)

        yield on_progress
