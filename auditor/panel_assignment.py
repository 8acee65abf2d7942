"""Who sits on the panel of which trace: all that may judge it, or a balanced part of them; the one rule of it all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig, ModelSection
from auditor.domain import Cell, Survey, Trace, derive_seed
from auditor.metrics.panel_design import balanced_panels
from auditor.metrics.stopping import spread_order
from auditor.surveys.regions import grouping_of


class Place(NamedTuple):
    """Which trace."""

    model: str
    cell: Cell
    sample: int

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """The place of a trace."""
        return cls(trace.model, trace.cell, trace.sample)


@dataclass(frozen=True)
class Seating:
    """The panels of an audit.

    Attributes:
        judges: of each author, all that may judge it, in the config's order.
        rows, slots, design: of incomplete panels: the author's row, the slot of a cell and sample, and who is seated,
            shape (slots, authors, judges in the order of `columns`); None where panels are whole.
    """

    judges: Mapping[str, list[ModelSection]]
    columns: Mapping[str, int]
    rows: Mapping[str, int]
    slots: Mapping[tuple[Cell, int], int]
    design: NDArray[np.bool_] | None

    def panel(self, place: Place) -> list[ModelSection]:
        """The judges of one trace, in the config's order."""
        all_ = self.judges[place.model]
        if self.design is None:
            return all_
        seated = self.design[self.slots[place.cell, place.sample], self.rows[place.model]]
        return [judge for judge in all_ if seated[self.columns[judge.name]]]

    def seated(self, reviewed: Iterable[Place]) -> Mapping[tuple[str, Cell], Collection[str]]:
        """By model and cell, the judges that have at least one of its traces before them."""
        found: dict[tuple[str, Cell], set[str]] = defaultdict(set)
        for place in reviewed:
            found[place.model, place.cell].update(judge.name for judge in self.panel(place))
        return found


def asking_order(config: AuditConfig, survey: Survey) -> list[Cell]:
    """The cells that models are asked about, in the order in which they are.

    Where asking may end before the last, any first part of them has its share of each region and topic.
    """
    cells = list(survey.asked)
    if config.direct.target_width is None:
        return cells
    region = grouping_of(survey).by_country
    cells.sort()
    order = spread_order([(region.get(c.country), c.topic) for c in cells], derive_seed(config.seed, "cells"))
    return [cells[i] for i in order.tolist()]


def reviewed(config: AuditConfig, readable: Iterable[Place]) -> list[Place]:
    """Of the traces that have a score, those that go before judges: of each model and cell all, or the first few.

    Samples that are taken only where the first disagree do not: cells on which models waver would weigh more.
    """
    limit, direct = config.probes.review.traces, config.direct
    taken = Counter[tuple[str, Cell]]()
    chosen = []
    for place in sorted(readable, key=lambda p: (p.cell, p.model, p.sample)):
        if place.sample % direct.samples >= direct.least_samples:
            continue
        if limit == "all" or taken[place.model, place.cell] < limit:
            chosen.append(place)
            taken[place.model, place.cell] += 1
    return chosen


def seating(config: AuditConfig, survey: Survey) -> Seating:
    """The panels of an audit over all traces that it may ask for.

    They depend on the seed and on which models, judges, cells and samples there are, and on nothing else: not on names,
    nor on the order in which anything is listed, asked or answered. Samples come one after another, so an audit that
    asks for more of them keeps the seats of the first; one with other cells or models is dealt anew.
    """
    judges = {m.name: config.judges_of(m.name) for m in config.models}
    if config.panel.judges_per_trace is None:
        return Seating(judges, {}, {}, {}, None)
    columns = {j.name: i for i, j in enumerate(sorted(config.judge_models, key=_identity))}
    rows = {m.name: i for i, m in enumerate(sorted(config.models, key=_identity))}
    samples, cells = config.samples_on(survey), sorted(survey.asked)
    cells = asking_order(config, survey) if config.direct.target_width is not None else cells
    order = [(n, cell) for n in range(max(samples.values(), default=0)) for cell in cells if n < samples[cell]]
    may = np.zeros((len(rows), len(columns)), dtype=np.bool_)
    for author, others in judges.items():
        may[rows[author], [columns[j.name] for j in others]] = True
    design = balanced_panels(may, len(order), config.panel.judges_per_trace, derive_seed(config.seed, "seats"))
    return Seating(judges, columns, rows, {(cell, n): i for i, (n, cell) in enumerate(order)}, design)


def _identity(model: ModelSection) -> tuple[int, str]:
    asked = model.model_dump(mode="json", include={"model", "api_base", "system", "temperature", "params", "answers"})
    return derive_seed(0, *asked.values()), model.name
