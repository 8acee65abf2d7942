"""How many calls an audit will make, before anything is asked: at least, expected, at most."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.agents.localization import samples_of
from auditor.config import AuditConfig
from auditor.domain import Cell
from auditor.metrics._complete_cases import Z_95
from auditor.metrics.stopping import FIRST_LOOK
from auditor.metrics.votes import least_majority
from auditor.reports.cost.forecast import Range

USABLE = (0.6, 0.95, 1.0)
"""Share of traces that can be read, and so go before judges."""


def direct_calls(config: AuditConfig, cells: Sequence[Cell]) -> Range:
    """Samples of all cells by one model: those in any case, half of what may come on top, and all."""
    probe = config.direct
    most = sum(samples_of(config, cell.country) for cell in cells)
    least = probe.least_samples / probe.samples
    return reached(config, len(cells)) * Range.of(least * most, (1 + least) / 2 * most, most)


def reached(config: AuditConfig, cells: int) -> Range:
    """Share of the cells that are asked before r is known closely enough, if its size is 0.9, 0.6, or whatever."""
    width = config.direct.target_width
    if width is None or not cells:
        return Range.of(1)
    needed = [3 + (2 * Z_95 * (1 - r * r) / width) ** 2 for r in (0.9, 0.6)]
    low, expected = (min(1.0, max(FIRST_LOOK, n) / cells) for n in needed)
    return Range.of(low, expected, 1)


def reviewed_traces(config: AuditConfig, cells: Sequence[Cell]) -> int:
    """Traces of one model that go before judges, where all can be read."""
    limit, probe = config.probes.review.traces, config.direct
    taken = [samples_of(config, c.country) // probe.samples * probe.least_samples for c in cells]
    return sum(k if limit == "all" else min(k, limit) for k in taken)


def seat_calls(config: AuditConfig, traces: int, author: str, given: float) -> Range:
    """Calls of one of an author's judges; at the high end each is asked once more for a shorter justification.

    Args:
        given: share of the author's traces that a judge is given.
    """
    low, expected, high = (share * given * traces for share in USABLE)
    if not config.panel.adaptive:
        return Range.of(low, expected, 2 * high)
    seats = config.panel_size(author)
    least = least_majority(seats) / seats
    return Range.of(least * low, (1 + least) / 2 * expected, 2 * high)
