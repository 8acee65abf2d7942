"""What a document says about the data of its audits: files, what is made up, and layouts that were not verified."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

from auditor.imports.published.registry import DATASET_FORMATS
from auditor.replications.experiment import Experiment
from auditor.replications.planning import ReplicationOptions, list_data_files


def describe_data(experiment: Experiment, options: ReplicationOptions, audits: Collection[str]) -> list[str]:
    """Describe the data behind audits.

    Args:
        audits: names of the audits and imports, as the experiment has them.

    Returns:
        A note on the data of the program; and on each file of the user what is not checked about it, or that `auditor
        logic convert` knows its layout from a description only.
    """
    used = _list_used_data(experiment, audits)
    made_up = [
        name for name in used if options.is_small and name in experiment.small.files and name not in options.files
    ]
    notes = [
        f"Made-up data of the program instead of the paper's: {', '.join(made_up)}. The figures show no more than the "
        "steps."
    ] * bool(made_up)
    for name in used:
        if name in options.files and experiment.files[name].note:
            notes.append(f"{name}: {experiment.files[name].note}.")
        converter = experiment.files[name].converter
        if name in options.files and converter and (source := DATASET_FORMATS[converter].layout_source):
            notes.append(
                f"{name}: layout not verified on a real file; `auditor logic convert {converter}` follows {source}."
            )
    return notes


def _list_used_data(experiment: Experiment, audits: Collection[str]) -> list[str]:
    """Names of the data that audits, or the trials on them, read."""
    of_trials = {name for trial in experiment.trials.values() if trial.audit in audits for name in trial.files.values()}
    return [
        name for name, file in experiment.files.items() if name in of_trials or not set(file.audits).isdisjoint(audits)
    ]


def describe_files(experiment: Experiment, options: ReplicationOptions, audits: Collection[str]) -> list[str]:
    """Identify the data files behind audits, those of the user with their terms."""
    files = list_data_files(experiment, options)
    used = [name for name in _list_used_data(experiment, audits) if name in files and Path(files[name]).is_file()]
    terms = {name: experiment.files[name].terms for name in used if name in options.files}
    return [
        " ".join(filter(None, (identify_file(Path(files[name]), name), terms.get(name) and f"Terms: {terms[name]}.")))
        for name in used
    ]


def identify_file(path: Path, name: str = "") -> str:
    """Name a file with the SHA-256 of its content, and the data that it holds."""
    prefix = f"{name}: file" if name else "File"
    return f"{prefix} {path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}."
