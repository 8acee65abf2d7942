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


SCORES = (
    "r",
    "spearman",
    "within-topic r",
    "corrected r",
    "mae",
    "rmse",
    "bias",
    "* difference",
    "r difference of equal models",
    "third quartile",
    "* gap",
)
AGREEMENT = ("kappa", "alpha", "ac1", "alpha *", "agreement *", "prevalence", "valid share *", "paired difference *")
KNOWN_LIMITS: tuple[KnownLimit, ...] = (
    KnownLimit(
        (*SCORES, *AGREEMENT, "share", "cell mean"),
        "zones",
        "*",
        "Countries of one zone, and topics of one family, are alike, so there is less information than the interval "
        "assumes. Reports show the range of each headline figure without one zone or family.",
    ),
    KnownLimit(
        (*SCORES, *AGREEMENT),
        "t3",
        "*",
        "Few countries and topics show too little of heavy tails: most samples lack the extreme units.",
    ),
    KnownLimit(
        (*SCORES, *AGREEMENT),
        "skewed",
        "*",
        "Few countries and topics show too little of a skewed tail: most samples lack the extreme units.",
    ),
    KnownLimit(
        ("rmse", "mae", "r gap"),
        "difficulty",
        "*",
        "Errors are concentrated on a few difficult topics, and few topics show too little of them.",
    ),
    KnownLimit(
        ("largest mae gap",),
        "*",
        "*",
        "The interval holds for all pairs of regions whatever their number of countries, so it is wider than needed.",
    ),
    KnownLimit(
        ("mae *", "bias of a place"),
        "skewed",
        "* cells",
        "Few cells show too little of a skewed tail, and intervals for all places at once use more of the tail.",
    ),
    KnownLimit(
        ("mae *", "bias of a place"),
        "t3",
        "* cells",
        "Few cells show too little of heavy tails, and intervals for all places at once use more of the tail.",
    ),
    KnownLimit(
        ("share", "cell mean"),
        "independent cases",
        "*",
        "Without differences between countries and topics, adding both variances counts that of single cases twice, of "
        "which half is subtracted: the interval is wider than needed.",
    ),
    KnownLimit(
        ("share", "cell mean", "share of these cells"),
        "rare",
        "*",
        "Rare events are in few topics, and whether an interval is printed depends on how many there are.",
    ),
    KnownLimit(
        ("commutativity*", "negation invariance*", "human agreement*", "transitivity*", "first position"),
        "alike sets",
        "? sets of *",
        "Over the items of one or two sets the jackknife of pairs is conservative (Lin, Lunde & Sarkar, ICML 2020).",
    ),
    KnownLimit(
        ("area *", "item share*", "mean of shares *", "pooled share *", "item mean*", "correlation of answers"),
        "mostly right",
        "*",
        "Wrong answers are in few items, which show too little of how items differ.",
    ),
)


def find_known_limit(figure: str, world: str, design: str) -> KnownLimit | None:
    """The first known limit that is about this figure in this world and design."""
    return next((limit for limit in KNOWN_LIMITS if limit.applies(figure, world, design)), None)
