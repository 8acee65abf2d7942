"""The cells that hold traces: combinations of a country and a topic, or the items of a task.

An item has effects of its own and none in common with other items, as a cell has whose country and topic occur once. So
a world draws the effects of an item as those of one country, one topic and one cell together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage.worlds.design import Design, Indices
from benchmarks.coverage.worlds.item_worlds import ItemDesign

TraceDesign = Design | ItemDesign
TRACE_ITEM_DESIGNS = (ItemDesign(10), ItemDesign(20), ItemDesign(55))


@dataclass(frozen=True, slots=True)
class TraceCells:
    """Cells and the traces in them.

    Attributes:
        country, topic: of each cell, shape (cells,); both are the item's number where cells are items.
        cell: of each trace, shape (traces,).
        is_item: whether cells are items.
    """

    country: Indices
    topic: Indices
    cell: Indices
    is_item: bool

    @property
    def units(self) -> Mapping[str, Indices]:
        """What is resampled: for each kind of unit, the unit of each trace, shape (traces,)."""
        if self.is_item:
            return {"item": self.cell}
        return {"country": self.country[self.cell], "topic": self.topic[self.cell]}


def draw_trace_cells(design: TraceDesign, rng: np.random.Generator, mean_traces: int) -> TraceCells:
    """Draw the cells of a design, and `mean_traces` traces in each or, where cells are unequal, on average."""
    if isinstance(design, ItemDesign):
        items = np.arange(design.n_items)
        return TraceCells(items, items, np.repeat(items, mean_traces), is_item=True)
    country, topic = design.draw_cells(rng)
    cell = np.repeat(np.arange(len(country)), design.draw_case_counts(rng, len(country), mean_traces))
    return TraceCells(country, topic, cell, is_item=False)
