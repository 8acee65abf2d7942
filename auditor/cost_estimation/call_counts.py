"""Number of calls that an audit will make: at least, expected, at most."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.agents.localization import samples_per_cell
from auditor.config import AuditConfig
from auditor.domain import Cell
from auditor.metrics.confidence import NORMAL_QUANTILE
from auditor.metrics.stopping import FIRST_INTERIM_LOOK
from auditor.metrics.votes import min_majority
from auditor.reports.data.cost.forecast import ForecastRange
from auditor.surveys.languages import native_languages

USABLE_TRACE_SHARES = (0.6, 0.95, 1.0)
"""Share of traces that can be parsed and are reviewed by judges: at least, expected, at most."""


def count_direct_calls(config: AuditConfig, cells: Sequence[Cell]) -> ForecastRange:
    """Number of direct questions to one model: one per sample of each cell.

    Low is the number asked in any case: early stopping may end a cell after `guaranteed_samples`. High is the maximum,
    and expected the middle between the two. All are multiplied by the share of cells that are asked at all.
    """
    probe = config.direct
    n_samples = sum(samples_per_cell(config, cell.country) for cell in cells)
    min_share = probe.guaranteed_samples / probe.samples
    return share_of_cells_asked(config, len(cells)) * ForecastRange.from_bounds(
        min_share * n_samples, (1 + min_share) / 2 * n_samples, n_samples
    )


def share_of_cells_asked(config: AuditConfig, n_cells: int) -> ForecastRange:
    """Share of the cells that are asked until Fisher's 95% interval of r is as narrow as `target_width`.

    It is 1 without a target.

    Low is for r = 0.9, expected for r = 0.6, high is all cells. The number of cells n follows from the width of the
    Fisher interval, about 2 z (1 - r^2) / sqrt(n - 3). At least the cells before the first interim look are asked.
    """
    width = config.direct.target_width
    if width is None or not n_cells:
        return ForecastRange.from_bounds(1)
    needed = [3 + (2 * NORMAL_QUANTILE * (1 - r * r) / width) ** 2 for r in (0.9, 0.6)]
    low, expected = (min(1.0, max(FIRST_INTERIM_LOOK, n) / n_cells) for n in needed)
    return ForecastRange.from_bounds(low, expected, 1)


def count_reviewed_traces(config: AuditConfig, cells: Sequence[Cell]) -> int:
    """Number of one model's traces that judges review if all can be parsed.

    At most `review.traces` per cell, and none of the samples that are taken only if early stopping does not end a cell.
    """
    limit = config.probes.review.traces
    guaranteed_samples = [config.guaranteed_samples_per_cell(native_languages(cell.country)) for cell in cells]
    return sum(n_samples if limit == "all" else min(n_samples, limit) for n_samples in guaranteed_samples)


def count_judge_calls(config: AuditConfig, n_traces: int, author: str, assigned_share: float) -> ForecastRange:
    """Number of calls to one judge about one author's traces.

    High counts each call twice: a judge may be asked again for a shorter justification.

    Args:
        config: the audit's configuration.
        n_traces: number of the author's traces that are reviewed if all can be parsed.
        author: name of the model that wrote the traces.
        assigned_share: share of these traces that are assigned to the judge, in [0, 1].
    """
    low, expected, high = (share * assigned_share * n_traces for share in USABLE_TRACE_SHARES)
    # An adaptive panel asks at least a majority of its judges, at most all: the middle is expected.
    if not config.panel.adaptive:
        return ForecastRange.from_bounds(low, expected, 2 * high)
    panel_size = config.panel_size(author)
    min_share = min_majority(panel_size) / panel_size
    return ForecastRange.from_bounds(min_share * low, (1 + min_share) / 2 * expected, 2 * high)
