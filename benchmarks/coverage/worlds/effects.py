"""Random effects of units, with mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from benchmarks.coverage.worlds.design import Floats

EffectKind = Literal["gaussian", "t3", "skewed", "zones"]

N_ZONES = 8
"""Cultural zones of countries, or families of topics, in a world of zones."""
ZONE_SHARE = 0.6
"""Share of the variance of a unit's effect that is common to its zone."""


def draw_effects(kind: EffectKind, rng: np.random.Generator, n: int, *, is_clustered: bool = True) -> Floats:
    """Effects of n units: independent and Gaussian, Student's with 3 degrees of freedom, exponential, or in zones.

    Args:
        is_clustered: for zones: whether units share them. In the population that an audit samples from, two random
            units have nothing in common, so the truth is computed without.
    """
    if kind == "zones" and is_clustered:
        zone = rng.permutation(np.arange(n) % N_ZONES)
        effects: Floats = ZONE_SHARE**0.5 * rng.normal(size=N_ZONES)[zone] + (1 - ZONE_SHARE) ** 0.5 * rng.normal(
            size=n
        )
        return effects
    return _INDEPENDENT_EFFECTS[kind](rng, n)


_INDEPENDENT_EFFECTS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "gaussian": lambda rng, n: rng.normal(size=n),
    "t3": lambda rng, n: rng.standard_t(3, n) / 3**0.5,
    "skewed": lambda rng, n: rng.exponential(size=n) - 1,
    "zones": lambda rng, n: rng.normal(size=n),
}
