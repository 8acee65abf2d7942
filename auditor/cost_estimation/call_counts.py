"""How many calls an audit will make, before anything is asked: at least, expected, at most."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.agents.localization import samples_per_cell
from auditor.config import AuditConfig
from auditor.domain import Cell
from auditor.metrics._complete_cases import Z_95
from auditor.metrics.stopping import FIRST_INTERIM_LOOK
from auditor.metrics.votes import min_majority
from auditor.reports.cost.forecast import ForecastRange

USABLE_TRACE_SHARES = (0.6, 0.95, 1.0)
"""Share of traces that can be read, and so go before judges."""


def count_direct_calls(config: AuditConfig, cells: Sequence[Cell]) -> ForecastRange:
    """Samples of all cells by one model: those in any case, half of what may come on top, and all."""
    probe = config.direct
    most = sum(samples_per_cell(config, cell.country) for cell in cells)
    least = probe.guaranteed_samples / probe.samples
    return share_of_cells_asked(config, len(cells)) * ForecastRange.from_bounds(
        least * most, (1 + least) / 2 * most, most
    )


def share_of_cells_asked(config: AuditConfig, n_cells: int) -> ForecastRange:
    """Share of the cells that are asked before r is known closely enough, if its size is 0.9, 0.6, or whatever."""
    width = config.direct.target_width
    if width is None or not n_cells:
        return ForecastRange.from_bounds(1)
    needed = [3 + (2 * Z_95 * (1 - r * r) / width) ** 2 for r in (0.9, 0.6)]
    low, expected = (min(1.0, max(FIRST_INTERIM_LOOK, n) / n_cells) for n in needed)
    return ForecastRange.from_bounds(low, expected, 1)


def count_reviewed_traces(config: AuditConfig, cells: Sequence[Cell]) -> int:
    """Traces of one model that go before judges, where all can be read."""
    limit, probe = config.probes.review.traces, config.direct
    taken = [samples_per_cell(config, c.country) // probe.samples * probe.guaranteed_samples for c in cells]
    return sum(k if limit == "all" else min(k, limit) for k in taken)


def count_judge_calls(config: AuditConfig, n_traces: int, author: str, assigned_share: float) -> ForecastRange:
    """Calls of one of an author's judges; at the high end each is asked once more for a shorter justification.

    Args:
        given: share of the author's traces that a judge is given.
    """
    low, expected, high = (share * assigned_share * n_traces for share in USABLE_TRACE_SHARES)
    if not config.panel.adaptive:
        return ForecastRange.from_bounds(low, expected, 2 * high)
    seats = config.panel_size(author)
    least = min_majority(seats) / seats
    return ForecastRange.from_bounds(least * low, (1 + least) / 2 * expected, 2 * high)
