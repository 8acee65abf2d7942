"""Presets of the user: a paper that is in no built-in preset, and rows that are added to one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import AuditorError, ConfigError, ImportFileError, UsageError
from auditor.replications.figures import MODEL_FIGURES
from auditor.replications.full_form import list_differences
from auditor.replications.paper_files import add_published_rows, check_paper, find_paper
from auditor.replications.planning import ReplicationOptions, plan_audits
from auditor.replications.presets import has_figure, list_paper_ids, load_paper, parse_figure
from tests.support.cli_runner import auditor, succeed
from tests.support.known import known

PRESET = """
title = "Errors of two models"
source = "Example et al. (2026)"
[experiment.audits.MINE]
survey = { source = "preset:survey.csv" }
[[experiment.settings]]
id = "samples"
key = "probes.direct.samples"
value = 3
description = "samples of each question"
[[tables]]
id = "2"
title = "Errors"
place = "Table 2"
columns = ["MAE", "bias"]
[tables.figures]
MAE = [{ model_figure = "mae.direct" }]
bias = [{ model_figure = "bias.direct" }]
[[tables.rows]]
row = "gpt"
model = "gpt"
values = { MAE = "0.21", bias = "-0.05" }
quote = "GPT had a mean absolute error of 0.21 and a bias of -0.05."
"""
SURVEY = "country,topic,score\n" + "".join(
    f"{country},{topic},{(i * 7 + j * 3) % 19 / 10 - 0.9}\n"
    for i, country in enumerate(("Japan", "Kenya", "Spain", "Peru"))
    for j, topic in enumerate(("divorce", "suicide", "abortion", "gambling"))
)
MODELS = """
judges = []
[[models]]
name = "mine"
model = "simulated/western-everywhere"
"""


@pytest.fixture
def preset(tmp_path: Path) -> Path:
    (tmp_path / "survey.csv").write_text(SURVEY)
    path = tmp_path / "two-models.toml"
    path.write_text(PRESET)
    return path


def test_a_preset_of_the_user_is_a_paper(preset: Path) -> None:
    paper = find_paper(str(preset))
    assert [(cell.column, cell.value) for cell in paper.iterate_cells()] == [("MAE", 0.21), ("bias", -0.05)]
    check = check_paper(preset)
    assert (check.tables, check.published, check.problems) == (1, 2, [])


def test_files_in_the_folder_of_the_preset_have_their_paths(preset: Path, tmp_path: Path) -> None:
    models = tmp_path / "models.toml"
    models.write_text(MODELS)
    [config] = plan_audits(find_paper(str(preset)), ReplicationOptions(models_file=models)).values()
    assert known(config.survey).source == str(tmp_path / "survey.csv")
    assert config.name == "simulated-rep-two-models-mine"


def print_json(*words: str) -> Any:
    result = succeed(*words)
    return json.loads(result.stdout)


def test_its_experiment_gives_figures_for_the_published_cells(preset: Path, tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text(MODELS)
    storage = f"sqlite:///{tmp_path}/a.db"
    options = ("--models", str(tmp_path / "models.toml"), "--as", "mine=gpt", "--json", "--storage", storage)
    cells = {cell["published"]["column"]: cell for cell in print_json("replicate", str(preset), *options)["cells"]}
    report = print_json("report", "simulated-rep-two-models-mine", "-f", "json", "--storage", storage)
    assert cells["MAE"]["recomputed"]["value"] == pytest.approx(report["alignment"][0]["mae"])
    assert cells["MAE"]["difference"] == pytest.approx(report["alignment"][0]["mae"] - 0.21)
    assert cells["bias"]["recomputed"]["n"] == 16
    assert cells["MAE"]["mark"] == "other_definition"  # the audit has another number of samples
    assert "samples" in cells["MAE"]["departures"]


@pytest.mark.parametrize(
    ("quote", "value"),
    [
        ("r = .71 (p < .01)", "0.71"),  # as psychologists print it
        ("r = 0.71", ".71"),
        ("a bias of −0.05", "-0.05"),  # U+2212, as copied from a PDF
        ("a bias of −.05", "−0.05"),
        ("bias (–0.05)", "-0.05"),
        ("an Elo score of 1,234", "1234"),
        ("between 0.62–0.68", "0.68"),
        ("between 5%–7%", "7%"),
        ("between 5%-7%", "7%"),
        ("0.62 (SE 0.01)–0.68", "0.68"),
        ("Model-X 0.05", "0.05"),
    ],
)
def test_a_quote_has_a_value_in_another_spelling(quote: str, value: str) -> None:
    assert has_figure(quote, value)
    assert parse_figure(value) is not None


@pytest.mark.parametrize(
    ("quote", "value"),
    [
        ("a bias of −0.05", "0.05"),
        ("a bias of -.05", "0.05"),
        ("a bias of 0.05", "-0.05"),
        ("between 0.62–0.68", "-0.68"),
        ("between 5%–7%", "-7%"),
        ("between 5%-7%", "-7%"),
        ("r = .710", "0.71"),
        ("1,234", "234"),
        ("1,234", "1"),
        ("r = 10.71", "0.71"),
    ],
)
def test_a_quote_with_another_sign_or_other_digits_does_not_have_a_value(quote: str, value: str) -> None:
    assert not has_figure(quote, value)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("mae.direct", "mae.dirct", "there is no model_figure 'mae.dirct'. Did you mean 'mae.direct'?"),
        ("error of 0.21", "error of 0.215", "the quote of 'gpt' does not have the value 0.21"),
        ("error of 0.21", "error of 10.21", "the quote of 'gpt' does not have the value 0.21"),
        ('MAE = "0.21"', 'MAE = "0,21"', "'0,21' for 'MAE', which is no number"),
        ('MAE = "0.21"', 'MEA = "0.21"', "a value for 'MEA', which is no column"),
        ("bias = [{", "Bias = [{", "figures of 'Bias', which is no column. Did you mean 'bias'?"),
        ('"mae.direct" }', '"mae.direct", audit = "MIME" }', "there is no audit 'MIME'. Did you mean 'MINE'?"),
        ('"mae.direct" }', '"mae.direct", trial = "x" }', "there is no trial 'x'. To list all names"),
    ],
)
def test_a_problem_is_named_by_the_check_and_ends_other_commands(
    preset: Path, old: str, new: str, problem: str
) -> None:
    preset.write_text(PRESET.replace(old, new, 1))
    assert any(problem in text for text in check_paper(preset).problems)
    with pytest.raises(ConfigError, match="auditor replicate check"):
        find_paper(str(preset))
    result = auditor("replicate", "check", str(preset))
    assert result.returncode == 1
    assert problem.split("'")[1] in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("columns =", "colunms =", "colunms"),
        ('value = 3\ndescription = "samples of each question"', "value = 3", "description"),
        ("[[tables.rows]]", "[tables.rows]", "tables"),
        ("title =", "titel =", "titel"),
        ("[{ model_figure", "[[ model_figure", "not valid TOML"),
    ],
)
def test_a_file_of_another_form_is_one_error(preset: Path, old: str, new: str, message: str) -> None:
    preset.write_text(PRESET.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        check_paper(preset)


def test_a_preset_cannot_have_the_name_of_a_built_in_paper(tmp_path: Path) -> None:
    path = tmp_path / "sage.toml"
    path.write_text(PRESET)
    with pytest.raises(ConfigError, match="'sage' is built-in"):
        check_paper(path)
    with pytest.raises(UsageError, match="There is no paper 'sag'"):
        find_paper("sag")


def test_without_a_small_form_the_model_of_this_machine_is_not_asked(preset: Path) -> None:
    with pytest.raises(UsageError, match="has no small form"):
        plan_audits(find_paper(str(preset)), ReplicationOptions(is_small=True))


def write_rows(folder: Path, *lines: str, header: str = "table,row,column,value,quote,model") -> Path:
    path = folder / "rows.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def test_rows_are_added_to_a_built_in_paper(tmp_path: Path) -> None:
    paper = load_paper("evalmoraal")
    rows = write_rows(
        tmp_path, '1,my-model,"r, direct",.88,my-model .88 .79,my-model', '1,my-model,"r, log-probability",.79,,'
    )
    extended = add_published_rows(paper, rows)
    added = [cell for cell in extended.iterate_cells("1") if cell.row == "my-model"]
    assert [(cell.column, cell.value, cell.origin) for cell in added] == [
        ("r, direct", 0.88, "user"), ("r, log-probability", 0.79, "user")
    ]  # fmt: skip
    assert len(list(extended.iterate_cells())) == len(list(paper.iterate_cells())) + 2
    table = next(table for table in extended.tables if table.id == "1")
    assert [source.model_figure for source in table.find_figures(table.rows[-1], "r, direct")] == ["r.direct"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['9,m,"r, direct",.88,,'], "line 2: the paper has no table '9'"),
        (["1,m,r,.88,,"], r"line 2: table 1 has no column 'r'.*'r, direct', 'r, log-probability'"),
        (['1,m,"r, direct",,,'], "line 2: the row's name or the value is empty"),
        (['1,m,"r, direct",.88,m .87,'], "the quote of 'm' does not have the value .88"),
        (['1,m,"r, direct",.88,,', '1,m,"r, direct",.89,,'], "row 'm' of table 1 has a column twice"),
        (['1,GPT-4o,"r, direct",.88,,'], "table 1 has a row 'GPT-4o' already"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(AuditorError, match=message):
        add_published_rows(load_paper("evalmoraal"), write_rows(tmp_path, *lines))


def test_a_wrong_header_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="the column 'value' is missing"):
        add_published_rows(load_paper("sage"), write_rows(tmp_path, header="table,row,column"))
    with pytest.raises(ImportFileError, match="no column 'qoute'"):
        add_published_rows(load_paper("sage"), write_rows(tmp_path, header="table,row,column,value,qoute"))


def test_the_names_of_figures_are_listed() -> None:
    names = print_json("replicate", "figures", "--json")
    assert [name["name"] for name in names if name["key"] == "model_figure"] == list(MODEL_FIGURES)
    assert [name["name"] for name in names if not name["meaning"]] == []
    listed = auditor("replicate", "figures").stdout
    assert "mae.direct" in listed
    assert "Wasserstein distance" in listed


def test_the_preset_of_the_page_has_a_figure_that_no_built_in_preset_has() -> None:
    root = Path(__file__).parents[2]
    example = root / "examples" / "replications" / "worldvaluesbench.toml"
    check = check_paper(example)
    assert (check.tables, check.published, check.problems) == (1, 4, [])
    sources = {
        source.model_figure
        for paper_id in list_paper_ids()
        for table in load_paper(paper_id).tables
        for source in table.list_sources()
    }
    [figure] = {source.model_figure for table in find_paper(str(example)).tables for source in table.list_sources()}
    assert figure == "w1_near.sampled"
    assert figure not in sources
    assert figure in MODEL_FIGURES


def test_the_parts_that_the_page_shows_are_those_of_the_example() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "own-paper.md").read_text(encoding="utf-8")
    shown = tomllib.loads(page.partition("```toml\n")[2].partition("```")[0])
    example = tomllib.loads((root / "examples" / "replications" / "worldvaluesbench.toml").read_text(encoding="utf-8"))
    assert shown["experiment"]["config"] == example["experiment"]["config"]
    assert shown["experiment"]["files"]["WVS"].items() <= example["experiment"]["files"]["WVS"].items()
    assert shown["experiment"]["departures"][0] == example["experiment"]["departures"][0]
    [table], [full_table] = shown["tables"], example["tables"]
    assert all(table[key] == full_table[key] for key in ("id", "title", "place", "columns", "scale"))
    assert table["rows"][0]["values"] == full_table["rows"][-1]["values"]


def test_a_survey_that_the_user_names_makes_no_departure_of_settings_that_nobody_changed(tmp_path: Path) -> None:
    paper = find_paper(str(Path(__file__).parents[2] / "examples" / "replications" / "worldvaluesbench.toml"))
    assert paper.experiment is not None
    (tmp_path / "models.toml").write_text(MODELS)
    options = ReplicationOptions(
        models_file=tmp_path / "models.toml", files={"WVS": str(tmp_path / "survey.csv")}, limit=4
    )
    [config] = plan_audits(paper, options).values()
    assert [difference.key for difference in list_differences(paper.experiment, "WVS", config)] == ["limits.max_cells"]
