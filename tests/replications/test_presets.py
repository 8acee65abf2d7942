"""Published cells: their number, how they are read, and that each quote stands in its source."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest

from auditor.errors import UsageError
from auditor.replications.paper_files import list_published_tables
from auditor.replications.presets import (
    Paper,
    PublishedRow,
    PublishedTable,
    expand_templates,
    list_paper_ids,
    load_paper,
    parse_figure,
)
from auditor.reports.data.agreement.over_models import CUT_OFFS
from auditor.reports.data.replication import Origin
from auditor.reports.output import render_document
from auditor.reports.sections.replication import build_paper_list_document

PAPERS = next((p for folder in Path(__file__).parents if (p := folder / "shared" / "papers").is_dir()), None)
ORIGINS_IN_TEXTS = ("paper", "summary")
"""Origins whose texts are in that folder; the others name the repository and the commit."""
N_CELLS = {
    "consistency": {"example": 1},
    "evalmoraal": {
        **{"1": 6, "tiers": 6, "self-consistency": 5, "variance": 3, "peer": 6, "conflicts": 5, "regions": 3},
        **{"topics": 1, "log-probability": 18, "ramezani-xu": 2},
    },
    "logic": {"1": 240, "2": 16, "3": 16, "4": 25, "5": 24, "6": 16, "7": 15},
    "sage": {"1": 88, "2": 8, "people": 1, "3": 36, "4": 8},
    "sge": {"people": 1},
}
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


def test_no_published_cell_is_lost() -> None:
    assert {paper: Counter(cell.table for cell in load_paper(paper).iterate_cells()) for paper in list_paper_ids()} == {
        paper: Counter(tables) for paper, tables in N_CELLS.items()
    }


@pytest.mark.parametrize(
    ("paper", "table", "row", "column", "value"),
    [
        ("sage", "1", "GPT-4 †", "SaGE, rules", 0.438),
        ("sage", "1", "opt-125m", "BLEU, answers", 0.011),
        ("sage", "4", "GPT-3.5 with RoT prompting", "SaGE", 0.548),
        ("logic", "1", "Gemma-2-9B, CoT", "NovelEval, H.", 62.1),
        ("logic", "1", "Gemma-2-9B, direct", "CaTeRS, s_neg", 66.9),
        ("logic", "2", "REPAIR-ed data", "# Data", 30900.0),
        ("logic", "4", "Phi-3-medium", "PairS calibrated", 41.3),
        ("logic", "5", "Perturbed data", "PairS calibrated", 60.3),
        ("evalmoraal", "self-consistency", "GPT-4", "self-consistency", 0.946),
        ("evalmoraal", "conflicts", "both surveys", "settled by majority", 0.89),
        ("evalmoraal", "conflicts", "both surveys", "binary", 0.7),
        ("evalmoraal", "1", "20 models, lowest", "delta r", 0.081),
        ("evalmoraal", "1", "20 models, highest", "delta r", 0.119),
        ("evalmoraal", "1", "Claude-3-Opus", "r, direct", 0.9),
        ("evalmoraal", "1", "GPT-4o", "r, direct", 0.9),
        ("evalmoraal", "peer", "quality issues, A below", "A", 0.7),
        ("evalmoraal", "tiers", "Mid-Lower", "PEW, lowest r", 0.65),
        ("evalmoraal", "variance", "20 models", "r with alignment", -0.54),
        ("evalmoraal", "ramezani-xu", "GPT-3, token pairs", "WVS", 0.41),
    ],
)
def test_figures_are_those_that_a_reader_of_the_paper_finds(
    paper: str, table: str, row: str, column: str, value: float
) -> None:
    cells = {(cell.row, cell.column): cell for cell in load_paper(paper).iterate_cells(table)}
    assert cells[row, column].value == value
    assert cells[row, column].printed in cells[row, column].quote


def test_a_misprint_keeps_its_characters_and_has_no_value() -> None:
    cells = {(cell.row, cell.column): cell for cell in load_paper("logic").iterate_cells("1")}
    misprint = cells["Phi-3-mini, CoT", "CaTeRS, s_neg"]
    assert (misprint.printed, misprint.value) == ("78,7", None)
    assert "comma" in misprint.note


@pytest.mark.parametrize(
    ("printed", "value"),
    [("67.8", 67.8), ("-0.54", -0.54), (".438", 0.438), ("89%", 0.89), ("14.8K", 14800.0), ("-", None), ("", None)],
)
def test_a_printed_figure_is_read_exactly(printed: str, value: float | None) -> None:
    assert parse_figure(printed) == value


def test_a_quote_that_is_in_no_text_names_its_repository_and_commit() -> None:
    cells = [cell for paper in map(load_paper, list_paper_ids()) for cell in paper.iterate_cells()]
    places = {cell.place for cell in cells if cell.origin not in ORIGINS_IN_TEXTS}
    assert {cell.origin for cell in cells} == set(get_args(Origin)) - {"user"}
    assert [place for place in places if not re.search(r"github\.com/.+, commit [0-9a-f]{8}$", place)] == []


def test_cut_offs_of_tiers_are_those_of_ordinary_reports() -> None:
    cells = [cell for cell in load_paper("evalmoraal").iterate_cells("tiers") if cell.value is not None]
    published = {survey: tuple(cell.value for cell in cells if cell.column.startswith(survey)) for survey in CUT_OFFS}
    assert published == CUT_OFFS


def test_charts_name_columns_and_forms_of_their_table() -> None:
    for table in (table for paper in map(load_paper, list_paper_ids()) for table in paper.tables):
        for chart in table.charts:
            assert len({(point.x, point.form, point.series) for point in chart.points}) == len(chart.points)
            for point in chart.points:
                assert {name for name in (point.x, point.y) if isinstance(name, str)} <= set(table.columns)
                assert point.form in (table.forms or {""})


@pytest.mark.skipif(PAPERS is None, reason="needs the papers' texts in ../shared/papers, which may not be passed on")
@pytest.mark.parametrize("paper_id", list_paper_ids())
def test_every_quote_stands_in_a_text(paper_id: str) -> None:
    assert PAPERS is not None
    texts = [path.read_text("utf-8") for path in PAPERS.glob("*.txt")]
    quotes = {cell.quote for cell in load_paper(paper_id).iterate_cells() if cell.origin in ORIGINS_IN_TEXTS}
    assert [quote for quote in quotes if not any(quote in text for text in texts)] == []


def _table(quote: str, *, read: str = "", label: str | None = None) -> Paper:
    row = PublishedRow(row="m", quote=quote, read=read, label=label)
    table = PublishedTable(id="1", title="t", place="p", columns=("a", "b"), rows=(row,))
    return Paper(id="x", title="t", source="s", origin="paper", tables=(table,))


@pytest.mark.parametrize(
    ("paper", "message"),
    [
        (_table("m 1 2 3"), "'m' has 3 figures for 2 columns"),
        (_table("n 1 2"), "does not begin with 'm'"),
        (_table("from 1 to 2", read="between {a} and {b}"), "does not have the form"),
        (_table("from 1 to 2", read="from {a} to {c}"), "does not have the form"),
    ],
)
def test_a_quote_of_another_form_is_an_error(paper: Paper, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(paper.iterate_cells())


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no paper 'sag'.*consistency, evalmoraal"):
        load_paper("sag")
    with pytest.raises(UsageError, match=r"no table '9'.*1, 2, people, figure-3, 3, figure-4, 4"):
        load_paper("sage").select_tables("9")


def test_the_page_of_the_documentation_lists_these_tables() -> None:
    page = Path(__file__).parents[2] / "docs" / "replications.md"
    document = build_paper_list_document(list_published_tables())
    assert page.read_text("utf-8") == render_document(document, "markdown"), (
        "Run: auditor replicate list -o docs/replications.md"
    )


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
