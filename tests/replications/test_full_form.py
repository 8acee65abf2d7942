"""Every setting of a configuration is compared, or changes nothing; and notes on data."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from auditor.config import AuditConfig
from auditor.config.base import iterate_leaves
from auditor.config.value_checks import field_types, unwrap_annotation
from auditor.imports.published_registry import DATASET_FORMATS
from auditor.replications.definitions import KEYS_READ, derive_mark
from auditor.replications.experiment import FigureSource, is_within
from auditor.replications.full_form import KEYS_WITHOUT_EFFECT, compare_settings, describe_data, list_differences
from auditor.replications.planning import ReplicationOptions, merge_settings, plan_audits
from auditor.replications.presets import list_paper_ids, load_paper
from tests.replications.test_definitions import as_published, experiment, measured
from tests.support.known import known

CHANGED = "changed"
ALL_PARTS = frozenset({"direct", "logprob", "survey", "review", "conflicts", "regions", "similarity"})
VERIFIED = {"NovelEval": "novel-eval", "CaTeRS": "caters", "CaTeRS-people": "caters"}
NOT_VERIFIED = {
    "SummEval": "summeval",
    "MS-MARCO": "rankgpt",
    "Feedback": "summarize-from-feedback",
    "Feedback-people": "summarize-from-feedback",
    "Feedback-train": "summarize-from-feedback",
}


def list_keys(annotation: Any, path: str = "") -> Iterator[str]:
    """Dotted keys of a configuration, from the types of its fields; those in `models` have no index."""
    base, _ = unwrap_annotation(annotation)
    members = [base, *get_args(base), *(inner for member in get_args(base) for inner in get_args(member))]
    tables = [member for member in members if isinstance(member, type) and issubclass(member, BaseModel)]
    if not tables:
        yield path
    for name, inner in field_types(tables[0]).items() if tables else ():
        yield from list_keys(inner, f"{path}.{name}" if path else name)


KEYS = ("judges", *list_keys(AuditConfig))


def change(settings: dict[str, Any], key: str) -> None:
    """Set a key of nested tables to another value; that of a model, in its first one."""
    table, _, key_in_table = key.partition(".")
    if not key_in_table:
        settings[table] = CHANGED
    elif table in ("models", "judges"):
        if not isinstance(settings[table], list):
            settings[table] = [{"name": "j", "model": "openai/j"}]
        change(settings[table][0], key_in_table)
    else:
        settings[table] = settings.get(table) or {}
        change(settings[table], key_in_table)


def test_the_keys_are_all_that_a_dump_has() -> None:
    dump = AuditConfig.model_validate(as_published()).model_dump(mode="json")
    dumped = {key.replace("[a]", "") for key, _ in iterate_leaves({**dump, "models": dump["models"][:1]})}
    assert {"models.system", "probes.review.max_trace_chars", "probes.semantic.consistency.form"} <= set(KEYS)
    assert [key for key in dumped if not any(key == known or known.startswith(f"{key}.") for known in KEYS)] == []


def test_every_key_is_compared_or_known_to_have_no_effect() -> None:
    full = AuditConfig.model_validate(as_published()).model_dump(mode="json")
    full["models"][0]["params"] = {}
    for key in KEYS:
        stored = copy.deepcopy(full)
        change(stored, key)
        changed = {difference.key for difference in compare_settings(stored, full)}
        has_no_effect = any(is_within(key, table) for table in KEYS_WITHOUT_EFFECT)
        if key.startswith("judges."):
            changed.remove("judges")  # a list instead of peers
        assert changed == (set() if has_no_effect else {key}), key


def test_keys_that_published_settings_follow_from_exist() -> None:
    read = {key for keys in KEYS_READ.values() for key in keys}
    assert {key for key in read if not any(is_within(key, known) for known in KEYS)} == set()


MODEL_CHANGES: dict[str, dict[str, Any]] = {
    "models.system": {"system": "Answer always zero."},
    "models.params.presence_penalty": {"params": {"presence_penalty": 1}},
    "models.params.extra_body.repeat_penalty": {"params": {"extra_body": {"repeat_penalty": 1.15}}},
    "models.reasoning.effort": {"reasoning": {"effort": "high"}},
    "models.capabilities.temperature": {"capabilities": {"temperature": False}},
    "models.answers": {"model": "replay/a", "answers": "answers.csv"},
    "temperature": {"params": {"temperature": 0.0}},
    "top-p": {"params": {"top_p": 0.1}},
}
"""A change of a model, by id of the departure that it must be."""


@pytest.mark.parametrize("departure_id", MODEL_CHANGES)
def test_a_models_own_settings_are_departures_of_its_figures(departure_id: str) -> None:
    settings = as_published()
    settings["models"][0] |= MODEL_CHANGES[departure_id]
    audit = measured(settings)
    parts = frozenset({"direct", "survey"})
    for model, is_changed in ((None, True), ("a", True), ("b", False)):
        mark, departures = derive_mark(experiment(), parts, FigureSource(), audit, model)
        ids = [departure.id for departure in departures]
        assert (departure_id in ids) == is_changed, (model, ids)
        assert mark == ("other_definition" if is_changed else "other_words")


def test_a_model_that_judges_others_changes_their_peer_agreement() -> None:
    settings = as_published()
    settings["models"][0]["review_prompt"] = "review.md"
    source = FigureSource(parts=frozenset({"review"}))
    _, departures = derive_mark(experiment(), frozenset(), source, measured(settings), "b")
    assert "models.review_prompt" in [departure.id for departure in departures]
    _, departures = derive_mark(experiment(), frozenset({"direct"}), FigureSource(), measured(settings))
    assert "models.review_prompt" not in [departure.id for departure in departures]


@pytest.mark.parametrize(
    ("changes", "key", "part"),
    [
        ({"probes": {"direct": {"max_words": 8}}}, "probes.direct.max_words", "direct"),
        ({"probes": {"direct": {"repair": False}}}, "probes.direct.repair", "direct"),
        ({"probes": {"direct": {"tolerance": 0.1}}}, "probes.direct.tolerance", "direct"),
        ({"probes": {"review": {"max_trace_chars": 500}}}, "probes.review.max_trace_chars", "review"),
        ({"panel": {"judges_per_trace": 1}}, "panel.judges_per_trace", "review"),
        ({"panel": {"exclude_family": True}}, "panel.exclude_family", "review"),
        ({"panel": {"adaptive": True}}, "panel.adaptive", "review"),
        ({"panel": {"vote": "weighted", "weights": {"a": 2, "b": 1, "c": 1}}}, "panel.weights.a", "conflicts"),
        ({"survey": {"countries": ["Germany"]}}, "survey.countries", "survey"),
        ({"survey": {"topics": ["divorce"]}}, "survey.topics", "survey"),
        ({"embedding": {"model": "other"}}, "embedding.model", "similarity"),
    ],
)
def test_a_setting_bears_on_its_part_only(changes: dict[str, Any], key: str, part: str) -> None:
    audit = measured(merge_settings(as_published(), changes))
    for other in ALL_PARTS:
        _, departures = derive_mark(experiment(), frozenset({other}), FigureSource(), audit)
        assert (key in [departure.id for departure in departures]) == (other == part), other


def test_the_description_has_both_values_and_the_models() -> None:
    settings = as_published()
    for i in (0, 1):
        settings["models"][i]["system"] = "Answer always zero."
    _, departures = derive_mark(experiment(), frozenset({"direct"}), FigureSource(), measured(settings))
    [system] = [departure for departure in departures if departure.id == "models.system"]
    assert system.description == "`models.system`: “Answer always zero.” instead of none (a, b)"


@pytest.mark.parametrize("paper_id", list_paper_ids())
def test_the_full_form_of_every_paper_has_no_unpublished_departure(paper_id: str, tmp_path: Path) -> None:
    paper = load_paper(paper_id)
    assert paper.experiment is not None
    models = tmp_path / "models.toml"
    sections = [f'name = "{name}"\nmodel = "openai/{name}"\n' for name in "abc"]
    text = 'name = "x"\nsurvey = { source = "wvs7-sample" }\n' + "".join(f"[[models]]\n{text}" for text in sections)
    judge = '[[judges]]\nname = "j"\nmodel = "openai/j"\n' if paper_id == "consistency" else ""
    models.write_text(text + judge, encoding="utf-8")
    files = {name: str(tmp_path / "data.csv") for name in paper.experiment.files}
    planned = plan_audits(paper, ReplicationOptions(models_file=models, files=files))
    assert set(planned) == set(paper.experiment.audits)
    for audit_name, config in planned.items():
        assert list_differences(paper.experiment, audit_name, config) == []


def notes(*audits: str, is_small: bool = False, files: dict[str, str] | None = None) -> list[str]:
    experiment = known(load_paper("logic").experiment)
    return describe_data(experiment, ReplicationOptions(is_small=is_small, files=files or {}), audits)


def test_every_file_of_logic_names_its_converter() -> None:
    experiment = known(load_paper("logic").experiment)
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
    experiment = known(load_paper("sage").experiment)
    for files, named in (({}, "MCC, SELECTED, RULES"), ({"RULES": "x.csv"}, "MCC, SELECTED")):
        [note] = describe_data(experiment, ReplicationOptions(is_small=True, files=files), ["MCC", "selected"])
        assert f"instead of the paper's: {named}. The" in note
    assert describe_data(experiment, ReplicationOptions(), ["MCC", "selected"]) == []


def test_made_up_data_are_named_unless_the_user_has_others() -> None:
    [note] = notes("SummEval", "CaTeRS", is_small=True, files={"CaTeRS": "x.jsonl"})
    assert note.startswith("Made-up data of the program instead of the paper's: SummEval.")
    assert notes("SummEval", files={"SummEval": "x.jsonl"})[0].startswith("SummEval: layout")
