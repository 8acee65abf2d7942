"""Which figure of the study each estimate of a report is, by its JSON path.

Estimates that are computed by the same function, over the same kinds of units, share a simulation. In a pattern, `*`
stands for any text. A test fails for a path of the JSON Schema, or of a real report, that is in neither table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

PATHS_BY_FIGURE: Mapping[str, tuple[str, ...]] = {
    # Scores compared with people's, over countries and topics.
    "r": (
        "*alignment[].ci_low",
        "*alignment[].crossed.pearson_r",
        ".regions.rows[].ci_low",
        ".requests.form_split[].pearson_r",
        ".baselines[].pearson_r",
    ),
    "spearman": ("*alignment[].spearman_ci_low", "*alignment[].crossed.spearman_rho"),
    "corrected r": ("*alignment[].corrected_r", "*alignment[].crossed.corrected_r"),
    "within-topic r": (".gain[].within_topics",),
    "mae": (
        "*alignment[].mae_ci_low",
        "*alignment[].crossed.mae",
        ".regions.rows[].mae",
        ".requests.form_split[].mae",
        ".baselines[].mae",
    ),
    "rmse": ("*alignment[].rmse_ci_low", "*alignment[].crossed.rmse"),
    "bias": ("*alignment[].bias", "*alignment[].crossed.bias"),
    "r difference": (".methods[].difference", "compare.pairs[].pearson_r.difference"),
    "mae difference": ("compare.pairs[].mae.difference",),
    "largest mae gap": (".regions.gaps[].mae_gap",),
    "r gap": (".regions.gaps[].r_gap",),
    # Verdicts of the panel, over countries and topics.
    "kappa": (".panel.fleiss_kappa",),
    "alpha": (".panel.krippendorff_alpha",),
    "ac1": (".panel.gwet_ac1",),
    "alpha without a judge": (".panel.judges[].alpha_without",),
    "alpha change": (".panel.judges[].alpha_change",),
    "prevalence": (".panel.prevalence",),
    "valid share of a judge": (".panel.judges[].valid",),
    "agreement with the others": (".panel.judges[].agreement",),
    # Shares of cases in cells.
    "share": (".refusals.total", ".refusals.*[].share"),
    "share of these cells": ("*.cells_ci_low",),
}
"""By the figure's key in `studies`."""

PATHS_WITHOUT_SIMULATION: Mapping[str, tuple[str, ...]] = {
    "Fisher's interval over cells, kept for comparison with papers and named so; the study has it as a negative control": (
        "*.fisher_ci_low",
    ),
}
"""By the reason why no simulation applies."""


def find_figures(path: str) -> list[str]:
    """The figures that an estimate with this path is; none where no simulation is registered."""
    return [figure for figure, patterns in PATHS_BY_FIGURE.items() if _matches(path, patterns)]


def find_reasons(path: str) -> list[str]:
    """The reasons why no simulation applies to an estimate with this path."""
    return [reason for reason, patterns in PATHS_WITHOUT_SIMULATION.items() if _matches(path, patterns)]


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), path) for pattern in patterns)
