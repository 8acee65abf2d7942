"""Data frames of every table in pandas and polars: types, missing scores of failures, and escaped names in HTML."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from auditor.errors import UsageError
from auditor.imports.task_answers import import_task_answers
from auditor.reports.data.report_schema import Report
from auditor.run import AuditHandle, open_audit
from auditor.run.notebook import REPORT_TABLES, render_html_table
from auditor.storage import audit_archive
from auditor.storage.database import open_database
from tests.support.synthetic_audit import populate


@pytest.fixture(scope="module")
def handle(tmp_path_factory: pytest.TempPathFactory) -> AuditHandle:
    url = f"sqlite:///{tmp_path_factory.mktemp('notebook')}/audit.db"
    with open_database(url) as db:
        populate(db, models=2, countries=6, topics=5)
    return open_audit("population", storage=url)


@pytest.fixture(scope="module")
def report(handle: AuditHandle) -> Report:
    return handle.report()


def test_the_scores_frame_equals_the_handles_scores(handle: AuditHandle) -> None:
    frame = handle.frame("scores")
    assert str(frame["score"].dtype) == "Float64"
    score_by_key = {(r.model, r.country, r.topic, r.method): r.score for r in frame.itertuples()}
    assert {k: None if v is pd.NA else v for k, v in score_by_key.items()} == handle.scores()


def test_a_failure_is_missing_and_not_zero(handle: AuditHandle) -> None:
    traces = handle.frame("traces")
    failed = traces[traces["outcome"] != "ok"]
    assert len(failed) > 0
    assert failed["score"].isna().all()


def test_both_libraries_hold_the_same(handle: AuditHandle, report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    monkeypatch.setattr("auditor.reports.data.build.build_report", lambda db, name: report)
    for table in (*(definition.name for definition in audit_archive.list_tables()), *REPORT_TABLES):
        pandas_frame, polars_frame = handle.frame(table), handle.frame(table, "polars")
        assert isinstance(polars_frame, polars.DataFrame), table
        assert list(pandas_frame.columns) == polars_frame.columns, table
        assert len(pandas_frame) == polars_frame.height, table


def test_report_tables_have_figures_with_their_intervals(handle: AuditHandle, report: Report) -> None:
    frame = handle.frame("alignment")
    assert {"model", "bias", "bias_low", "bias_high"} <= set(frame.columns)
    assert list(frame["pearson_r"]) == [row.pearson_r.value for row in report.alignment]


def test_an_unknown_table_names_the_nearest(handle: AuditHandle) -> None:
    with pytest.raises(UsageError, match="Did you mean 'trace'"):
        handle.frame("trases")


def test_the_handle_and_a_check_have_an_html_representation(handle: AuditHandle) -> None:
    handle_html = handle._repr_html_()
    assert "alder" in handle_html
    assert "<table>" in handle_html
    assert "min_pearson" in handle.check(min_pearson=0.5)._repr_html_()
    assert "<b>" not in render_html_table("<b>", ["<b>"], [["<b>"]])


def test_a_frame_can_be_saved_as_parquet(handle: AuditHandle, tmp_path: Path) -> None:
    handle.frame("scores").to_parquet(tmp_path / "scores.parquet")
    assert len(pd.read_parquet(tmp_path / "scores.parquet")) == len(handle.scores())


def test_a_task_has_frames_of_accuracy_and_of_its_items(tmp_path: Path, storage: str) -> None:
    (tmp_path / "items.csv").write_text("id,question,truth\n1,How good?,5\n2,And this?,8\n", encoding="utf-8")
    (tmp_path / "answers.csv").write_text("model,id,answer\na,1,6\na,2,2\n", encoding="utf-8")
    import_task_answers(
        tmp_path / "answers.csv", audit="quiz", items=tmp_path / "items.csv", storage=storage,
        answer_format={"answer": "score", "range": (0, 10), "tolerance": 1},
    )  # fmt: skip
    quiz = open_audit("quiz", storage=storage)
    accuracy, items = quiz.frame("accuracy"), quiz.frame("items")
    assert accuracy[["model", "accuracy", "score_mae", "planned"]].to_numpy().tolist() == [["a", 0.5, 3.5, 2]]
    assert items[["id", "truth", "right", "answers_a"]].to_numpy().tolist() == [
        ["1", "5", 1.0, "6"],
        ["2", "8", 0.0, "2"],
    ]
