"""Shares of cases that are not independent within a cell, such as conflicts between several pairs of models on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from auditor.domain import Cell
from auditor.metrics.estimate import ShareEstimate
from auditor.metrics.unit_means import share_over_units
from auditor.reports.data.sampling_units import cell_units


def share_by_cell(cells: Sequence[Cell], is_hit: Sequence[bool]) -> ShareEstimate:
    """Share of the cases that are hits; cases of one cell share the models' traces, and count as one.

    Args:
        cells: the cell of each case.
        is_hit: whether each case is a hit.
    """
    hits, totals = Counter[Cell](), Counter[Cell]()
    for cell, hit in zip(cells, is_hit, strict=True):
        hits[cell] += hit
        totals[cell] += 1
    units = cell_units(totals)
    return share_over_units(
        [hits[cell] for cell in totals], list(totals.values()), units, independent_cases=np.ones(len(totals))
    )
