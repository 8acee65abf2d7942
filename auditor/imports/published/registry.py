"""The published data sets that can be converted, by name: reading one, and writing its rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from auditor.atomic_files import write_atomically
from auditor.errors import ImportFileError, UsageError
from auditor.imports.published.feedback import read_summarize_from_feedback
from auditor.imports.published.questions import read_hellaswag, read_mic, read_truthful_qa
from auditor.imports.published.rankings import read_ms_marco, read_novel_eval, read_rankgpt, read_summeval
from auditor.imports.published.rows import ROW_KINDS, ConversionOptions, PublishedDataset, RowKind
from auditor.imports.published.stories import read_caters

PEOPLE_JUDGE = "people"
"""Judge whose comparisons are people's, in a file of comparisons."""
RELATIONS = ("relevance", "coherence", "temporal", "causal")
"""Aspects of data sets by which the probe `logic` compares items."""
COMMON_OPTIONS = ("seed", "limit")
"""Options that every format uses."""


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
    kinds: tuple[RowKind, ...] = ("items",)
    used_options: frozenset[str] = frozenset()
    relation: str = "preference"
    labeller: str = PEOPLE_JUDGE
    is_split_at_random: bool = False
    layout_source: str = ""

    def find_relation(self, aspect: str) -> str:
        """What the items are compared by, for an aspect of the data set."""
        return aspect if aspect in RELATIONS else self.relation if not aspect else "preference"


DATASET_FORMATS: Mapping[str, DatasetFormat] = {
    "summeval": DatasetFormat(
        read_summeval,
        used_options=frozenset({"aspect"}),
        relation="coherence",
        layout_source="the authors' documentation",
    ),
    "novel-eval": DatasetFormat(read_novel_eval, relation="relevance"),
    "ms-marco": DatasetFormat(read_ms_marco, relation="relevance", layout_source="the authors' documentation"),
    "rankgpt": DatasetFormat(
        read_rankgpt,
        kinds=("items", "comparisons"),
        used_options=frozenset({"permutations", "passages", "split"}),
        relation="relevance",
        labeller="rankgpt",
        is_split_at_random=True,
        layout_source="the authors' training program",
    ),
    "caters": DatasetFormat(
        read_caters,
        kinds=("items", "comparisons"),
        used_options=frozenset({"aspect", "min_events"}),
        relation="temporal",
    ),
    "summarize-from-feedback": DatasetFormat(
        read_summarize_from_feedback,
        kinds=("items", "comparisons"),
        used_options=frozenset({"split"}),
        layout_source="the authors' documentation",
    ),
    "truthful-qa": DatasetFormat(read_truthful_qa, kinds=("items", "questions", "known-answers")),
    "hellaswag": DatasetFormat(
        read_hellaswag,
        kinds=("items", "known-answers"),
        used_options=frozenset({"split"}),
        layout_source="the authors' documentation",
    ),
    "mic": DatasetFormat(
        read_mic,
        kinds=("questions", "rules"),
        used_options=frozenset({"split"}),
        layout_source="the authors' program that writes the file",
    ),
}


def find_format(name: str) -> DatasetFormat:
    """Return the format of a data set.

    Raises:
        UsageError: the name is unknown.
    """
    if name not in DATASET_FORMATS:
        raise UsageError(f"the format '{name}' is unknown.", f"Use one of {', '.join(DATASET_FORMATS)}.")
    return DATASET_FORMATS[name]


def read_dataset(name: str, source: Path, options: ConversionOptions | None = None) -> PublishedDataset:
    """Read a data set.

    Args:
        name: one of `DATASET_FORMATS`.
        source: file or folder of the data set.
        options: options that the format uses.

    Raises:
        UsageError: the format is unknown, or an option is not one of the format or has a wrong value.
        ImportFileError: the data are not as published; the message names the file, and the line if known.
    """
    dataset_format = find_format(name)
    options = options or ConversionOptions()
    defaults = ConversionOptions()
    for option, value in options._asdict().items():
        is_used = option in dataset_format.used_options or option in COMMON_OPTIONS
        if value != getattr(defaults, option) and not is_used:
            raise UsageError(f"--{option.replace('_', '-')}: is not an option of {name}.", "Leave it out.")
    if not source.exists():
        raise ImportFileError(f"{source}: there is no such file or folder.", "Download the data first.")
    dataset = dataset_format.read(source, options)
    if options.limit is not None:
        dataset = dataset.sample(options.limit, options.seed)
    if options.split and dataset_format.is_split_at_random:
        dataset = dataset.take_part(options.split, options.seed)
    return dataset


def write_rows(dataset: PublishedDataset, file: Path, kind: RowKind, labeller: str = PEOPLE_JUDGE) -> int:
    """Write the rows of a kind as JSONL. Comparisons are those of the judge `labeller`.

    Returns:
        Number of rows written.

    Raises:
        UsageError: there are no rows of that kind, or the suffix is not `.jsonl`.
    """
    if file.suffix != ".jsonl":
        raise UsageError(f"{file}: the file name must end in .jsonl.", "Rename the file.")
    rows: list[dict[str, Any]] = [row._asdict() for row in dataset.rows.get(kind, ())]
    if kind == "comparisons":
        rows = [{"judge": labeller, **row, "relation": "standard"} for row in rows]
    if not rows:
        known_kinds = [name for name in ROW_KINDS if dataset.rows.get(name)]
        how_to_fix = f"Use --as {' or --as '.join(known_kinds)}." if known_kinds else "Check that it is the right file."
        raise UsageError(f"the data have no {kind}.", how_to_fix)
    write_atomically("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), file)
    return len(rows)
