"""What a file is, is recognised by its content."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from auditor.file_kinds import (
    CONFIGURATION,
    DATABASE,
    DOCUMENT,
    SETTINGS,
    SIDE_FILE_KIND,
    SURVEY,
    FileKind,
    identify_content,
    identify_file,
)


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.toml", 'name = "x"\n[[models]]\nname = "m"\n', CONFIGURATION),
        ("a.yaml", "name: x\nmodels:\n  - name: m\n", CONFIGURATION),
        ("a", 'name = "x"\n[[models]]\nname = "m"\n', CONFIGURATION),
        ("a.txt", "name: x\nmodels: [{name: m}]\n", CONFIGURATION),
        ("a.txt", "x\n=\n\nAudit against a survey.\n\nmodels: 5\ncountries: 12\n", DOCUMENT),
        ("a.survey.toml", 'title = "x"\n', SETTINGS),
        ("a.csv", "country,topic,score\nJapan,divorce,0.1\n", SURVEY),
        ("a.csv", "topic;country;score;n\n", SURVEY),
        ("a.md", "Country,Topic,N,Score\nJapan,divorce,9,0.1\n", SURVEY),
        ("a.txt", "country,topic,score\nJapan,divorce,0.1\n", SURVEY),
        ("a.jsonl", '{"country": "Japan", "topic": "divorce", "score": 0.1}\n', SURVEY),
        ("a.csv", "model,country,topic,method,score\n", FileKind("another table", ("model", "country"))),
        ("a.html", "<!DOCTYPE html>\n<html>", DOCUMENT),
        ("a.xml", '<?xml version="1.0"?>\n<testsuites>', DOCUMENT),
        ("a.json", '{\n "audit": {}}', FileKind("a JSON document", ("audit",))),
        ("a.md", "# Report\n", DOCUMENT),
        ("out", '{\n "audit": {}}', DOCUMENT),
        ("a.md", "", None),
        ("a.png", "\x89PNG", FileKind("a file in a binary format", ("89504e47",))),
        ("a.bin", "a\0b", FileKind("a file in a binary format", ("610062",))),
    ],
)
def test_content_is_recognised(tmp_path: Path, name: str, text: str, kind: FileKind | None) -> None:
    content = text.encode("latin-1")
    assert identify_content(content, name) == kind
    (tmp_path / name).write_bytes(content)
    assert identify_file(tmp_path / name) == kind


def test_a_database_and_its_files_are_recognised_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE a (b)")
        connection.commit()
        log = path.with_name("report.html-wal").read_bytes()
        assert identify_content(log, "notes.txt") == SIDE_FILE_KIND
    assert identify_file(path) == DATABASE
    for name in (
        "report.html-wal",
        "report.html-shm",
        "report.html-journal",
        "report.html.a.lock",
        "report.html.a.holder",
        "report.html.b-1.5.lock",
    ):
        assert identify_file(tmp_path / name) == SIDE_FILE_KIND
    assert identify_file(tmp_path / "other-wal") is None


def test_a_parquet_file_is_recognised_by_its_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"country": ["a"], "topic": ["b"], "score": [0.1]}), tmp_path / "survey.parquet")
    pq.write_table(pa.table({"prompt": ["a"], "chosen": ["b"]}), tmp_path / "rows.parquet")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and no more")
    assert identify_file(tmp_path / "survey.parquet") == SURVEY
    assert identify_file(tmp_path / "rows.parquet") == FileKind("another table", ("prompt", "chosen"))
    damaged = identify_file(tmp_path / "damaged.parquet")
    assert damaged is not None
    assert damaged.is_unreplaceable
