"""A rater's progress through the conflicts of an audit, with their pace and the time that the rest will take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

MAX_PACE_DECISIONS = 30
"""Number of the rater's last decisions over which the pace is the median."""
MIN_PACE_DECISIONS = 3
"""Number of decisions below which no pace is given."""


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    """Progress of a rater.

    Attributes:
        n_total: conflicts that people have to settle or have settled; those that judges settled are not among them.
        n_left: conflicts of these that the rater still has to decide, second opinions included.
        n_by_rater: conflicts that the rater has settled.
        seconds_per_decision: median time of the rater's last decisions; None with fewer than `MIN_PACE_DECISIONS`.
    """

    n_total: int
    n_left: int
    n_by_rater: int
    seconds_per_decision: float | None

    @property
    def n_done(self) -> int:
        """Conflicts of the total that the rater need not decide any more."""
        return max(self.n_total - self.n_left, 0)

    @property
    def seconds_left(self) -> float | None:
        """Time that the conflicts left will take at the rater's pace in whole seconds, as printed; None without one."""
        pace = self.seconds_per_decision
        return None if pace is None else self.n_left * max(math.ceil(pace), 1)


def compute_pace(durations: Sequence[float]) -> float | None:
    """Median of the durations of a rater's last decisions in seconds; None if there are too few.

    The median ignores a break during which a conflict stayed on the screen.
    """
    return median(durations) if len(durations) >= MIN_PACE_DECISIONS else None


def format_progress(progress: ReviewProgress) -> str:
    """Describe the progress in one line, such as `8 of 20 left · 12 done (9 by you) · 40 s each`."""
    parts = [
        f"{progress.n_left:,} of {progress.n_total:,} left",
        f"{progress.n_done:,} done ({progress.n_by_rater:,} by you)",
    ]
    if progress.n_left and progress.seconds_per_decision is not None and progress.seconds_left is not None:
        parts.append(f"{format_duration(progress.seconds_per_decision)} each")
        parts.append(f"about {format_duration(progress.seconds_left)} to go")
    return " · ".join(parts)


def format_left(progress: ReviewProgress) -> str:
    """Describe what is left in a few words, such as `8 left, about 6 min`."""
    if not progress.n_left or progress.seconds_left is None:
        return f"{progress.n_left:,} left"
    return f"{progress.n_left:,} left, about {format_duration(progress.seconds_left)}"


def format_pace(progress: ReviewProgress) -> list[str]:
    """Describe what is left, the pace and the time to go, in forms of decreasing length."""
    left = f"{progress.n_left:,} left"
    if not progress.n_left or progress.seconds_per_decision is None or progress.seconds_left is None:
        return [left]
    pace, time_left = format_duration(progress.seconds_per_decision), format_duration(progress.seconds_left)
    return [f"{left} · {pace} each · about {time_left} to go", f"{left} · {pace} each · {time_left}", left]


def format_duration(seconds: float) -> str:
    """Format a duration, rounded up to a whole unit: seconds up to 90 s, minutes up to 90 min, else hours."""
    if seconds <= 90:
        return f"{max(math.ceil(seconds), 1)} s"
    if seconds <= 90 * 60:
        return f"{math.ceil(seconds / 60)} min"
    hours, minutes = divmod(math.ceil(seconds / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
