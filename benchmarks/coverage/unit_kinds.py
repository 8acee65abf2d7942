"""Over how many kinds of units each figure is simulated, and what that says of estimates over the items of a task.

The registry maps an estimate to one figure by its path. The panel's estimates are over countries and topics in a survey
audit, and over items in an audit of a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from benchmarks.coverage.studies import STUDIES

FIGURES_OVER_ITEMS: Mapping[str, str] = {
    "share": "item share",
    "cell mean": "item mean",
    "third quartile": "third quartile over items",
}
"""Figures that are simulated over countries and topics, by the figure that the same function has over items."""


@cache
def list_simulated_kinds(figure: str) -> frozenset[int]:
    """The numbers of kinds of units that are resampled where a figure is simulated."""
    return frozenset(
        study.n_unit_kinds for study in STUDIES if figure in {candidate.key for candidate in study.figures}
    )


def find_simulation(figure: str, n_kinds: int) -> str | None:
    """The figure whose simulation applies to an estimate over so many kinds of units; None where there is none.

    Args:
        figure: of the estimate, by the registry.
    """
    if n_kinds in list_simulated_kinds(figure):
        return figure
    return FIGURES_OVER_ITEMS.get(figure) if n_kinds == 1 else None
