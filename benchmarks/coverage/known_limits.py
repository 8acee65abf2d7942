"""Results that break the rule: they are measured and listed in docs/coverage.md all the same.

`known_limits.toml` names each by figure, world, design and kind of problem, so that a new fault in the same world is
noticed. A run fails if another result breaks the rule, and for a limit that no longer applies.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

PATH = Path(__file__).with_name("known_limits.toml")

ProblemKind = Literal["coverage", "width"]
"""`coverage`: the interval contains the truth too rarely. `width`: it is wider than needed, or covers nearly always."""


class Place(NamedTuple):
    """A result by the figure's key, the world's name, the design's label and the kind of problem."""

    figure: str
    world: str
    design: str
    kind: ProblemKind


@cache
def load_known_limits() -> dict[Place, str]:
    """The reason why each of these results breaks the rule."""
    return {
        Place(figure, world, design, limit["kind"]): limit["reason"]
        for limit in tomllib.loads(PATH.read_text(encoding="utf-8"))["limit"]
        for figure, designs_by_world in limit["figures"].items()
        for world, designs in designs_by_world.items()
        for design in designs
    }
