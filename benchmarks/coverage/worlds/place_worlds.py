"""Worlds of one country over topics, or of one topic over countries: errors of two models in the cells of a place.

The place is that of the report, so its effect on the errors is part of the truth; the cells are random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.coverage.worlds.design import Floats
from benchmarks.coverage.worlds.effects import EffectKind, draw_effects

PLACE_SD = 0.2
"""Of a place's effect on a model's error."""
CELL_SD = 0.36
"""Of the error within a place, from effects of the other kind of unit and of the cell."""
SURVEY_SD = 0.5
N_POPULATION = 1_000_000
N_PLACES = 10


@dataclass(frozen=True, slots=True)
class PlaceDesign:
    """Number of cells of a place."""

    n_cells: int

    @property
    def label(self) -> str:
        """The design in words."""
        return f"{self.n_cells} cells"

    @property
    def smaller_side(self) -> int:
        """Number of cells."""
        return self.n_cells


PLACE_DESIGNS = (PlaceDesign(5), PlaceDesign(8), PlaceDesign(10), PlaceDesign(19), PlaceDesign(55))


@dataclass(frozen=True, slots=True)
class PlaceSample:
    """Scores in the cells of one place, shape (cells,).

    Attributes:
        all_places: errors of the first model in ten places, the first of which is this one, shape (places, cells).
        all_maes, all_biases: the true MAE and bias of each of these places.
    """

    survey: Floats
    first: Floats
    second: Floats
    all_places: Floats
    all_maes: Floats
    all_biases: Floats
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PlaceWorld:
    """A population of places."""

    name: str
    kind: EffectKind

    def draw(self, design: PlaceDesign, rng: np.random.Generator) -> PlaceSample:
        """Simulate one place."""
        place_errors = 0.1 + PLACE_SD * rng.normal(size=N_PLACES + 1)
        survey = SURVEY_SD * rng.normal(size=design.n_cells)
        errors = np.stack([error + CELL_SD * draw_effects(self.kind, rng, design.n_cells) for error in place_errors])
        maes = np.array([mean_absolute_error(self.kind, float(error)) for error in place_errors])
        truths = {
            "mae of a place": float(maes[0]),
            "bias of a place": float(place_errors[0]),
            "r of a place": SURVEY_SD / (SURVEY_SD**2 + CELL_SD**2) ** 0.5,
            "mae difference of a place": float(maes[-1] - maes[0]),
            "mae of all places": 0.0,
            "bias of all places": 0.0,
            "mae of a place relative to the others": 0.0,
        }
        return PlaceSample(
            survey, survey + errors[0], survey + errors[-1], errors[:-1], maes[:-1], place_errors[:-1], truths
        )


def mean_absolute_error(kind: EffectKind, mean: float) -> float:
    """E|mean + CELL_SD x| of an effect x, from a million effects: sums of those on each side of -mean."""
    errors, cumulative = _sorted_errors(kind)
    n_negative = int(np.searchsorted(errors, -mean))
    negative_sum = cumulative[n_negative] + n_negative * mean
    total = cumulative[-1] + len(errors) * mean
    return float((total - 2 * negative_sum) / len(errors))


@cache
def _sorted_errors(kind: EffectKind) -> tuple[Floats, Floats]:
    """Errors of a population in ascending order, and the sums of the first 0, 1, 2, ... of them."""
    errors = np.sort(CELL_SD * draw_effects(kind, np.random.default_rng(1), N_POPULATION))
    return errors, np.concatenate([[0.0], np.cumsum(errors)])


PLACE_WORLDS = (PlaceWorld("gaussian", "gaussian"), PlaceWorld("t3", "t3"), PlaceWorld("skewed", "skewed"))
