"""Over how many kinds of units each figure is simulated, and what that says of estimates over the items of a task.

The registry maps an estimate to one figure by its path. The panel's estimates are over countries and topics in a survey
audit, and over items in an audit of a task.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.coverage.studies import STUDIES

N_KINDS_BY_STUDY: Mapping[str, int] = {
    "scores": 2,
    "places": 1,
    "lost samples": 2,
    "rankings": 2,
    "shares": 2,
    "verdicts": 2,
    "judges": 2,
    "items": 1,
    "item sets": 1,
    "models": 1,
}
"""Kinds of units that are resampled in each study, such as two: countries and topics."""

FIGURES_OVER_ITEMS: Mapping[str, str] = {
    "share": "item share",
    "prevalence": "item share",
    "valid share of a judge": "item share",
    "agreement with the others": "item share",
    "cell mean": "item mean",
}
"""Figures that are simulated over countries and topics, by the figure that the same function has over items."""

NOT_SIMULATED_OVER_ITEMS = (
    "kappa",
    "alpha",
    "ac1",
    "alpha without a judge",
    "alpha change",
    "third quartile",
    "paired difference of verdicts",
    "agreement of two series of verdicts",
    "leniency against the median judge",
    "length association",
    "length bias against labels",
    "leniency with the judge's own family",
    "error correlation beyond other pairs",
    "effective number of judges",
)
"""Figures that are simulated over countries and topics only: over items, where one variance takes the place of the sum
of two, their coverage is not measured. docs/coverage.md says so."""


def count_simulated_kinds(figure: str) -> int:
    """The number of kinds of units that are resampled where a figure is simulated."""
    [study] = [study for study in STUDIES if figure in {candidate.key for candidate in study.figures}]
    return N_KINDS_BY_STUDY[study.name]


def find_simulation(figure: str, n_kinds: int) -> str | None:
    """The figure whose simulation applies to an estimate over so many kinds of units; None where there is none.

    Args:
        figure: of the estimate, by the registry.
    """
    if count_simulated_kinds(figure) == n_kinds:
        return figure
    return FIGURES_OVER_ITEMS.get(figure) if n_kinds == 1 else None
