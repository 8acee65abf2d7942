"""Rows that published data sets are converted to, and the options of the conversion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from auditor.domain import derive_seed
from auditor.errors import UsageError

PEOPLE_JUDGE = "people"
"""Judge whose comparisons are people's, in a file of comparisons."""
PARTS = ("train", "test")
TRAIN_SHARE = 0.8
"""As the 800 and 200 queries of "Aligning with Logic" (ICML 2025), Appendix B."""


class PublishedItem(NamedTuple):
    """One item of a set; `human` is people's score of it, None if there is none."""

    context: str
    item: str
    text: str
    human: float | None = None


class PublishedDecision(NamedTuple):
    """The decision of people, or of a model that ranked the items: `A` stands for `item_a`, `B` for `item_b`."""

    context: str
    item_a: str
    item_b: str
    decision: str

    def to_columns(self, labeller: str) -> dict[str, str]:
        """The columns of a file of comparisons.

        Args:
            labeller: judge whose decision it is.
        """
        return {"judge": labeller, **self._asdict(), "relation": "standard"}


class PublishedTaskItem(NamedTuple):
    """One item of a task; options are separated by `|`, empty if it has none, and `truth` is empty if it is unknown."""

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
    """The rows of a data set by kind, and sentences on what was counted, left out or changed.

    The kind says what a file of rows is for, such as "items"; `auditor logic convert --as` names it.
    """

    rows: Mapping[str, Sequence[PublishedRow]]
    notes: Sequence[str] = ()

    def sample(self, limit: int, seed: int) -> PublishedDataset:
        """Draw at most `limit` sets of items, task items or questions, in their order; the same ones for every kind."""
        units = self._list_units()
        random_order = np.random.default_rng(derive_seed(seed, "published", "sample")).permutation(len(units))
        drawn = {units[index] for index in random_order[:limit]}
        return self._select(drawn, f"Drawn at random with seed {seed}: {len(drawn)} of {len(units)}.")

    def take_part(self, part: str, seed: int) -> PublishedDataset:
        """Take the part `train`, a random 80% of the sets, or the part `test`, the others.

        Raises:
            UsageError: another part, or none of the sets is in it.
        """
        if part not in PARTS:
            raise UsageError(f"--split: there is no part '{part}'.", f"Use {' or '.join(PARTS)}.")
        units = self._list_units()
        random_order = np.random.default_rng(derive_seed(seed, "published", "split")).permutation(len(units))
        n_train = round(TRAIN_SHARE * len(units))
        selected = {units[index] for index in (random_order[:n_train] if part == "train" else random_order[n_train:])}
        if not selected:
            raise UsageError(
                f"--split {part}: none of {len(units)} sets is in this part.", "Raise --limit, or leave out --split."
            )
        return self._select(selected, f"Split at random with seed {seed}, {part}: {len(selected)} of {len(units)}.")

    def _list_units(self) -> list[str]:
        """The sets of items, task items or questions, in their order."""
        return list(dict.fromkeys(row[0] for rows in self.rows.values() for row in rows))

    def _select(self, units: Collection[str], note: str) -> PublishedDataset:
        """The rows of these sets, task items or questions, of every kind."""
        rows = {kind: [row for row in kind_rows if row[0] in units] for kind, kind_rows in self.rows.items()}
        return PublishedDataset(rows, [*self.notes, note])


class ConversionOptions(NamedTuple):
    """Options of a conversion; each format uses some of them.

    Attributes:
        aspect: what items are compared by; empty for the format's default.
        permutations: file of rankings of the items.
        min_events: fewest events of a story.
        passages: largest number of passages of a query.
        split: part of the data to read; empty for all.
        seed: for random orders and samples.
        limit: largest number of sets of items, task items or questions; None for all.
    """

    aspect: str = ""
    permutations: Path | None = None
    min_events: int | None = None
    passages: int | None = None
    split: str = ""
    seed: int = 0
    limit: int | None = None


class DatasetFormat(NamedTuple):
    """A data set that can be converted.

    Attributes:
        read: reads its file or folder.
        kinds: what it can be converted to; the first is the default.
        used_options: names of the fields of `ConversionOptions` that it uses.
        relation: what its items are compared by, for the probe `logic` and for imports of comparisons.
        labeller: judge of its comparisons.
        is_split_at_random: whether the data have no parts of their own, so that `split` draws one.
        layout_source: where its layout was taken from, if no original file was available to test the reader with;
            empty if the reader was tested with the original files.
    """

    read: Callable[[Path, ConversionOptions], PublishedDataset]
    kinds: tuple[str, ...] = ("items",)
    used_options: frozenset[str] = frozenset()
    relation: str = "preference"
    labeller: str = PEOPLE_JUDGE
    is_split_at_random: bool = False
    layout_source: str = ""
