"""Worlds of items, such as the items of a task, questions or item sets: several answers to each, of items that differ.

An answer has a merit with an effect of its item (its difficulty) and one of its own. A second condition, such as
another prompt, shares part of the item's effect. Only items are resampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.special import ndtr
from scipy.stats import rankdata

from benchmarks.coverage.worlds.design import Floats, Indices
from benchmarks.coverage.worlds.effects import EffectKind, draw_effects

ITEM_SD = 0.9
"""Of the effect of an item; answers to one item differ by 1."""
LEVEL = 0.5
SECOND_SHIFT = -0.3
"""How much lower the merit is under the second condition."""
SHARED = 0.6
"""Share of the variance of an item's effect that both conditions have in common."""
MEAN_ANSWERS = 5
SUPPORT_SLOPE = 0.7
"""By how much a unit of merit raises the support that judges give to an answer."""


@dataclass(frozen=True, slots=True)
class ItemDesign:
    """Number of items, and whether they have different numbers of answers."""

    n_items: int
    is_uneven: bool = False

    @property
    def label(self) -> str:
        """The design in words."""
        return f"{self.n_items} items{', unequal' if self.is_uneven else ''}"

    @property
    def smaller_side(self) -> int:
        """Number of items."""
        return self.n_items


ITEM_DESIGNS = (ItemDesign(5), ItemDesign(10), ItemDesign(20), ItemDesign(55), ItemDesign(20, is_uneven=True))


@dataclass(frozen=True, slots=True)
class ItemSample:
    """Answers of one simulated audit.

    Attributes:
        hits, second_hits: right answers of each item under two conditions, shape (items,); counts: all answers.
        item, is_correct, support, weaker_support, closeness: of each answer under the first condition, shape
            (answers,).
        means, second_means, third_means: a score in [0, 1] of each item under three conditions, shape (items,).
    """

    hits: Floats
    second_hits: Floats
    counts: Floats
    item: Indices
    is_correct: Floats
    support: Floats
    weaker_support: Floats
    closeness: Floats
    means: Floats
    second_means: Floats
    third_means: Floats
    truths: Mapping[str, float]

    @property
    def differences(self) -> Floats:
        """Differences between the scores under each two conditions, shape (pairs, items)."""
        pairs = combinations((self.means, self.second_means, self.third_means), 2)
        return np.stack([first - second for first, second in pairs])


@dataclass(frozen=True, slots=True)
class ItemWorld:
    """A population of items.

    Attributes:
        level: mean merit; an answer is right where its merit is above 0.
    """

    name: str
    kind: EffectKind = "gaussian"
    level: float = LEVEL

    def draw(self, design: ItemDesign, rng: np.random.Generator) -> ItemSample:
        """Simulate one audit."""
        counts = np.full(design.n_items, MEAN_ANSWERS)
        if design.is_uneven:
            counts = rng.geometric(1 / MEAN_ANSWERS, design.n_items)
        return self.draw_items(rng, counts.astype(np.intp), ITEM_TRUTHS[self.name])

    def draw_items(self, rng: np.random.Generator, counts: Indices, truths: Mapping[str, float]) -> ItemSample:
        """Draw items with these numbers of answers."""
        n_items = len(counts)
        item = np.repeat(np.arange(n_items), counts)
        common, *by_condition = (draw_effects(self.kind, rng, n_items) for _ in range(3))
        by_item = [ITEM_SD * (SHARED**0.5 * common + (1 - SHARED) ** 0.5 * effect) for effect in by_condition]
        merits = [
            self.level + shift + effect[item] + rng.normal(size=len(item))
            for shift, effect in zip((0.0, SECOND_SHIFT), by_item, strict=True)
        ]
        is_correct, second_is_correct = (merit > 0 for merit in merits)
        support = SUPPORT_SLOPE * merits[0] + 0.5 * draw_effects(self.kind, rng, n_items)[item]
        scores = [ndtr(self.level + shift + effect) for shift, effect in zip((0.0, SECOND_SHIFT), by_item, strict=True)]
        sample = ItemSample(
            np.bincount(item, is_correct, minlength=n_items).astype(np.float64),
            np.bincount(item, second_is_correct, minlength=n_items).astype(np.float64),
            counts.astype(np.float64),
            item,
            is_correct.astype(np.float64),
            support + rng.normal(size=len(item)),
            support + 2 * rng.normal(size=len(item)),
            merits[0] + rng.normal(size=len(item)),
            np.clip(scores[0] + 0.1 * rng.normal(size=n_items), 0, 1),
            np.clip(scores[1] + 0.1 * rng.normal(size=n_items), 0, 1),
            np.empty(0),
            truths,
        )
        third_effect = ITEM_SD * (SHARED**0.5 * common + (1 - SHARED) ** 0.5 * draw_effects(self.kind, rng, n_items))
        third_means = ndtr(self.level + third_effect) + 0.1 * rng.normal(size=n_items)
        return replace(sample, third_means=np.clip(third_means, 0, 1))


def measure_item_truth(world: ItemWorld, n_items: int, seed: int = 1) -> dict[str, float]:
    """The true value of each figure over many items with five answers each."""
    sample = world.draw_items(np.random.default_rng(seed), np.full(n_items, MEAN_ANSWERS, dtype=np.intp), {})
    share, second_share = (float(h.sum() / sample.counts.sum()) for h in (sample.hits, sample.second_hits))
    ranks = rankdata(sample.support)
    n_right = sample.is_correct.sum()
    n_wrong = len(ranks) - n_right
    area = float((ranks[sample.is_correct == 1].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong))
    support, is_correct = (values.reshape(n_items, MEAN_ANSWERS) for values in (sample.support, sample.is_correct))
    is_pair = (is_correct[:, :, None] == 1) & (is_correct[:, None, :] == 0)
    area_within = float((support[:, :, None] > support[:, None, :])[is_pair].mean())
    r = float(np.corrcoef(sample.support, sample.closeness)[0, 1])
    return {
        "item share": share,
        "mean of shares over sets": share,
        "pooled share over sets": share,
        "item share difference": share - second_share,
        "item mean": float(sample.means.mean()),
        "item mean difference": float((sample.second_means - sample.means).mean()),
        "third quartile over items": float(np.quantile(np.abs(sample.differences), 0.75)),
        "area under the curve": area,
        "area within items": area_within,
        "rank correlation of answers": float(np.corrcoef(ranks, rankdata(sample.closeness))[0, 1]),
        "correlation of answers": r,
        "correlation over questions": r,
        "difference of correlations over questions": r
        - float(np.corrcoef(sample.weaker_support, sample.closeness)[0, 1]),
    }


ITEM_WORLDS = (
    ItemWorld("gaussian"),
    ItemWorld("t3", "t3"),
    ItemWorld("skewed", "skewed"),
    ItemWorld("mostly right", level=2.2),
)

ITEM_TRUTHS: dict[str, dict[str, float]] = {
    "gaussian": {
        "item share": 0.64514,
        "mean of shares over sets": 0.64514,
        "pooled share over sets": 0.64514,
        "item share difference": 0.08566,
        "item mean": 0.64082,
        "item mean difference": -0.08305,
        "third quartile over items": 0.31600,
        "area under the curve": 0.80532,
        "area within items": 0.77834,
        "rank correlation of answers": 0.49972,
        "correlation of answers": 0.51732,
        "correlation over questions": 0.51732,
        "difference of correlations over questions": 0.18365,
    },
    "t3": {
        "item share": 0.65656,
        "mean of shares over sets": 0.65656,
        "pooled share over sets": 0.65656,
        "item share difference": 0.09239,
        "item mean": 0.65362,
        "item mean difference": -0.09032,
        "third quartile over items": 0.28677,
        "area under the curve": 0.79852,
        "area within items": 0.77685,
        "rank correlation of answers": 0.48073,
        "correlation of answers": 0.51627,
        "correlation over questions": 0.51627,
        "difference of correlations over questions": 0.18348,
    },
    "skewed": {
        "item share": 0.62982,
        "mean of shares over sets": 0.62982,
        "pooled share over sets": 0.62982,
        "item share difference": 0.09282,
        "item mean": 0.62495,
        "item mean difference": -0.09118,
        "third quartile over items": 0.29781,
        "area under the curve": 0.79559,
        "area within items": 0.77350,
        "rank correlation of answers": 0.49122,
        "correlation of answers": 0.51654,
        "correlation over questions": 0.51654,
        "difference of correlations over questions": 0.18355,
    },
    "mostly right": {
        "item share": 0.94908,
        "mean of shares over sets": 0.94908,
        "pooled share over sets": 0.94908,
        "item share difference": 0.02777,
        "item mean": 0.92160,
        "item mean difference": -0.02348,
        "third quartile over items": 0.13853,
        "area under the curve": 0.86820,
        "area within items": 0.80722,
        "rank correlation of answers": 0.49972,
        "correlation of answers": 0.51732,
        "correlation over questions": 0.51732,
        "difference of correlations over questions": 0.18365,
    },
}
"""True values by world: the mean of five calls of `measure_item_truth` with 400,000 items (standard errors up to
0.0004)."""
