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
from auditor.metrics.stopping import stratified_order
from auditor.surveys.regions import get_grouping


class TraceKey(NamedTuple):
    """Which trace."""

    model: str
    cell: Cell
    sample: int

    @classmethod
    def from_trace(cls, trace: Trace) -> Self:
        """The place of a trace."""
        return cls(trace.model, trace.cell, trace.sample)


@dataclass(frozen=True)
class PanelAssignment:
    """The panels of an audit.

    Attributes:
        judges: of each author, all that may judge it, in the config's order.
        rows, slots, design: of incomplete panels: the author's row, the slot of a cell and sample, and who is seated,
            shape (slots, authors, judges in the order of `columns`); None where panels are whole.
    """

    judges_by_author: Mapping[str, list[ModelSection]]
    judge_columns: Mapping[str, int]
    author_rows: Mapping[str, int]
    trace_slots: Mapping[tuple[Cell, int], int]
    design: NDArray[np.bool_] | None

    def panel(self, trace_key: TraceKey) -> list[ModelSection]:
        """The judges of one trace, in the config's order."""
        all_ = self.judges_by_author[trace_key.model]
        if self.design is None:
            return all_
        seated = self.design[self.trace_slots[trace_key.cell, trace_key.sample], self.author_rows[trace_key.model]]
        return [judge for judge in all_ if seated[self.judge_columns[judge.name]]]

    def judges_by_cell(self, trace_keys: Iterable[TraceKey]) -> Mapping[tuple[str, Cell], Collection[str]]:
        """By model and cell, the judges that have at least one of its traces before them."""
        found: dict[tuple[str, Cell], set[str]] = defaultdict(set)
        for place in trace_keys:
            found[place.model, place.cell].update(judge.name for judge in self.panel(place))
        return found


def elicitation_order(config: AuditConfig, survey: Survey) -> list[Cell]:
    """The cells that models are asked about, in the order in which they are.

    Where asking may end before the last, any first part of them has its share of each region and topic.
    """
    cells = list(survey.asked_cells)
    if config.direct.target_width is None:
        return cells
    region = get_grouping(survey).by_country
    cells.sort()
    order = stratified_order([(region.get(c.country), c.topic) for c in cells], derive_seed(config.seed, "cells"))
    return [cells[i] for i in order.tolist()]


def select_reviewed(config: AuditConfig, readable: Iterable[TraceKey]) -> list[TraceKey]:
    """Of the traces that have a score, those that go before judges: of each model and cell all, or the first few.

    Samples that are taken only where the first disagree do not: cells on which models waver would weigh more.
    """
    limit, direct = config.probes.review.traces, config.direct
    taken = Counter[tuple[str, Cell]]()
    chosen = []
    for place in sorted(readable, key=lambda p: (p.cell, p.model, p.sample)):
        if place.sample % direct.samples >= direct.guaranteed_samples:
            continue
        if limit == "all" or taken[place.model, place.cell] < limit:
            chosen.append(place)
            taken[place.model, place.cell] += 1
    return chosen


def assign_panels(config: AuditConfig, survey: Survey) -> PanelAssignment:
    """The panels of an audit over all traces that it may ask for.

    They depend on the seed and on which models, judges, cells and samples there are, and on nothing else: not on names,
    nor on the order in which anything is listed, asked or answered. Samples come one after another, so an audit that
    asks for more of them keeps the seats of the first; one with other cells or models is dealt anew.
    """
    judges = {m.name: config.judges_of(m.name) for m in config.models}
    if config.panel.judges_per_trace is None:
        return PanelAssignment(judges, {}, {}, {}, None)
    columns = {j.name: i for i, j in enumerate(sorted(config.judge_models, key=_model_sort_key))}
    rows = {m.name: i for i, m in enumerate(sorted(config.models, key=_model_sort_key))}
    samples, cells = config.samples_by_cell(survey), sorted(survey.asked_cells)
    cells = elicitation_order(config, survey) if config.direct.target_width is not None else cells
    order = [(n, cell) for n in range(max(samples.values(), default=0)) for cell in cells if n < samples[cell]]
    may = np.zeros((len(rows), len(columns)), dtype=np.bool_)
    for author, others in judges.items():
        may[rows[author], [columns[j.name] for j in others]] = True
    design = balanced_panels(may, len(order), config.panel.judges_per_trace, derive_seed(config.seed, "seats"))
    return PanelAssignment(judges, columns, rows, {(cell, n): i for i, (n, cell) in enumerate(order)}, design)


def _model_sort_key(model: ModelSection) -> tuple[int, str]:
    asked = model.model_dump(mode="json", include={"model", "api_base", "system", "temperature", "params", "answers"})
    return derive_seed(0, *asked.values()), model.name
