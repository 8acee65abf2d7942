"""Marks are derived from the stored configuration of the audit that a figure comes from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from auditor.agents.call_builders import build_judge_call
from auditor.config import AuditConfig
from auditor.domain import Purpose
from auditor.replications.definitions import (
    MeasuredAudit,
    derive_mark,
    describe_departure,
    format_setting,
    merge_departures,
    read_setting,
)
from auditor.replications.experiment import Experiment, FigureSource, PublishedSetting
from auditor.replications.planning import ReplicationOptions, merge_settings, plan_audits
from auditor.replications.presets import load_paper
from auditor.replications.settings import NOT_SET
from auditor.reports.data.replication import Departure
from auditor.reports.data.report_schema import Report
from tests.support.known import known

PUBLISHED_CELLS = {"WVS": 1045, "PEW": 312}
NAMES = "names"
"""Id of the departure of data with other countries and topics."""
CELL_SETTINGS = {"cells": 1045, "released-cells": 1028}
"""Numbers of cells on WVS, by id of the departure."""
CHANGES: dict[str, dict[str, Any]] = {
    "prompt": {"probes": {"direct": {"form": "standard"}}},
    "answer-form": {"probes": {"direct": {"mode": "structured"}}},
    "samples": {"probes": {"direct": {"samples": 4}}},
    "temperature": {"probes": {"direct": {"temperature": 0.6}}},
    "max-tokens": {"probes": {"direct": {"max_tokens": 400}}},
    "top-p": {"probes": {"direct": {"top_p": 0.9}}},
    "data": {"survey": {"source": "wvs7-sample"}},
    "nonresponse": {"survey": {"nonresponse": "drop"}},
    "released-nonresponse": {"survey": {"nonresponse": "zero"}},
    "languages": {"language": "native"},
    "sentences": {"probes": {"logprob": {"method": "echo"}}},
    "review-prompt": {"probes": {"review": {"form": "standard"}}},
    "review-words": {"probes": {"review": {"max_words": 40}}},
    "review-temperature": {"probes": {"review": {"temperature": 0.0}}},
    "review-max-tokens": {"probes": {"review": {"max_tokens": 300}}},
    "judges": {"judges": [{"name": "j", "model": "openai/j"}]},
    "traces": {"probes": {"review": {"traces": "all"}}},
    "vote": {"panel": {"vote": "dawid_skene"}},
    "threshold": {"conflicts": {"threshold": "auto"}},
    "regions": {"survey": {"regions": "un_m49"}},
}
"""A change of the configuration, by id of the departure that it must be."""


def experiment() -> Experiment:
    return known(load_paper("evalmoraal").experiment)


def as_published() -> dict[str, Any]:
    """The configuration of the experiment as published, on the survey WVS."""
    models = [{"name": name, "model": f"openai/{name}"} for name in "abc"]
    settings = merge_settings(experiment().config, {"name": "rep", "models": models})
    settings = merge_settings(merge_settings(settings, experiment().audits["WVS"]), experiment().as_published)
    return merge_settings(settings, {"survey": {"source": "wvs7.csv"}})


def measured(settings: dict[str, Any], cells: int = 1045, survey: str = "WVS") -> MeasuredAudit:
    """An audit with this configuration and number of cells, as it is stored: its JSON read again."""
    stored = AuditConfig.model_validate(settings).model_dump_json()
    names = {"WVS": [("Germany", "divorce"), ("United States of America", "suicide")], "PEW": [("Britain", "gambling")]}
    asked = [SimpleNamespace(country=country, topic=topic) for country, topic in names[survey]]
    report = SimpleNamespace(audit=SimpleNamespace(survey=SimpleNamespace(asked=cells), cells=asked))
    return MeasuredAudit(survey, AuditConfig.model_validate_json(stored), cast(Report, report))


def departures_of(setting: PublishedSetting, audit: MeasuredAudit) -> tuple[str, list[tuple[str, bool]]]:
    part = "survey" if "survey" in setting.parts else min(setting.parts)
    parts = frozenset({part})
    mark, departures = derive_mark(experiment(), parts, FigureSource(), audit)
    return mark, [(departure.id, departure.is_wording) for departure in departures]


def test_every_setting_but_the_number_of_cells_has_a_change() -> None:
    assert {setting.id for setting in experiment().settings} == {*CHANGES, *CELL_SETTINGS, NAMES}


@pytest.mark.parametrize("setting", experiment().settings, ids=lambda setting: setting.id)
def test_a_configuration_that_differs_is_never_marked_same(setting: PublishedSetting) -> None:
    settings = as_published()
    n_cells = CELL_SETTINGS["cells"]
    if "predecessor" in setting.parts and "survey" not in setting.parts:
        settings, n_cells = (
            merge_settings(settings, {"survey": {"nonresponse": "drop"}}),
            CELL_SETTINGS["released-cells"],
        )
    mark, departures = departures_of(setting, measured(settings, n_cells))
    assert mark == ("other_words" if any(is_wording for _, is_wording in departures) else "same_definition")
    assert all(is_wording for _, is_wording in departures)
    changed = (
        measured(settings, cells=100)
        if setting.id in CELL_SETTINGS
        else measured(merge_settings(settings, CHANGES.get(setting.id, {})), n_cells)
    )
    if setting.id == NAMES:
        changed.report.audit.cells.append(cast(Any, SimpleNamespace(country="Germany", topic="jaywalking")))
    mark, departures = departures_of(setting, changed)
    assert mark == "other_definition"
    assert (setting.id, False) in departures


def test_a_models_own_temperature_counts() -> None:
    settings = as_published()
    settings["models"][0]["temperature"] = 0.2
    audit = measured(settings)
    assert read_setting(audit, "direct.temperature") == [0.2, 0.7]
    [temperature] = [setting for setting in experiment().settings if setting.id == "temperature"]
    assert departures_of(temperature, audit)[0] == "other_definition"


def test_models_that_judge_each_other_have_the_temperature_that_is_sent() -> None:
    settings = as_published()
    settings["models"][0]["temperature"] = 0.4
    audit = measured(settings)
    calls = [
        build_judge_call(audit.config, judge, Purpose.REVIEW, (), about=(), schema="") for judge in audit.config.models
    ]
    assert {call.params["temperature"] for call in calls} == {read_setting(audit, "review.temperature")} == {0.3}
    settings["models"][0]["params"] = {"temperature": 0.9}
    assert read_setting(measured(settings), "review.temperature") == [0.3, 0.9]


def test_a_setting_of_a_probe_that_was_not_used_is_not_set() -> None:
    settings = as_published()
    del settings["probes"]["logprob"]
    assert read_setting(measured(settings), "probes.logprob.method") == NOT_SET


def test_the_number_of_cells_is_that_of_the_figures_survey() -> None:
    [cells] = [setting for setting in experiment().settings if setting.id == "cells"]
    for survey, n_cells in PUBLISHED_CELLS.items():
        assert departures_of(cells, measured(as_published(), n_cells, survey))[0] == "same_definition"
    assert departures_of(cells, measured(as_published(), PUBLISHED_CELLS["WVS"], "PEW"))[0] == "other_definition"


def test_data_with_other_countries_or_topics_are_not_the_published_ones() -> None:
    """A made-up file may have as many cells; countries count in any spelling, topics by the survey's words."""
    [names] = [setting for setting in experiment().settings if setting.id == NAMES]
    audit = measured(as_published())
    for i in range(10):
        audit.report.audit.cells.append(cast(Any, SimpleNamespace(country="Atlantis", topic=f"lying {i}")))
    _, departures = derive_mark(experiment(), frozenset({"survey"}), FigureSource(), audit)
    [description] = [departure.description for departure in departures if departure.id == NAMES]
    assert description.startswith(f"{names.description}: Atlantis, lying 0, lying 1,")
    assert description.endswith(", lying 6 and 3 more")
    n_names = {survey: len(listed) for survey, listed in names.value.items()}
    assert n_names == {"WVS": 55 + 19, "PEW": 39 + 8}


def test_a_full_survey_as_published_is_the_same_definition_in_other_words(tmp_path: Path) -> None:
    """Of direct answers. Log-probabilities have fixed departures only: the settings of answers do not bear on them."""
    models = tmp_path / "models.toml"
    models.write_text("".join(f'[[models]]\nname = "{name}"\nmodel = "openai/{name}"\n' for name in "abc"), "utf-8")
    files = {survey: str(tmp_path / f"{survey}.csv") for survey in PUBLISHED_CELLS}
    options = ReplicationOptions(models_file=models, files=files, is_as_published=True)
    paper = load_paper("evalmoraal")
    [table] = paper.select_tables("1")
    for survey, config in plan_audits(paper, options).items():
        audit = replace(measured(as_published(), PUBLISHED_CELLS[survey], survey), stored_config=config)
        for column, expected in (
            ("r, direct", ("other_words", ["prompt"])),
            ("r, log-probability", ("other_definition", ["sentences", "log-probability-sum"])),
        ):
            [source] = table.figures[column]
            mark, departures = derive_mark(experiment(), table.parts, source, audit, "a")
            assert (mark, [departure.id for departure in departures]) == expected
        source = FigureSource(parts=frozenset({"direct", "review", "conflicts", "regions", "similarity"}))
        assert derive_mark(experiment(), table.parts, source, audit)[0] == "other_words"


def test_scores_without_shares_of_nonresponse_do_not_count_it_as_zero() -> None:
    [nonresponse] = [setting for setting in experiment().settings if setting.id == "nonresponse"]
    audit = replace(measured(as_published()), n_unknown_nonresponse=1028)
    assert ("nonresponse", False) in departures_of(nonresponse, audit)[1]
    dropped = merge_settings(as_published(), {"survey": {"nonresponse": "drop"}})
    unknown = replace(measured(dropped), n_unknown_nonresponse=1028)
    assert read_setting(unknown, "survey.nonresponse") == "drop"


def test_a_fixed_departure_is_never_marked_same() -> None:
    source = FigureSource(departures=("log-probability-sum",))
    mark, [departure] = derive_mark(experiment(), frozenset(), source, measured(as_published()))
    assert (mark, departure.id) == ("other_definition", "log-probability-sum")


def departure(audit: str, measured: str, published: str = "5") -> Departure:
    entry = Departure(
        id="samples", description="", subject="samples", measured=measured, published=published, is_wording=False,
        size=None, size_note="",
    )  # fmt: skip
    return describe_departure(entry, audit)


def test_equal_departures_are_one_with_all_audits() -> None:
    [merged] = merge_departures([departure("WVS", "2"), departure("PEW", "2")])
    assert (merged.description, merged.audits) == ("samples: 2 (published: 5)", ["WVS", "PEW"])


def test_different_values_name_their_audits() -> None:
    [merged] = merge_departures([departure("WVS", "2"), departure("PEW", "3"), departure("EVS", "2")])
    assert merged.description == "samples: WVS, EVS 2; PEW 3 (published: 5)"
    assert merged.audits == ["WVS", "PEW", "EVS"]


def test_different_published_values_are_named() -> None:
    [merged] = merge_departures([departure("WVS", "16", "1 045"), departure("PEW", "6", "312")])
    assert merged.description == "samples: WVS 16 (published: 1 045); PEW 6 (published: 312)"


def test_values_are_formatted() -> None:
    assert [format_setting(value) for value in (True, 1045, 0.3, [0.4, 1.0], "auto")] == [
        "True", "1\u202f045", "0.3", "0.4, 1", "auto",
    ]  # fmt: skip
