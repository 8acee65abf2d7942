"""Assignment of judges to traces: all eligible judges, or a balanced incomplete design of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig, ModelSection
from auditor.config.providers import SIMULATED
from auditor.domain import Cell, Survey, Trace, derive_seed
from auditor.metrics.judges.panels import balanced_panels
from auditor.metrics.people.savings import stratified_order
from auditor.surveys.regions import get_grouping


class TraceKey(NamedTuple):
    """Identifies a trace: the audited model, the cell, and the index of the sample on it."""

    model: str
    cell: Cell
    sample: int

    @classmethod
    def from_trace(cls, trace: Trace) -> Self:
        """Key of a trace."""
        return cls(trace.model, trace.cell, trace.sample)


@dataclass(frozen=True)
class PanelAssignment:
    """The panels of an audit.

    Attributes:
        judges_by_author: all judges eligible for the traces of a model, in the config's order.
        judge_columns, author_rows, trace_slots: index of each judge, model, and (cell, sample) in `design`.
        design: whether a judge is assigned, shape (slots, authors, judges); None if every eligible judge is assigned
            to every trace.
    """

    judges_by_author: Mapping[str, list[ModelSection]]
    judge_columns: Mapping[str, int]
    author_rows: Mapping[str, int]
    trace_slots: Mapping[tuple[Cell, int], int]
    design: NDArray[np.bool_] | None

    def panel(self, trace_key: TraceKey) -> list[ModelSection]:
        """The judges assigned to one trace, in the config's order."""
        judges = self.judges_by_author[trace_key.model]
        if self.design is None:
            return judges
        is_assigned = self.design[self.trace_slots[trace_key.cell, trace_key.sample], self.author_rows[trace_key.model]]
        return [judge for judge in judges if is_assigned[self.judge_columns[judge.name]]]

    def judges_by_cell(self, trace_keys: Iterable[TraceKey]) -> Mapping[tuple[str, Cell], Collection[str]]:
        """By model and cell, the names of the judges assigned to at least one of the traces."""
        assigned_judges: dict[tuple[str, Cell], set[str]] = defaultdict(set)
        for trace_key in trace_keys:
            assigned_judges[trace_key.model, trace_key.cell].update(judge.name for judge in self.panel(trace_key))
        return assigned_judges


def elicitation_order(config: AuditConfig, survey: Survey) -> list[Cell]:
    """The cells that models are asked about, in the order of asking.

    If elicitation may stop early, the order is stratified: each initial part covers regions and topics evenly.
    """
    cells = list(survey.asked_cells)
    if config.direct.target_width is None:
        return cells
    region_by_country = get_grouping(survey).region_by_country
    cells.sort()
    cell_order = stratified_order(
        [(region_by_country.get(cell.country), cell.topic) for cell in cells], derive_seed(config.seed, "cells")
    )
    return [cells[index] for index in cell_order.tolist()]


def select_reviewed(config: AuditConfig, trace_keys: Iterable[TraceKey]) -> list[TraceKey]:
    """Select the traces that judges review: all readable ones of each model and cell, or the first few.

    Samples taken only because earlier ones disagreed are excluded; otherwise cells with inconsistent samples would
    have more weight.
    """
    limit, direct = config.probes.review.traces, config.direct
    n_selected = Counter[tuple[str, Cell]]()
    selected = []
    for trace_key in sorted(trace_keys, key=lambda key: (key.cell, key.model, key.sample)):
        _, rank = direct.split_sample(trace_key.sample)
        if rank >= direct.guaranteed_samples:
            continue
        if limit == "all" or n_selected[trace_key.model, trace_key.cell] < limit:
            selected.append(trace_key)
            n_selected[trace_key.model, trace_key.cell] += 1
    return selected


def assign_panels(config: AuditConfig, survey: Survey) -> PanelAssignment:
    """Assign judges to all traces that an audit may collect.

    The assignment depends only on the seed and on the sets of models, judges, cells and samples; not on names, nor on
    the order in which anything is listed, asked or answered. Slots are ordered by sample, so an audit with more samples
    keeps the assignment of the first ones; one with other cells or models is assigned from scratch.
    """
    judges_by_author = {model.name: config.judges_of(model.name) for model in config.models}
    if config.panel.judges_per_trace is None:
        return PanelAssignment(judges_by_author, {}, {}, {}, None)  # without a design no index is needed
    judge_columns = {judge.name: i for i, judge in enumerate(sorted(config.judge_models, key=_model_sort_key))}
    author_rows = {model.name: i for i, model in enumerate(sorted(config.models, key=_model_sort_key))}
    n_samples_by_cell, cells = config.samples_by_cell(survey), sorted(survey.asked_cells)
    cells = elicitation_order(config, survey) if config.direct.target_width is not None else cells
    sample_slots = [
        (sample, cell)
        for sample in range(max(n_samples_by_cell.values(), default=0))
        for cell in cells
        if sample < n_samples_by_cell[cell]
    ]
    may_judge = np.zeros((len(author_rows), len(judge_columns)), dtype=np.bool_)
    for author, eligible_judges in judges_by_author.items():
        may_judge[author_rows[author], [judge_columns[judge.name] for judge in eligible_judges]] = True
    # `may_judge` has one row per audited model and one column per judge.
    design = balanced_panels(
        may_judge, len(sample_slots), config.panel.judges_per_trace, derive_seed(config.seed, "seats")
    )
    return PanelAssignment(
        judges_by_author,
        judge_columns,
        author_rows,
        {(cell, sample): i for i, (sample, cell) in enumerate(sample_slots)},
        design,
    )


def _model_sort_key(model: ModelSection) -> tuple[int, str]:
    """Key for a random order of models that depends on their settings, not on their names (except for ties)."""
    request_settings = model.model_dump(
        mode="json", include={"model", "api_base", "system", "temperature", "params", "answers"}
    )
    if model.provider is SIMULATED:
        request_settings["params"] = {}  # a run adds the id of its world, which the stored config lacks
    reasoning = () if model.reasoning is None else (model.reasoning.model_dump(mode="json"),)
    return derive_seed(0, *request_settings.values(), *reasoning), model.name
