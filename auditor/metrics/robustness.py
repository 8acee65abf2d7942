"""How much scores depend on choices of an audit's design, such as the wording or the direction of the scale.

Every model is asked in all runs of a design, but each cell in some of them only. Runs are therefore compared within
cells: the errors of a model are the sum of effects of cells and of runs, fitted by least squares. An effect of a level
is a contrast of the runs' effects, so that no cell, and no interaction of two factors that the design separates from
single factors, counts as an effect of a level.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

AUDIT_RUN = 0
"""Number of the run with the audit's settings."""


@dataclass(frozen=True, slots=True)
class DesignRun:
    """One combination of choices with which all models are asked.

    Attributes:
        number: from 0, the run with the audit's own settings.
        levels: the level of each factor, such as `{"wording": "2", "direction": "low first"}`; all runs of a design
            have the same factors, in one order.
    """

    number: int
    levels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DesignScore:
    """The score of a model in a cell that was asked in a run.

    Attributes:
        model, country, topic: the cell, and whose score it is.
        run: `number` of the run.
        score: mean over the usable samples, from -1 to 1; None without one.
        reference: people's score of the cell.
        outcome: of the answer: `ok`, or why there is no score, such as `refused`.
    """

    model: str
    run: int
    country: str
    topic: str
    score: float | None
    reference: float
    outcome: str = "ok"


@dataclass(frozen=True, slots=True)
class Robustness:
    """What the figures of an audit owe to its design."""

    runs: tuple[DesignRun, ...]
    models: tuple[str, ...]


def measure_robustness(
    runs: Sequence[DesignRun],
    scores: Sequence[DesignScore],
    *,
    random_factors: Collection[str] = ("wording",),
    regions: Mapping[str, str] | None = None,
) -> Robustness:
    """Compute all figures of a design: differences between levels, components of variance, designs by error.

    Args:
        runs: at least two, with distinct numbers.
        scores: of all models; combinations that were not asked are absent, those without a usable answer have no score.
        random_factors: factors whose levels are a sample of possible ones; only their variance is estimated.
        regions: the region of each country, for gaps between regions.

    Raises:
        ValueError: runs with different factors or equal numbers, or a score of an unknown run.
    """
    numbers = [run.number for run in runs]
    if len(runs) < 2 or len(set(numbers)) < len(numbers):
        raise ValueError("a design needs at least two runs, with distinct numbers")
    if any(list(run.levels) != list(runs[0].levels) for run in runs):
        raise ValueError("all runs of a design must have the same factors in one order")
    if unknown := {score.run for score in scores} - set(numbers):
        raise ValueError(f"there are scores of runs that the design does not have: {sorted(unknown)}")
    return Robustness(tuple(runs), tuple(dict.fromkeys(score.model for score in scores)))
