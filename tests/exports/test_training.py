"""Rows for training from a survey: people's scores, held-out countries, and the formats of TRL."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Cell, Message, Survey, SurveyCell
from auditor.errors import UsageError
from auditor.exports.training import (
    TrainingText,
    build_survey_card,
    build_survey_rows,
    choose_held_out,
    to_records,
    write_training_files,
)
from auditor.storage.database import open_database
from tests.support.cli_runner import auditor
from tests.support.synthetic_audit import populate

SCORES = {("Japan", "divorce"): 0.5, ("Kenya", "divorce"): -0.6, ("Peru", "divorce"): -0.3, ("Japan", "bribes"): -0.9,
          ("Kenya", "bribes"): -0.9}  # fmt: skip
SURVEY = Survey(
    "own", "Own", "s", "How acceptable is {topic} in {country}?", ("never acceptable", "always acceptable"),
    tuple(SurveyCell(Cell(*cell), score) for cell, score in SCORES.items()),
)  # fmt: skip


def test_rows_have_the_scores_of_people_and_held_out_countries_are_in_no_row_or_mean_of_the_training() -> None:
    rows = build_survey_rows(SURVEY, ["Japan"])
    assert {row.source["country"] for row in rows.training} == {"Kenya", "Peru"}
    assert {row.source["country"] for row in rows.held_out} == {"Japan"}
    first = rows.training[0]
    assert (first.chosen, first.rejected) == ("-0.60", "-0.45")  # the mean of Kenya and Peru, without Japan
    assert "How acceptable is divorce in Kenya?" in first.messages[0].content
    assert "from -1.00 (never acceptable) to +1.00 (always acceptable)" in first.messages[0].content
    by_cell = {(row.source["country"], row.source["topic"]): row for row in (*rows.training, *rows.held_out)}
    assert by_cell["Japan", "divorce"].rejected == "-0.45"
    assert by_cell["Kenya", "bribes"].rejected is None  # as everywhere


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("preference", {"prompt": "question", "chosen": "+0.50", "rejected": "-0.10"}),
        ("completion", {"prompt": "question", "completion": "+0.50"}),
        (
            "chat",
            {
                "prompt": [{"role": "user", "content": "question"}],
                "chosen": [{"role": "assistant", "content": "+0.50"}],
                "rejected": [{"role": "assistant", "content": "-0.10"}],
            },
        ),
        (
            "chat-completion",
            {
                "prompt": [{"role": "user", "content": "question"}],
                "completion": [{"role": "assistant", "content": "+0.50"}],
            },
        ),
    ],
)
def test_formats_are_those_of_trl(form: Any, expected: dict[str, Any]) -> None:
    row = TrainingText((Message("user", "question"),), "+0.50", "-0.10", {"country": "Japan"})
    bare = row._replace(rejected=None)
    records = to_records([row, bare], form)
    assert records[0] == {**expected, "country": "Japan"}
    assert len(records) == (2 if "completion" in form else 1)


def test_a_fifth_of_the_countries_is_held_out_by_the_seed_and_unknown_ones_are_refused() -> None:
    many = Survey("o", "O", "s", "{topic} {country}", ("a", "b"),
                  tuple(SurveyCell(Cell(f"country {i:02}", "t"), 0.1) for i in range(20)))  # fmt: skip
    drawn = choose_held_out(many, [], 3)
    assert len(drawn) == 4
    assert drawn == choose_held_out(many, [], 3) != choose_held_out(many, [], 4)
    assert choose_held_out(SURVEY, ["Peru", "Peru"], 0) == ["Peru"]
    with pytest.raises(UsageError, match="no country 'Jappan'"):
        choose_held_out(SURVEY, ["Jappan"], 0)
    with pytest.raises(UsageError, match="no country is left"):
        choose_held_out(SURVEY, ["Japan", "Kenya", "Peru"], 0)


def test_parquet_has_the_same_rows(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    records = to_records(build_survey_rows(SURVEY, ["Japan"]).training, "chat-completion")
    card = build_survey_card("Own", "chat-completion", ["Japan"], [4, 0])
    write_training_files({tmp_path / "rows.parquet": records}, card)
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == records


def test_the_command_writes_two_files_and_a_card(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/audit.db"
    with open_database(storage) as db:
        audit = populate(db, models=2, countries=8, topics=4, samples=1, judges=1)
    result = auditor(
        "export", "training", audit.name, "--from", "survey", "--form", "chat-completion", "-o", "rows.jsonl",
        "--storage", storage, cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    files = {name: (tmp_path / name).read_text("utf-8").splitlines() for name in ("rows.jsonl", "rows.held-out.jsonl")}
    countries = {name: {json.loads(line)["country"] for line in lines} for name, lines in files.items()}
    assert not countries["rows.jsonl"] & countries["rows.held-out.jsonl"]
    assert len(countries["rows.held-out.jsonl"]) == 2
    card = (tmp_path / "rows.jsonl.md").read_text("utf-8")
    assert all(name in card for name in countries["rows.held-out.jsonl"])
    refused = auditor("export", "training", audit.name, "--held-out", "x", "-o", "r.jsonl", "--storage", storage)
    assert refused.returncode == 2
    assert "no effect on comparisons" in refused.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [("rows.jsonl.md", "# My notes on rows\n"), ("rows.held-out.jsonl", '{"id": 1, "text": "mine"}\n')],
)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_no_file_is_written_if_one_of_them_is_the_users(tmp_path: Path, name: str, text: str, suffix: str) -> None:
    rows = build_survey_rows(SURVEY, ["Japan"])
    card = build_survey_card("Own", "chat", ["Japan"], [3, 2])
    names = (f"rows{suffix}", f"rows.held-out{suffix}")
    paths = [tmp_path / path_name for path_name in names]
    records = [to_records(part, "chat") for part in (rows.training, rows.held_out)]
    for _ in range(2):  # files of an earlier export are replaced
        write_training_files(dict(zip(paths, records, strict=True)), card)
    before = {path: path.read_bytes() for path in paths}
    user_file = tmp_path / name.replace(".jsonl", suffix)
    user_file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(f"{user_file}: is ")):
        write_training_files({paths[0]: records[1], paths[1]: records[0]}, card)
    assert user_file.read_text(encoding="utf-8") == text
    assert all(path.read_bytes() == content for path, content in before.items() if path != user_file)
