"""The command `replicate` while it runs: its models, what it ignores, how it is resumed, and its document."""

from __future__ import annotations

import shlex
from pathlib import Path
from unittest import mock

import pytest

from auditor.console.output import list_called_words
from auditor.errors import RunInterrupted
from tests.support.cli_runner import auditor, succeed
from tests.support.fixed_address import word_encoder

MODELS = "".join(
    f'[[models]]\nname = "{name}"\nmodel = "simulated/{name}"\n'
    for name in ("knows-every-culture", "western-everywhere", "inconsistent")
)


def write(folder: Path, text: str) -> Path:
    path = folder / "my models.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_command_that_resumes_is_the_one_that_was_called(tmp_path: Path) -> None:
    file, storage = write(tmp_path, MODELS), f"sqlite:///{tmp_path}/x.db"
    words = [
        "--models", str(file), "--table", "1", "--as", "inconsistent=GPT-4o", "-o", "page.html", "--limit", "9",
        "--json",
    ]  # fmt: skip
    stop = mock.patch("auditor.cli.run.run_audit", side_effect=RunInterrupted("stopped.", ""))
    with stop, word_encoder():
        result = auditor("replicate", "evalmoraal", *words, "--storage", storage, cwd=tmp_path)
    assert result.returncode == 130
    assert f"To resume: auditor replicate evalmoraal {shlex.join(words)} --storage {storage}" in result.stderr


@pytest.mark.parametrize("storage", [["--storage", "sqlite:///x.db"], ["--storage=sqlite:///x.db"], []])
def test_called_words_are_quoted_and_leave_out_the_storage(storage: list[str]) -> None:
    words = ["replicate", "sage", *storage, "--models", "my models.toml"]
    with mock.patch("sys.argv", ["auditor", *words]):
        assert list_called_words() == ["replicate", "sage", "--models", "'my models.toml'"]


def test_other_settings_of_the_models_file_are_named_and_have_no_effect(tmp_path: Path) -> None:
    settings = (
        'name = "mine"\nsurvey = { source = "nowhere.csv" }\n[limits]\nbudget_usd = 1\nmax_cells = 2\n'
        "[probes.direct]\nsamples = 3\n"
    )
    result = succeed(
        "replicate", "evalmoraal", "--models", write(tmp_path, settings + MODELS), "--dry-run", cwd=tmp_path
    )
    assert "Without effect: survey.source, limits.max_cells, probes.direct.samples." in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no model in it."),
        ('name = "x"\n', "Add [[models]] with a name and a model."),
        ('[[models]]\nname = "a"\n', "model"),
        ('[[models]]\nname = "a"\nmodel = "openai/a"\ntemprature = 1\n', "temperature"),
        ('[[models]]\nname = "a"\nmodel = "openai/a"\n[[judges]]\nname = "j"\n', "judges"),
    ],
)
def test_models_that_cannot_be_used_are_named(tmp_path: Path, text: str, message: str) -> None:
    result = auditor("replicate", "evalmoraal", "--models", write(tmp_path, text), cwd=tmp_path)
    assert result.returncode == 2
    assert "my models.toml" in result.stderr
    assert message in result.stderr


def test_a_single_model_without_a_judge_has_tables_that_need_none(tmp_path: Path) -> None:
    file = write(tmp_path, '[[models]]\nname = "inconsistent"\nmodel = "simulated/inconsistent"\n')
    refused = auditor("replicate", "evalmoraal", "--models", file, "--dry-run", cwd=tmp_path)
    assert refused.returncode == 2
    assert "model 'inconsistent' has no judge" in refused.stderr
    succeed("replicate", "evalmoraal", "--models", file, "--table", "1", "--dry-run", cwd=tmp_path)


def test_a_document_of_simulated_models_says_so_and_belongs_to_standard_output(tmp_path: Path) -> None:
    file = write(tmp_path, MODELS)
    with word_encoder():
        result = auditor("replicate", "evalmoraal", "--models", file, "--table", "1", "--limit", "6", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for text in (
        "Replication – worked example with simulated models", "Worked example: simulated models",
        "Table 1. Correlation with the survey", "Departures", "yours: WVS, lowest of our models",
    ):  # fmt: skip
        assert text in result.stdout
        assert text not in result.stderr


def test_zeros_that_were_filled_in_are_named(tmp_path: Path) -> None:
    rows = [
        f"{country},{topic},,"
        if (country, topic) == ("Japan", "divorce")
        else f"{country},{topic},{0.1 * len(country + topic) - 1:.2f},0.1"
        for country in ("Ghana", "Japan", "Peru")
        for topic in ("divorce", "abortion")
    ]
    (tmp_path / "pew.csv").write_text("\n".join(["country,topic,score,nonresponse", *rows]), encoding="utf-8")
    page = tmp_path / "page.md"
    data = ("--data", "PEW=pew.csv")  # of WVS, the sample is used: it has no shares of nonresponse
    words = ("--table", "1", "--as-published", *data, "--limit", "6", "-o", page)
    with word_encoder():
        result = auditor("replicate", "evalmoraal", "--models", write(tmp_path, MODELS), *words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    shown = page.read_text("utf-8")
    assert "--as-published: people’s score of a cell counts respondents without an answer as 0" in shown
    assert "6 cells" in shown
    assert "PEW: file pew.csv, SHA-256 " in shown
    assert "PEW: people’s answers are not compared with those of the paper, only the names of" in shown
    [nonresponse] = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| nonresponse")]
    assert nonresponse.startswith("| nonresponse | WVS |"), "a survey without shares stops neither the other nor itself"
    assert "zero, except for 6 scores without a known share of nonresponse (published: zero)" in nonresponse
    assert "Terms: of Pew Research Center, which do not allow to pass the data on." in shown
