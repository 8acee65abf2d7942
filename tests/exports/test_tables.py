"""Export of tables: all rows with types and hashes; exports are replaced completely, other files never."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel
from sqlalchemy import func, select

from auditor.config import installed_probes
from auditor.config.installed_probes import InstalledProbe, ProbeSource
from auditor.domain import Rating, Trace
from auditor.errors import StorageError, UsageError
from auditor.exports.tables import TableExport, export_paper, export_tables
from auditor.imports.task_answers import import_task_answers
from auditor.probe_interface import Probe
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Column, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.table_files import render_csv
from auditor.reports.render.tables import name_table_file
from auditor.reports.sections.probe_sections import build_exported_tables
from auditor.reports.sections.report import build_report_document
from auditor.storage import audit_archive
from auditor.storage.audits import Audit
from auditor.storage.call_records import StoredAnswer
from auditor.storage.database import Database, open_database
from auditor.storage.row_classes import table_of
from auditor.storage.schema import SCHEMA_VERSION
from tests.support.postgres_server import Postgres
from tests.support.synthetic_audit import populate


@pytest.fixture(scope="module")
def two_audits(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('export')}/audit.db") as db:
        populate(db, models=2, countries=5, topics=5, name="other", seed=4)
        yield db, populate(db, models=2, countries=6, topics=5)


class Exported(NamedTuple):
    """The folder of an export, and its figures."""

    folder: Path
    export: TableExport

    def read(self, table: str) -> list[dict[str, Any]]:
        if (path := self.folder / f"{table}.jsonl").exists():
            return [json.loads(line) for line in path.read_text().splitlines()]
        rows: list[dict[str, Any]] = pq.read_table(self.folder / f"{table}.parquet").to_pylist()
        return rows

    @property
    def manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text())
        return manifest


@pytest.fixture(scope="module")
def parquet(two_audits: tuple[Database, Audit], tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("parquet") / "out"
    return Exported(folder, export_tables(two_audits[0], two_audits[1].name, folder))


@pytest.fixture(scope="module")
def jsonl(two_audits: tuple[Database, Audit], tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("jsonl") / "out"
    return Exported(folder, export_tables(two_audits[0], two_audits[1].name, folder, "jsonl"))


def test_a_table_of_a_probe_replaces_none_of_the_report(
    two_audits: tuple[Database, Audit], parquet: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = [Table("alignment", "Theirs", "", [Column("model", "name")], [[name]]) for name in ("a", "b")]
    monkeypatch.setattr("auditor.exports.tables.build_exported_tables", lambda report: extra)
    export_tables(two_audits[0], two_audits[1].name, tmp_path / "out")
    files = [f"report_alignment{end}.csv" for end in ("", "_2", "_3")]
    texts = [(tmp_path / "out" / file).read_text() for file in files]
    assert texts == [(parquet.folder / files[0]).read_text(), "model\na\n", "model\nb\n"]
    listed = [table["file"] for table in Exported(tmp_path / "out", parquet.export).manifest["report_tables"]]
    assert set(files) <= set(listed)


def test_the_papers_tables_are_all_of_one_audit(report: Report, tmp_path: Path) -> None:
    """A table that the later audit does not have would be published with its others."""
    later = report.model_copy(update={"topics": []})
    folder, foreign = tmp_path / "paper", tmp_path / "foreign"
    for path in (folder, foreign):
        path.mkdir()
        (path / "notes.csv").touch()
    (foreign / "topics.csv").write_text("of another program")
    export_paper(report, folder)
    assert (folder / "topics.csv").exists()
    written = export_paper(later, folder)
    assert {*folder.iterdir()} == {*written, folder / "notes.csv"}
    export_paper(later, foreign)
    assert (foreign / "topics.csv").read_text() == "of another program"


def test_files_of_another_program_are_not_removed(report: Report, tmp_path: Path) -> None:
    """Only a file with the columns of such a table is one, and the command says that it removed it."""
    later = report.model_copy(update={"topics": [], "countries": []})
    removed: list[Path] = []
    export_paper(report, tmp_path)
    (tmp_path / "topics.csv").write_text("topic,weight\ndivorce,2\n")
    export_paper(later, tmp_path, removed.append)
    assert (tmp_path / "topics.csv").read_text() == "topic,weight\ndivorce,2\n"
    assert removed == [tmp_path / "countries.csv"]
    assert not removed[0].exists()


def test_the_papers_latex_replaces_none_of_the_user(report: Report, tmp_path: Path) -> None:
    (tmp_path / "tables.tex").write_text("\\begin{tabular}{l}mine\\end{tabular}\n")
    with pytest.raises(UsageError, match=r"tables\.tex: is not recognized as a file of auditor"):
        export_paper(report, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tables.tex"]


def test_tables_of_a_probe_that_csv_cannot_show_are_left_out_and_all_others_written(
    two_audits: tuple[Database, Audit], parquet: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Figures(BaseModel):
        """What a probe found."""

    class Careless(Probe[Any, Any]):
        def export_tables(self, figures: Any) -> list[Table]:
            names = [Column("model", "name"), Column("year"), Column("r", "estimate")]
            return [
                Table("years", "Years", "", names, [["gpt", 2013, 0.5]]),
                Table("short", "Short", "", names, [["gpt", 2013]]),
                Table("interval", "Interval", "", [Column("ci", "interval")], [["none"]]),
            ]

    class Failing(Probe[Any, Any]):
        def export_tables(self, figures: Any) -> list[Table]:
            raise KeyError("x")

    built = build_report(two_audits[0], two_audits[1].name)
    figures = Figures()
    for name, probe in (("p", Careless), ("q", Failing)):
        installed = InstalledProbe(probe(), ProbeSource(name, "package", "1", probe))
        monkeypatch.setitem(installed_probes._LOADED, name, installed)
    tables = list(build_exported_tables(built.model_copy(update={"probes": {"p": figures, "q": figures}})))
    monkeypatch.setattr("auditor.exports.tables.build_exported_tables", lambda report: tables)
    export = export_tables(two_audits[0], two_audits[1].name, tmp_path / "out")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {path.name for path in parquet.folder.iterdir()} | {"report_years.csv"}
    assert (tmp_path / "out" / "report_years.csv").read_text() == "model,year,r,r_low,r_high,r_n\ngpt,2013,0.5,,,\n"
    short, interval, failing = export.left_out
    assert "of the probe 'p' returned a table that cannot be shown: row 1 of the table 'short' has 2 cells" in short
    assert "row 1 of the table 'interval' has 'none' of the type str" in interval
    assert "the hook 'export_tables' of the probe 'q' failed: KeyError" in failing


def count_rows(db: Database, row: Any, audit: Audit) -> int:
    """Number of an audit's rows in a table."""
    table = table_of(row)
    with db.read() as connection:
        query = select(func.count()).select_from(table).where(table.c.audit_id == audit.id)
        return int(connection.execute(query).scalar_one())


def test_parquet_is_typed_and_names_its_audit(two_audits: tuple[Database, Audit], parquet: Exported) -> None:
    db, audit = two_audits
    traces = pq.read_table(parquet.folder / "trace.parquet")
    assert traces.num_rows == parquet.export.row_counts["trace"] == count_rows(db, Trace, audit)
    types = {f.name: str(f.type) for f in traces.schema}
    assert (types["score"], types["sample"], types["text"]) == ("double", "int64", "string")
    metadata = traces.schema.metadata
    assert json.loads(metadata[b"auditor.schema_version"]) == SCHEMA_VERSION
    assert json.loads(metadata[b"auditor.audit_id"]) == audit.id
    assert set(traces.column("audit_id").to_pylist()) == {audit.id}
    failed = [row for row in traces.to_pylist() if row["outcome"] != "ok"]
    assert failed
    assert all(row["score"] is None for row in failed)


def test_the_tables_of_the_report_are_exported_with_all_their_rows(
    two_audits: tuple[Database, Audit], parquet: Exported
) -> None:
    db, audit = two_audits
    document = build_report_document(build_report(db, audit.name))
    tables = [block for block in iterate_blocks(document) if isinstance(block, Table)]
    assert any(table.max_rows is not None and table.max_rows < len(table.rows) for table in tables)
    for table in tables:
        name = name_table_file(table)
        assert name in parquet.export.file_hashes
        assert (parquet.folder / name).read_text(encoding="utf-8") == render_csv(table)


def test_a_server_gives_the_same_tables(parquet: Exported, postgres: Postgres, tmp_path: Path) -> None:
    with open_database(postgres.schema()) as server_db:
        populate(server_db, models=2, countries=5, topics=5, name="other", seed=4)
        audit = populate(server_db, models=2, countries=6, topics=5)
        server_export = export_tables(server_db, audit.name, tmp_path / "server")
    export = parquet.export
    assert server_export.row_counts == export.row_counts
    names = [name for name in export.file_hashes if name.endswith(".csv") and name != "report_environment.csv"]
    assert {name: server_export.file_hashes[name] for name in names} == {n: export.file_hashes[n] for n in names}


def test_only_answers_of_the_audit_are_exported(two_audits: tuple[Database, Audit], jsonl: Exported) -> None:
    asked_keys = {row["key"] for name in ("trace", "verdict") for row in jsonl.read(name)}
    with two_audits[0].read() as connection:
        stored_keys = set(connection.execute(select(table_of(StoredAnswer).c.key)).scalars())
    exported_keys = {row["key"] for row in jsonl.read("answer")}
    assert exported_keys == asked_keys & stored_keys
    assert exported_keys < stored_keys
    assert {row["key"] for row in jsonl.read("attempt")} <= asked_keys


def test_the_table_of_cells_joins_scores_people_conflicts_and_verdicts(parquet: Exported) -> None:
    tables = {name: parquet.read(name) for name in ("cells", "score", "survey_cell", "conflict", "verdict")}
    people = {(row["country"], row["topic"]): row["score"] for row in tables["survey_cell"]}
    assert len(tables["cells"]) == len(tables["score"]) > 0
    for row, score in zip(tables["cells"], tables["score"], strict=True):
        key = (score["model"], score["country"], score["topic"], score["method"])
        assert (row["model"], row["country"], row["topic"], row["method"]) == key
        assert (row["score"], row["n"], row["usable"]) == (score["score"], score["n_planned"], score["n_ok"])
        assert row["people_score"] == people[row["country"], row["topic"]]
        verdicts = [
            verdict["ruling"]
            for verdict in tables["verdict"]
            if (verdict["model"], verdict["country"], verdict["topic"]) == key[:3] and verdict["outcome"] == "ok"
        ]
        assert (row["verdicts"], row["valid"]) == (len(verdicts), verdicts.count("VALID"))
        is_in_conflict = any(
            (conflict["country"], conflict["topic"]) == key[1:3] and key[0] in (conflict["left"], conflict["right"])
            for conflict in tables["conflict"]
        )
        assert (row["conflict"] is not None) == is_in_conflict
    assert {row["conflict"] for row in tables["cells"]} > {None, "open"}


def test_the_table_of_cells_and_the_data_card_of_a_task_are_about_its_items(tmp_path: Path, storage: str) -> None:
    (tmp_path / "items.csv").write_text("id,question,options,truth\nmoon,How many?,none|one,one\nsun,A star?,yes|no,\n")
    (tmp_path / "answers.csv").write_text("model,id,sample,answer\nm,moon,0,A\nm,moon,1,one\nm,moon,2,B\nm,sun,0,yes\n")
    import_task_answers(
        tmp_path / "answers.csv", audit="quiz", items=tmp_path / "items.csv", answer_format={"answer": "choice"},
        storage=storage,
    )  # fmt: skip
    with open_database(storage) as db:
        export_tables(db, "quiz", tmp_path / "out")
    cells = pq.read_table(tmp_path / "out" / "cells.parquet").to_pylist()
    assert [(row["topic"], row["answer"], row["truth"], row["usable"], row["correct"]) for row in cells] == [
        ("moon", "one", "one", 3, 2), ("sun", "yes", None, 1, None)
    ]  # fmt: skip
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "the right answer is known for 1 of 2 items" in card
    assert not [words for words in ("countries", "score of people", "survey’s") if words in card]


def test_jsonl_and_parquet_have_the_same_rows(parquet: Exported, jsonl: Exported) -> None:
    for table in audit_archive.list_tables():
        assert parquet.read(table.name) == jsonl.read(table.name)


def test_every_table_of_the_database_is_exported_or_named(
    two_audits: tuple[Database, Audit], parquet: Exported
) -> None:
    manifest = parquet.manifest
    with two_audits[0].read() as connection:
        from sqlalchemy import inspect

        table_names = set(inspect(connection).get_table_names())
    names = {t["name"] for t in manifest["tables"]} | {t["table"] for t in manifest["left_out"]}
    assert names == table_names | {"cells"}
    rows = {t["name"]: t["rows"] for t in manifest["tables"]}
    assert rows["opinion"] == 0, "empty tables are listed too"
    for entry in manifest["tables"]:
        assert pq.read_table(parquet.folder / entry["file"]).num_rows == entry["rows"]
    report_files = {path.name for path in parquet.folder.glob("report_*.csv")}
    assert {entry["file"] for entry in manifest["report_tables"]} == report_files
    assert "population" in (parquet.folder / "README.md").read_text()


def test_the_manifest_has_the_hash_of_every_file(jsonl: Exported) -> None:
    files = [path for path in jsonl.folder.iterdir() if path.name != "manifest.json"]
    hashes = {path.name: sha256(path.read_bytes()).hexdigest() for path in files}
    assert hashes == {entry["file"]: entry["sha256"] for entry in jsonl.manifest["files"]} == jsonl.export.file_hashes


def test_raters_are_numbered_unless_names_are_asked_for(
    two_audits: tuple[Database, Audit], parquet: Exported, tmp_path: Path
) -> None:
    db, audit = two_audits
    named = Exported(tmp_path, export_tables(db, audit.name, tmp_path, keep_rater_names=True))
    assert [{row["rater"] for row in export.read("rating")} for export in (parquet, named)] == [{"rater-1"}, {"ada"}]
    assert count_rows(db, Rating, audit)


def test_an_earlier_export_is_replaced_and_other_files_are_never_touched(
    two_audits: tuple[Database, Audit], jsonl: Exported, tmp_path: Path
) -> None:
    db, audit = two_audits
    out = Path(shutil.copytree(jsonl.folder, tmp_path / "out"))
    (out / "mine.txt").write_text("kept")
    export_tables(db, audit.name, out, "parquet")
    assert not list(out.glob("*.jsonl"))
    assert (out / "mine.txt").read_text() == "kept"
    assert not list(out.glob(".part-*"))
    with pytest.raises(UsageError, match="the folder contains other files"):
        export_tables(db, audit.name, _foreign(tmp_path))
    with pytest.raises(StorageError):
        export_tables(db, "nobody", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def _foreign(folder: Path) -> Path:
    """A folder with a file that is no part of an export."""
    (folder / "foreign").mkdir()
    (folder / "foreign" / "thesis.doc").write_text("")
    return folder / "foreign"


def test_a_failure_leaves_the_old_export_as_it_was(
    two_audits: tuple[Database, Audit], parquet: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, audit = two_audits
    out = Path(shutil.copytree(parquet.folder, tmp_path / "out"))
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    monkeypatch.setattr("auditor.exports.tables.build_data_card", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_tables(db, audit.name, out)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
