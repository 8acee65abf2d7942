"""Examples of cells: those in which a model is closest to people, those in the middle, and those furthest from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from auditor.metrics import wasserstein
from auditor.probes.distribution.figures.model_rows import ModelAnswers
from auditor.probes.distribution.figures.scales import ScaleGrid
from auditor.probes.distribution.figures.schema import DistributionCellRow
from auditor.probes.distribution.figures.series import FloatArray

N_EXAMPLES = 4
"""Cells of each rank."""
DECIMALS = 4


def build_cell_rows(answers: ModelAnswers, grid: ScaleGrid) -> Iterator[DistributionCellRow]:
    """Yield the examples of one model and mode, from the closest to the furthest; each cell at most once."""
    series = answers.series
    if series is None:
        return
    distances = wasserstein(series.people, series.model, grid.points)
    order = np.argsort(distances, kind="stable").tolist()
    n = min(N_EXAMPLES, len(order) // 3)
    start = (len(order) - n) // 2
    positions: dict[Literal["closest", "middle", "furthest"], list[int]] = {
        "closest": order[:n],
        "middle": order[start : start + n],
        "furthest": order[len(order) - n :],
    }
    cells = series.cells
    for rank, chosen in positions.items():
        for i in chosen:
            yield DistributionCellRow(
                model=answers.model,
                mode=answers.mode,
                rank=rank,
                country=cells[i].country,
                topic=cells[i].topic,
                w1=round(float(distances[i]), DECIMALS),
                people=_round(grid.own_shares(cells[i].topic, series.people[i])),
                answers=_round(grid.own_shares(cells[i].topic, series.model[i])),
            )


def _round(shares: FloatArray) -> list[float]:
    return [round(float(share), DECIMALS) for share in shares]
