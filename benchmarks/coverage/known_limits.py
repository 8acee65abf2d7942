"""Figures that do not attain the rule in a named world. They are measured and listed in docs/coverage.md all the same.

A run fails if a figure breaks the rule in a world that is not listed here, and reports limits that no longer apply.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch


@dataclass(frozen=True, slots=True)
class KnownLimit:
    """Where a figure does not attain the rule, and why.

    Attributes:
        figures, world, design: patterns with `*`, of the figures' keys, the world's name and the design's label.
    """

    figures: tuple[str, ...]
    world: str
    design: str
    reason: str

    def applies(self, figure: str, world: str, design: str) -> bool:
        """Whether the limit is about this figure in this world and design."""
        return (
            any(fnmatch(figure, pattern) for pattern in self.figures)
            and fnmatch(world, self.world)
            and fnmatch(design, self.design)
        )


KNOWN_LIMITS: tuple[KnownLimit, ...] = ()


def find_known_limit(figure: str, world: str, design: str) -> KnownLimit | None:
    """The first known limit that is about this figure in this world and design."""
    return next((limit for limit in KNOWN_LIMITS if limit.applies(figure, world, design)), None)
