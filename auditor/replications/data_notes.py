"""What a document says about the data of its audits: which are made up, and which layouts were not verified."""

from __future__ import annotations

from collections.abc import Collection

from auditor.imports.published.registry import DATASET_FORMATS
from auditor.replications.experiment import Experiment
from auditor.replications.planning import ReplicationOptions


def describe_data(experiment: Experiment, options: ReplicationOptions, audits: Collection[str]) -> list[str]:
    """Describe the data behind audits.

    Args:
        audits: names of the audits and imports, as the experiment has them.

    Returns:
        A note on the data of the program; and one for each file of the user whose layout `auditor logic convert` knows
        from its description only.
    """
    of_trials = {name for trial in experiment.trials.values() if trial.audit in audits for name in trial.files.values()}
    used = [
        name for name, file in experiment.files.items() if name in of_trials or not set(file.audits).isdisjoint(audits)
    ]
    made_up = [
        name for name in used if options.is_small and name in experiment.small.files and name not in options.files
    ]
    notes = [
        f"Made-up data of the program instead of the paper's: {', '.join(made_up)}. The figures show no more than the "
        "steps."
    ] * bool(made_up)
    for name in used:
        converter = experiment.files[name].converter
        if name in options.files and converter and (source := DATASET_FORMATS[converter].layout_source):
            notes.append(
                f"{name}: layout not verified on a real file; `auditor logic convert {converter}` follows {source}."
            )
    return notes
