"""Marks of logic's tables are derived from the stored configuration of their audits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from auditor.config import AuditConfig
from auditor.probes.logic.figures.schema import LogicReport
from auditor.replications.definitions import MeasuredAudit, derive_mark
from auditor.replications.experiment import Experiment, FigureSource, PublishedSetting
from auditor.replications.planning import merge_settings
from auditor.replications.presets import load_paper
from auditor.replications.trials import ALL_SETS
from auditor.reports.data.report_schema import Report
from tests.support.known import known

CHANGES: dict[str, dict[str, Any]] = {
    "prompt": {"relation": "causal"},
    "answer-form": {"answer": "structured", "cot": False, "form": "paper"},
    "choices": {"answer": "structured", "cot": True, "form": "standard"},
    "pairs": {"max_pairs": 6},
    "both-orders": {"both_orders": False},
    "subsets": {"max_subsets": 100},
    "negated": {"negated": False},
    "repeats": {"samples": 3},
    "repeat-answers": {"sample_answer": "same"},
    "repeat-temperature": {"sample_temperature": 1.0},
    "wordings": {"paraphrases": 3},
    "language": {"form": "standard"},  # the paper's form is in English only
}
"""A change of the probe, by id of the departure that it must be."""
TRIAL_CHANGES: dict[str, dict[str, Any]] = {
    "noise": {"noise": 0.2},
    "repair-k": {"k": 3},
    "rating": {"method": "elo"},
    "repair-sets": {"drawn": "at most 10, drawn at random"},
}
"""A change of the options of REPAIR, by id of the departure that it must be."""
OTHERS: dict[str, dict[str, Any]] = {
    "sets": {"sets": 99},
    "starts": {"starts": 10},
    "language": {"language": "native"},
    "items": {"sizes": (6, 16)},
}
"""What else is changed of the audit."""


def experiment() -> Experiment:
    return known(load_paper("logic").experiment)


def published_sets(audit: str) -> int:
    [sets] = [setting for setting in experiment().settings if setting.id == "sets"]
    return int(sets.value[audit])


def published_sizes(audit: str) -> tuple[int, ...]:
    """Numbers of items of an audit's sets, as the paper says."""
    [items] = [setting for setting in experiment().settings if setting.id == "items"]
    smallest, *others = items.value.get(audit, "2").split(" or more")
    return (int(smallest), int(smallest) + 2) if others else (int(smallest),)


def measured(
    audit: str,
    changes: dict[str, Any] | None = None,
    sets: int | None = None,
    starts: int = 100,
    sizes: tuple[int, ...] = (),
    **settings: Any,
) -> MeasuredAudit:
    """An audit of the experiment as it is stored, with changes of its probe."""
    models = [{"name": name, "model": f"openai/{name}"} for name in "ab"]
    base = {"name": "rep", "models": models, "probes": {"logic": {"items": "items.csv"}}, **settings}
    planned = merge_settings(merge_settings(base, experiment().config), experiment().audits[audit])
    changed = merge_settings(planned, {"probes": {"logic": changes or {}}})
    stored = AuditConfig.model_validate(changed).model_dump_json()
    n_sets = published_sets(audit) if sets is None else sets
    rankings = [SimpleNamespace(method="PairS, greedy", runs=starts)]
    contradictions = [SimpleNamespace(items=size) for size in sizes or published_sizes(audit)]
    figures = cast(Any, LogicReport).model_construct(sets=n_sets, rankings=rankings, contradictions=contradictions)
    report = cast(Any, Report).model_construct(logic=figures)
    return MeasuredAudit(audit, AuditConfig.model_validate_json(stored), report)


def imported(changes: dict[str, Any] | None = None) -> MeasuredAudit:
    """People's comparisons with the stages of REPAIR."""
    options = {**experiment().trials["repair"].options, "drawn": ALL_SETS, **(changes or {})}
    return MeasuredAudit("Feedback-train", None, cast(Report, None), {"repair": options})


def departures_of(setting: PublishedSetting, audit: MeasuredAudit) -> tuple[str, list[tuple[str, bool]]]:
    mark, departures = derive_mark(experiment(), setting.parts, FigureSource(), audit)
    return mark, [(departure.id, departure.is_wording) for departure in departures]


def typical_audit(setting: PublishedSetting) -> str:
    """An audit whose figures the setting bears on. Summaries are compared in English only."""
    if setting.id == "language":
        return "NovelEval"
    return "SummEval-wordings" if "wordings" in setting.parts else "SummEval"


SETTINGS = [setting for setting in experiment().settings if "repair" not in setting.parts]


def test_every_setting_has_a_change() -> None:
    assert {setting.id for setting in experiment().settings} == {*CHANGES, *TRIAL_CHANGES, *OTHERS}


def test_each_audit_measures_as_published_but_for_the_words() -> None:
    """Figure 5 has only ten sets of each data set, to save calls."""
    by_parts = {"logic": [*experiment().audits], "repeats": ["SummEval", "NovelEval", "CaTeRS"]}
    by_parts["pairs"] = ["SummEval", "MS-MARCO"]
    by_parts["items"] = [name for name in experiment().audits if name != "Feedback"]
    by_parts["negation"] = [name for name in experiment().audits if not name.endswith("-wordings")]
    by_parts["wordings"] = [name for name in experiment().audits if name.endswith("-wordings")]
    for part, audits in by_parts.items():
        for audit in audits:
            _, departures = derive_mark(experiment(), frozenset({part}), FigureSource(), measured(audit))
            assert [departure.description for departure in departures if not departure.is_wording] == [], audit


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.id)
def test_a_configuration_that_differs_is_never_marked_same(setting: PublishedSetting) -> None:
    audit = typical_audit(setting)
    mark, departures = departures_of(setting, measured(audit))
    assert mark in ("same_definition", "other_words")
    changed = measured(audit, CHANGES.get(setting.id), **OTHERS.get(setting.id, {}))
    mark, departures = departures_of(setting, changed)
    assert mark == "other_definition"
    assert (setting.id, False) in departures


@pytest.mark.parametrize(
    "setting", [setting for setting in experiment().settings if "repair" in setting.parts], ids=lambda s: s.id
)
def test_other_options_of_repair_are_never_marked_same(setting: PublishedSetting) -> None:
    assert departures_of(setting, imported()) == ("same_definition", [])
    mark, departures = departures_of(setting, imported(TRIAL_CHANGES[setting.id]))
    assert (mark, departures) == ("other_definition", [(setting.id, False)])


def test_the_length_of_answers_bears_on_reasoning_only() -> None:
    """An answer by the probabilities of its letters has one token."""
    for table in load_paper("logic").tables:
        for source in (source for source in table.list_sources() if source.audit in experiment().audits):
            audit = measured(source.audit, {"max_tokens": 200})
            _, departures = derive_mark(experiment(), table.parts, source, audit)
            is_reasoned = source.audit.endswith("-CoT") or "self_agreement" in source.model_figure
            assert ("probes.logic.max_tokens" in [d.id for d in departures]) == is_reasoned, (table.id, source)


def test_a_models_own_temperature_counts_for_repeats() -> None:
    models = [{"name": "a", "model": "openai/a", "temperature": 0.2}]
    [setting] = [setting for setting in experiment().settings if setting.id == "repeat-temperature"]
    audit = measured("SummEval", models=models)
    assert departures_of(setting, audit)[0] == "other_definition"


def test_every_pooled_figure_says_so() -> None:
    sources = [source for table in load_paper("logic").tables for source in table.list_sources()]
    pooled = [source for source in sources if source.model_figure.endswith(".pooled")]
    assert pooled
    for source in sources:
        assert ("pooled" in source.departures) == (source in pooled) == (source.label == "pooled")
