"""Notes on data: what is made up, and which layouts were not verified on a real file."""

from __future__ import annotations

import pytest

from auditor.imports.published_registry import DATASET_FORMATS
from auditor.replications.full_form import describe_data
from auditor.replications.planning import ReplicationOptions
from auditor.replications.presets import list_paper_ids, load_paper

VERIFIED = {"NovelEval": "novel-eval", "CaTeRS": "caters", "CaTeRS-people": "caters"}
NOT_VERIFIED = {
    "SummEval": "summeval",
    "MS-MARCO": "rankgpt",
    "Feedback": "summarize-from-feedback",
    "Feedback-people": "summarize-from-feedback",
    "Feedback-train": "summarize-from-feedback",
}


def notes(*audits: str, is_small: bool = False, files: dict[str, str] | None = None) -> list[str]:
    experiment = load_paper("logic").experiment
    assert experiment is not None
    return describe_data(experiment, ReplicationOptions(is_small=is_small, files=files or {}), audits)


def test_every_file_of_logic_names_its_converter() -> None:
    experiment = load_paper("logic").experiment
    assert experiment is not None
    assert {name: file.converter for name, file in experiment.files.items()} == VERIFIED | NOT_VERIFIED


def test_converters_exist() -> None:
    experiments = [load_paper(paper).experiment for paper in list_paper_ids()]
    named = {file.converter for experiment in experiments if experiment for file in experiment.files.values()}
    assert named - {""} <= set(DATASET_FORMATS)


@pytest.mark.parametrize("name", NOT_VERIFIED)
def test_a_layout_that_was_not_verified_is_named(name: str) -> None:
    audit = name.removesuffix("-people")
    [note] = notes(audit, files={name: "x.jsonl"})
    assert note.startswith(f"{name}: layout not verified on a real file")
    assert f"auditor logic convert {NOT_VERIFIED[name]}" in note
    assert notes("CaTeRS", files={name: "x.jsonl"}) == []  # a table without this file


@pytest.mark.parametrize("name", VERIFIED)
def test_a_verified_layout_has_no_note(name: str) -> None:
    assert notes("CaTeRS", "NovelEval", files={name: "x.jsonl"}) == []


def test_made_up_data_that_only_an_experiment_reads_are_named() -> None:
    experiment = load_paper("sage").experiment
    assert experiment is not None
    for files, named in (({}, "MCC, SELECTED, RULES"), ({"RULES": "x.csv"}, "MCC, SELECTED")):
        [note] = describe_data(experiment, ReplicationOptions(is_small=True, files=files), ["MCC", "selected"])
        assert f"instead of the paper's: {named}. The" in note
    assert describe_data(experiment, ReplicationOptions(), ["MCC", "selected"]) == []


def test_made_up_data_are_named_unless_the_user_has_others() -> None:
    [note] = notes("SummEval", "CaTeRS", is_small=True, files={"CaTeRS": "x.jsonl"})
    assert note.startswith("Made-up data of the program instead of the paper's: SummEval.")
    assert notes("SummEval", files={"SummEval": "x.jsonl"})[0].startswith("SummEval: layout")
