"""Figures that differ in a name only are written once in a preset."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from auditor.replications.presets import expand_templates, list_paper_ids

PRESET = """
title = "made up"

[alternatives]
stage = ["before", "after"]
task = { "Task A" = "a" }
[alternatives.metric]
BLEU = "bleu_nltk"
SaGE = [
  { figure = "sage:alpha=10", label = "exponent 10", parts = ["sage"], departures = ["nodes"] },
  { figure = "sage:alpha=1", label = "exponent 1" },
]

[[tables]]
columns = ["SaGE, answers", "BLEU, answers", "Task A"]
[tables.figures]
"{metric}, answers" = [
  { figure = "{metric}.answer", departures = ["sampling"] },
  { figure = "{metric}.mix", only = { metric = ["SaGE"] }, label = "mixed, {metric}", parts = ["rules"] },
]
"{task}" = [{ model_figure = "{task}.accuracy", trial = "{task}" }]
[tables.forms."{stage}, {task}"]
"{metric}, answers" = [{ figure = "{task}.{stage}.{metric}", label = "all, {metric}" }]
"""


def test_a_template_is_expanded_by_its_alternatives() -> None:
    expanded = expand_templates(tomllib.loads(PRESET))
    assert set(expanded) == {"title", "tables"}
    [table] = expanded["tables"]
    assert list(table["figures"]) == table["columns"]
    assert table["figures"]["BLEU, answers"] == [
        {"figure": "bleu_nltk.answer", "label": "", "parts": [], "departures": ["sampling"]}
    ]
    labels = [(source["figure"], source["label"]) for source in table["figures"]["SaGE, answers"]]
    assert labels == [
        ("sage:alpha=10.answer", "exponent 10"),
        ("sage:alpha=1.answer", "exponent 1"),
        ("sage:alpha=10.mix", "mixed, exponent 10"),
        ("sage:alpha=1.mix", "mixed, exponent 1"),
    ]
    first, *_, last = table["figures"]["SaGE, answers"]
    assert (first["parts"], first["departures"]) == (["sage"], ["sampling", "nodes"])
    assert (last["parts"], last["departures"]) == (["rules"], [])
    [choice] = table["figures"]["Task A"]
    assert (choice["model_figure"], choice["trial"]) == ("a.accuracy", "a")


def test_forms_are_expanded_with_the_figures_in_them() -> None:
    [table] = expand_templates(tomllib.loads(PRESET))["tables"]
    assert list(table["forms"]) == ["before, Task A", "after, Task A"]
    figures = table["forms"]["after, Task A"]
    assert [source["figure"] for source in figures["BLEU, answers"]] == ["a.after.bleu_nltk"]
    assert [(source["figure"], source["label"]) for source in figures["SaGE, answers"]] == [
        ("a.after.sage:alpha=10", "all, exponent 10"),
        ("a.after.sage:alpha=1", "all, exponent 1"),
    ]


@pytest.mark.parametrize("paper_id", [paper_id for paper_id in list_paper_ids() if paper_id not in ("logic", "sage")])
def test_presets_without_templates_stay_as_they_are(paper_id: str) -> None:
    preset = tomllib.loads((files("auditor.replications") / "presets" / f"{paper_id}.toml").read_text("utf-8"))
    expanded = expand_templates(preset)
    for table, expanded_table in zip(preset["tables"], expanded["tables"], strict=True):
        for column, sources in table.get("figures", {}).items():
            for source, expanded_source in zip(sources, expanded_table["figures"][column], strict=True):
                assert {**expanded_source, **source} == expanded_source


def test_a_template_names_audits_and_leaves_out_columns_that_a_table_does_not_have() -> None:
    tables = """
    [alternatives]
    set = ["A", "B"]
    [alternatives.measure]
    "H." = [{ figure = "agreement" }]
    "s_neg" = [{ figure = "negation" }]
    [[tables]]
    columns = ["B, H.", "A, H."]
    [tables.forms.CoT]
    "{set}, {measure}" = [{ model_figure = "{measure}", audit = "{set}-CoT" }]
    """
    [table] = expand_templates(tomllib.loads(tables))["tables"]
    audits = {column: figure["audit"] for column, [figure] in table["forms"]["CoT"].items()}
    assert audits == {"B, H.": "B-CoT", "A, H.": "A-CoT"}
    assert list(audits) == table["columns"]
