"""Rows that published data sets are converted to, and the options of the conversion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from auditor.domain import derive_seed

RowKind = Literal["items", "comparisons", "questions", "rules", "known-answers"]
"""What a file of rows is for: items of the probe `logic` or of a task, people's comparisons of these items, questions
of the probe `semantic`, rules of thumb that answers to these questions follow, or the experiment `accuracy`."""
ROW_KINDS: tuple[RowKind, ...] = get_args(RowKind)


class PublishedItem(NamedTuple):
    """One item of a set; `human` is people's score of it, None if there is none."""

    context: str
    item: str
    text: str
    human: float | None = None


class PublishedDecision(NamedTuple):
    """People's decision on a pair: `A` stands for `item_a`, `B` for `item_b`, or `TIE`."""

    context: str
    item_a: str
    item_b: str
    decision: str


class PublishedTaskItem(NamedTuple):
    """One multiple-choice item of a task; options are separated by `|`, and `truth` is empty if it is unknown."""

    id: str
    question: str
    options: str
    truth: str
    context: str = ""


class PublishedQuestion(NamedTuple):
    """One moral question; `topics` has all its moral foundations, separated by `|`."""

    question_id: str
    question: str
    foundation: str = ""
    topics: str = ""


class PublishedRule(NamedTuple):
    """The rule of thumb that a person wrote for a question."""

    question_id: str
    rule: str


class PublishedKnownAnswer(NamedTuple):
    """A question with a known answer, for the experiment `accuracy`; choices are separated by `|`."""

    question_id: str
    question: str
    choices: str
    correct: str


PublishedRow: TypeAlias = (
    PublishedItem | PublishedDecision | PublishedTaskItem | PublishedQuestion | PublishedRule | PublishedKnownAnswer
)


@dataclass(frozen=True)
class PublishedDataset:
    """The rows of a data set by kind, and sentences on what was counted, left out or changed."""

    rows: Mapping[RowKind, Sequence[PublishedRow]]
    notes: Sequence[str] = ()

    def sample(self, limit: int, seed: int) -> PublishedDataset:
        """Draw at most `limit` sets of items, task items or questions, in their order; the same ones for every kind."""
        units = list(dict.fromkeys(row[0] for kind in ROW_KINDS for row in self.rows.get(kind, ())))
        random_order = np.random.default_rng(derive_seed(seed, "published", "sample")).permutation(len(units))
        drawn = {units[index] for index in random_order[:limit]}
        rows = {kind: [row for row in kind_rows if row[0] in drawn] for kind, kind_rows in self.rows.items()}
        return PublishedDataset(rows, [*self.notes, f"Drawn at random with seed {seed}: {len(drawn)} of {len(units)}."])


class ConversionOptions(NamedTuple):
    """Options of a conversion; each format uses some of them.

    Attributes:
        aspect: what items are compared by; empty for the format's default.
        permutations: file of rankings of the items.
        min_events: fewest events of a story.
        split: part of the data to read; empty for all.
        seed: for random orders.
    """

    aspect: str = ""
    permutations: Path | None = None
    min_events: int | None = None
    split: str = ""
    seed: int = 0
