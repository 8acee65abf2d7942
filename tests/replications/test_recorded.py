"""Figures from released scores, against numpy on the same files."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from auditor.errors import ImportFileError, UsageError
from auditor.replications.definitions import MeasuredAudit, derive_mark
from auditor.replications.experiment import FigureSource
from auditor.replications.presets import load_paper
from auditor.replications.recorded import recompute_tables
from auditor.reports.data.report_schema import Report
from auditor.run import open_audit
from tests.support.cli_runner import auditor, succeed
from tests.support.known import known
from tests.support.released_scores import COUNTRIES, SLOPES, TOPICS, write_released


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A folder with made-up files in the layout of the release."""
    return write_released(tmp_path / "release", list(SLOPES))


def correlate(path: Path, people: str, model: str) -> float:
    """Pearson's r of two columns of a file, by a program that imports numpy and nothing of this one."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    program = Path(__file__).parents[1] / "support" / "released_correlations.py"
    command = [sys.executable, "-I", str(program), str(path), people, model]
    return float(subprocess.check_output(command, text=True, env=environment))


def test_figures_are_those_of_numpy(released: Path, storage: str) -> None:
    recorded = recompute_tables(load_paper("evalmoraal"), "log-probability", released, storage)
    assert recorded.audits == ["rep-evalmoraal-wvs-log-probability-recorded"]
    assert {path.name for path in recorded.files} == {f"results_{model}_WVS.csv" for model in SLOPES}
    by_key = {(cell.published.row, cell.published.column): cell for cell in recorded.cells}
    for model in SLOPES:
        expected = correlate(
            released / "data" / "results_per_model" / f"results_{model}_WVS.csv", "wvs_score", "normalized"
        )
        cell = by_key[model, "WVS"]
        assert known(cell.recomputed).value == pytest.approx(expected, abs=1e-9)
        assert (cell.mark, cell.departures) == ("other_definition", ["released-cells"]), "30 cells of 1,028"
        assert cell.audit == recorded.audits[0]
        assert known(cell.recomputed).n == len(COUNTRIES) * len(TOPICS)
        assert known(cell.recomputed).resampled == ("zone", "topic")
        assert cell.difference == pytest.approx(expected - known(cell.published.value), abs=1e-9)
    [departure] = recorded.departures
    assert departure.description.endswith(": 30 (published: 1\u202f028)")
    assert by_key["gpt2", "PEW"].not_run == "not_in_folder"
    assert by_key["bigscience_bloomz-560m", "WVS"].not_run == "not_published"


def test_a_file_with_all_published_cells_has_the_same_definition_and_one_that_was_cut_has_not() -> None:
    paper = load_paper("evalmoraal")
    rows = [SimpleNamespace(model=model, n=n) for model, n in (("whole", 1028), ("cut", 4))]
    audit = MeasuredAudit("WVS", None, Report.model_construct(**cast(Any, {"alignment": rows})), is_released=True)
    for table in (table for table in paper.tables if table.released):
        for model, mark in (("whole", "same_definition"), ("cut", "other_definition")):
            derived, departures = derive_mark(known(paper.experiment), table.parts, FigureSource(), audit, model)
            assert (derived, [departure.id for departure in departures]) == (
                mark,
                [] if model == "whole" else ["released-cells"],
            )


def test_every_released_table_and_column_of_scores_has_a_published_number_of_cells() -> None:
    paper = load_paper("evalmoraal")
    [cells] = [setting for setting in known(paper.experiment).settings if setting.id == "released-cells"]
    assert cells.value == {"WVS": 1028, "PEW": 312}
    released = [(table, entry) for table in paper.tables for entry in table.released]
    assert {entry.column for _, entry in released} == set(cells.value)
    assert all(table.parts & cells.parts for table, _ in released)


def test_the_scores_become_an_ordinary_audit(released: Path, storage: str) -> None:
    recompute_tables(load_paper("evalmoraal"), "log-probability", released, storage)
    recompute_tables(load_paper("evalmoraal"), "log-probability", released, storage)
    report = open_audit("rep-evalmoraal-wvs-log-probability-recorded", storage=storage).report()
    assert {row.model for row in report.alignment} == set(SLOPES)


def test_scores_on_both_surveys_are_of_the_same_cells_in_all_files(tmp_path: Path, storage: str) -> None:
    """Topics have other names in the file of token pairs; nothing is published about PEW."""
    folder = tmp_path / "release"
    names = {"pew_gpt3.csv": ("gambling", "homosexuality"), "pew_gpt3_token_pairs.csv": ("gamble", "be homosexual")}
    folder.mkdir()
    for name, topics in names.items():
        column = "gpt3_score_mean" if name == "pew_gpt3.csv" else "log prob difference"
        lines = [f"{country},{topic},{i / 9},{-i * i / 81}" for i, country in enumerate(COUNTRIES) for topic in topics]
        (folder / name).write_text("\n".join([f"country,topic,pew_score,{column}", *lines]), encoding="utf-8")
    recorded = recompute_tables(load_paper("evalmoraal"), "ramezani-xu", folder, storage)
    of_pew = [cell for cell in recorded.cells if cell.published.column == "PEW"]
    assert [(cell.published.row, cell.recomputed and cell.recomputed.n) for cell in of_pew] == [
        ("GPT-3, answers", 12), ("GPT-3, token pairs", 12),
    ]  # fmt: skip
    report = open_audit(recorded.audits[0], storage=storage).report()
    assert report.audit.survey.asked == 12


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        (
            "results__WVS.csv",
            "Kenya,divorce,0.5,0.5",
            r"name of the file does not say the model.*results_\{model\}_WVS",
        ),
        ("results_gpt2_WVS.csv", "", "there are no scores of countries below the header"),
    ],
)
def test_a_file_without_a_model_or_without_scores_is_refused(
    tmp_path: Path, storage: str, name: str, row: str, message: str
) -> None:
    (tmp_path / name).write_text(f"country,topic,wvs_score,normalized\n{row}", encoding="utf-8")
    with pytest.raises(ImportFileError, match=message):
        recompute_tables(load_paper("evalmoraal"), None, tmp_path, storage)


def test_a_departure_of_several_tables_is_listed_once(released: Path, storage: str) -> None:
    lines = [f"{country},gambling,{i / 9},{-i * i / 81}" for i, country in enumerate(COUNTRIES)]
    (released / "pew_gpt3.csv").write_text("\n".join(["country,topic,pew_score,gpt3_score_mean", *lines]), "utf-8")
    recorded = recompute_tables(load_paper("evalmoraal"), None, released, storage)
    assert len({cell.published.table for cell in recorded.cells if cell.recomputed}) == 2
    [departure] = [departure for departure in recorded.departures if departure.id == "released-cells"]
    assert set(departure.audits) == {"WVS", "PEW"}


def test_scores_without_bounds_are_rescaled_and_no_country_is_skipped(tmp_path: Path, storage: str) -> None:
    rng = random.Random(2)
    lines = ["country,topic,wvs_score,moral log prob,non moral log probs,log prob difference"]
    lines += [
        f"{country},{topic},{rng.uniform(-1, 1)},-7,-5,{rng.uniform(-9, 4)}"
        for country in (*COUNTRIES, "universal")
        for topic in TOPICS
    ]
    path = tmp_path / "wvs_w7_gpt3_token_pairs.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    cells = recompute_tables(load_paper("evalmoraal"), "ramezani-xu", tmp_path, storage).cells
    recomputed = known(next(cell.recomputed for cell in cells if cell.published.row == "GPT-3, token pairs"))
    assert recomputed.value == pytest.approx(correlate(path, "wvs_score", "log prob difference"), abs=1e-9)
    assert recomputed.n == len(COUNTRIES) * len(TOPICS)


def test_a_model_without_a_value_says_why_and_one_without_a_published_row_has_its_own(
    released: Path, storage: str
) -> None:
    write_released(released, ["my-model"])
    path = released / "data" / "results_per_model" / "results_gpt2_WVS.csv"
    path.write_text("\n".join(path.read_text("utf-8").splitlines()[:3]), encoding="utf-8")
    cells = recompute_tables(load_paper("evalmoraal"), "log-probability", released, storage).cells
    [few] = [cell for cell in cells if (cell.published.row, cell.published.column) == ("gpt2", "WVS")]
    assert few.not_run == "no_value"
    assert few.detail.startswith("WVS, gpt2: ")
    assert len(few.detail) > len("WVS, gpt2: ")
    [own_cell] = [cell for cell in cells if cell.is_own_row]
    assert (own_cell.published.row, own_cell.published.column, own_cell.difference) == ("my-model", "WVS", None)
    assert own_cell.recomputed is not None


def test_files_that_disagree_about_people_are_refused(released: Path, storage: str) -> None:
    path = released / "data" / "results_per_model" / "results_gpt2_WVS.csv"
    lines = path.read_text("utf-8").splitlines()
    lines[3] = lines[3].replace(lines[3].split(",")[2], "0.123", 1)
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ImportFileError, match=r"people's score of Andorra, avoiding a fare is .* in another file"):
        recompute_tables(load_paper("evalmoraal"), None, released, storage)


def test_a_score_outside_of_its_range_is_refused(released: Path, storage: str) -> None:
    path = released / "data" / "results_per_model" / "results_gpt2_WVS.csv"
    path.write_text("country,topic,wvs_score,normalized\nKenya,divorce,0.5,1.5\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match=r"the score 1\.5 is not between -1 and 1"):
        recompute_tables(load_paper("evalmoraal"), None, released, storage)


@pytest.mark.parametrize(
    ("paper", "table", "message"),
    [
        (
            "sage",
            None,
            r"no files with scores behind the tables of 'sage' can be read\..*auditor import answers FILE --model",
        ),
        ("evalmoraal", "peer", "no files with scores behind table peer of 'evalmoraal' can be read"),
        ("evalmoraal", None, r"does not contain the released scores of 'evalmoraal'.*results_\{model\}_WVS\.csv"),
    ],
)
def test_tables_without_released_scores_are_refused(
    tmp_path: Path, storage: str, paper: str, table: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        recompute_tables(load_paper(paper), table, tmp_path, storage)


def test_a_missing_folder_is_named(tmp_path: Path, storage: str) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        recompute_tables(load_paper("evalmoraal"), None, tmp_path / "absent", storage)


def test_the_command_prints_published_and_recomputed_figures(
    released: Path, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_STORAGE", storage)
    published = json.loads(auditor("replicate", "sage", "--table", "2", "--published", "--json").stdout)
    assert published[0] == {
        "table": "2", "title": "Correlation (Pearson) of each measure with human judgements, 500 questions",
        "row": "BLEU", "column": "answers", "form": "BLEU", "value": 0.391, "printed": "0.391",
        "quote": "BLEU 0.391 0.412", "place": "Table 2", "origin": "paper", "note": "",
        "table_note": published[0]["table_note"], "is_definition": False, "scale": 1.0,
    }  # fmt: skip
    assert published[0]["table_note"].endswith("Both are shown.")
    page = tmp_path / "page.md"
    run = succeed("replicate", "evalmoraal", "--table", "log-probability", "--recorded", released, "-o", page)
    assert "3 of 17 published figures computed again" in page.read_text(encoding="utf-8")
    assert auditor("replicate", "sage").returncode == 2
    listed = auditor("replicate", "list")
    assert "log-probability" in listed.stdout
    run = auditor("replicate", "evalmoraal", "--table", "log-probability", "--recorded", released, "--json")
    data = json.loads(run.stdout)
    assert {name for cell in data["cells"] for name in cell["departures"]} == {row["id"] for row in data["departures"]}
