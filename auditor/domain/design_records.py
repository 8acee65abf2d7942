"""Records of the experiment `robustness`: the runs of a design, and the answers in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from auditor.domain.identifiers import canonical_json
from auditor.domain.records import CallKey, Key, LongText, StoredAs, stored
from auditor.domain.terms import Cell, Outcome, Purpose

AUDIT_RUN = 0
"""Number of the run with the audit's settings."""


def _read_cells(text: str) -> tuple[Cell, ...]:
    """Read cells from a JSON list of pairs of country and topic."""
    return tuple(Cell(*pair) for pair in json.loads(text))


def _write_levels(levels: Mapping[str, str]) -> str:
    """Write levels as a JSON list, which keeps the order of factors."""
    return canonical_json([list(pair) for pair in levels.items()])


def _read_levels(text: str) -> dict[str, str]:
    return dict(json.loads(text))


@stored("design_run")
@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One combination of choices with which all models are asked about some cells.

    Attributes:
        number: from 0, the run with the audit's settings.
        levels: the level of each factor; all runs of a design have the same factors, in one order.
        cells: that are asked.
        samples: number of answers of each model on each of these cells.
    """

    number: Key[int]
    levels: LongText[Annotated[Mapping[str, str], StoredAs(None, _write_levels, _read_levels)]]
    cells: LongText[Annotated[tuple[Cell, ...], StoredAs(None, canonical_json, _read_cells)]]
    samples: int


@stored("design_answer")
@dataclass(frozen=True, slots=True)
class DesignAnswer:
    """One answer in a run of a design; the audit's scores do not use it.

    Attributes:
        run: number of the run.
        score: in [-1, 1], whatever the scale that was asked for; None unless the outcome is `ok`.
    """

    run: Key[int]
    model: Key[str]
    cell: Key[Cell]
    sample: Key[int]
    outcome: Outcome
    score: float | None = None
    key: Annotated[str | None, CallKey(Purpose.DIRECT, "model")] = None
