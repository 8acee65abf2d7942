"""The published data sets that can be converted, by name: reading one, and writing its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auditor.atomic_files import write_atomically
from auditor.config.installed_probes import list_built_in_probes
from auditor.errors import ImportFileError, UsageError
from auditor.imports.published import (
    PEOPLE_JUDGE,
    ConversionOptions,
    DatasetFormat,
    PublishedDataset,
    PublishedDecision,
)

COMMON_OPTIONS = ("seed", "limit")
"""Options that every format uses."""


DATASET_FORMATS: Mapping[str, DatasetFormat] = {
    name: dataset_format
    for probe in list_built_in_probes()
    for name, dataset_format in probe.list_dataset_formats().items()
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


def write_rows(dataset: PublishedDataset, file: Path, kind: str, labeller: str = PEOPLE_JUDGE) -> int:
    """Write the rows of a kind as JSONL. Comparisons are those of the judge `labeller`.

    Returns:
        Number of rows written.

    Raises:
        UsageError: there are no rows of that kind, or the suffix is not `.jsonl`.
    """
    if file.suffix != ".jsonl":
        raise UsageError(f"{file}: the file name must end in .jsonl.", "Rename the file.")
    rows: list[dict[str, Any]] = [
        row.to_columns(labeller) if isinstance(row, PublishedDecision) else row._asdict()
        for row in dataset.rows.get(kind, ())
    ]
    if not rows:
        known_kinds = [name for name, kind_rows in dataset.rows.items() if kind_rows]
        how_to_fix = f"Use --as {' or --as '.join(known_kinds)}." if known_kinds else "Check that it is the right file."
        raise UsageError(f"the data have no {kind}.", how_to_fix)
    write_atomically("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), file)
    return len(rows)
