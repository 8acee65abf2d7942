"""An audit as runs of an experiment tracker: one for the audit and one for each model, in MLflow and in W&B."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import UsageError
from auditor.exports.inspect_logs import export_inspect
from auditor.exports.model_figures import AGREEMENT_FIGURES
from auditor.exports.tracker_runs import (
    TrackerRun,
    _make_run_id,
    build_runs,
    export_mlflow,
    export_wandb,
)
from auditor.imports.task_answers import import_task_answers
from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.report_schema import Report
from auditor.run import open_audit
from auditor.storage.database import open_database
from tests.support.known import known
from tests.support.report_changes import change


def test_every_metric_has_its_interval_and_n(report: Report) -> None:
    audit_run, model_runs = build_runs(report)
    assert [run.name for run in model_runs] == ["alder", "birch", "cedar"]
    for run, row in zip(model_runs, report.alignment, strict=True):
        for name in ("pearson_r", "mae", "self_consistency"):
            assert {name, f"{name}_low", f"{name}_high", f"{name}_n"} <= run.metrics.keys()
        agreement = next(peers.agreement for peers in report.peer_agreement if peers.model == row.model)
        assert (run.metrics["peer_agreement"], run.metrics["peer_agreement_n"]) == (agreement.value, agreement.n)
        assert run.metrics.get("peer_agreement_low") == agreement.ci_low  # some have too few INVALID for an interval
        assert run.metrics["pearson_r"] == row.pearson_r.value
        assert run.metrics["pearson_r_low"] == row.pearson_r.ci_low
        assert all(math.isfinite(value) for value in run.metrics.values())
    assert audit_run.metrics["conflicts"] == report.conflicts.total
    assert "cost_usd" in model_runs[0].metrics
    assert "cost_usd" not in model_runs[2].metrics  # its price is not known
    assert "cost_usd" not in audit_run.metrics


def test_every_figure_of_agreement_is_a_metric_but_the_corrected_r_and_second_intervals() -> None:
    """A new figure is added to them, or left out on purpose."""
    second_intervals = {"bias_of_these_countries", "concordance_simultaneous"}  # of the values of tracked figures
    estimates = {
        name
        for name, field in AlignmentRow.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, Estimate)
    }
    assert estimates - {"corrected_r"} - second_intervals == set(AGREEMENT_FIGURES)


def test_a_task_has_its_accuracy_as_metrics(tmp_path: Path, storage: str) -> None:
    (tmp_path / "items.csv").write_text("id,question,truth\n1,How good?,5\n2,And this?,8\n", encoding="utf-8")
    (tmp_path / "answers.csv").write_text("model,id,answer\na,1,6\na,2,2\n", encoding="utf-8")
    import_task_answers(
        tmp_path / "answers.csv", audit="quiz", items=tmp_path / "items.csv", storage=storage,
        answer_format={"answer": "score", "range": (0, 10), "tolerance": 1},
    )  # fmt: skip
    _, [run] = build_runs(open_audit("quiz", storage=storage).report())
    assert (run.metrics["accuracy"], run.metrics["accuracy_n"], run.metrics["mae"]) == (0.5, 2, 3.5)
    assert (run.params["task"], run.params["items"]) == ("items.csv", "2")
    assert "cells" not in run.params
    with open_database(storage) as db:
        [log] = export_inspect(db, "quiz", tmp_path / "logs")
    metrics = pytest.importorskip("inspect_ai.log").read_eval_log(str(log.path)).results.scores[0].metrics
    assert (metrics["answers"].value, metrics["accuracy"].value, metrics["mae"].value) == (2, 0.5, 3.5)


def test_missing_estimates_are_not_exported(report: Report) -> None:
    [first_row, *other_rows] = report.alignment
    row = first_row.model_copy(update={"pearson_r": Tested(None, first_row.n, reason="none")})
    _, models = build_runs(report.model_copy(update={"alignment": [row, *other_rows]}))
    assert not [name for name in models[0].metrics if name.startswith("pearson_r")]


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_without_the_package_its_extra_is_named(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match=rf"auditor\[{name}\]"):
        export_mlflow(report) if name == "mlflow" else export_wandb(report, tmp_path)


def limit_models(report: Report, n: int) -> Report:
    """The report of the first models, since each run takes seconds."""
    return change(report, audit__models=report.audit.models[:n])


@pytest.mark.slow
def test_mlflow_has_one_run_per_model_nested_under_the_audits_run(report: Report, tmp_path: Path) -> None:
    tracking = pytest.importorskip("mlflow.tracking", reason="the extra 'mlflow' is not installed")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client = tracking.MlflowClient(tracking_uri=uri)
    client.create_experiment("moral", artifact_location=(tmp_path / "artifacts").as_uri())
    report = limit_models(report, 2)
    export = export_mlflow(report, uri=uri, experiment="moral")
    assert (export.runs, export.fresh) == (3, True)
    experiment_id = client.get_experiment_by_name("moral").experiment_id
    runs = {run.info.run_name: run for run in client.search_runs([experiment_id])}
    assert runs.keys() == {"population", "alder", "birch"}
    _, models = build_runs(report)
    assert dict(runs["alder"].data.metrics) == pytest.approx(models[0].metrics)
    assert runs["alder"].data.params["model"] == "openai/alder-1"
    assert runs["alder"].data.tags["mlflow.parentRunId"] == export.run_id
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    files = {f.path for f in client.list_artifacts(export.run_id)}
    assert files == {"report.html", "report.json", "report.md", "tables"}
    page = Path(client.download_artifacts(export.run_id, "report.html", str(tmp_path)))
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    second_export = export_mlflow(report, uri=uri, experiment="moral")
    assert (second_export.run_id, second_export.fresh) == (export.run_id, False)
    assert len(client.search_runs([experiment_id])) == 3
    with pytest.raises(UsageError, match=r"MLflow at nosuch://here cannot be used: .*--tracking-uri"):
        export_mlflow(report, uri="nosuch://here")


def test_mlflow_makes_no_tables_in_a_database_of_audits(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("mlflow.tracking", reason="the extra 'mlflow' is not installed")
    path = tmp_path / "auditor.db"
    with open_database(f"sqlite:///{path}"):
        pass
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is a database of audits"):
        export_mlflow(report, uri=f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_the_default_store_of_mlflow_is_not_written_through_a_link(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow.tracking", reason="the extra 'mlflow' is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    Path("cookies.sqlite").write_bytes(b"")
    Path("mlflow.db").symlink_to("cookies.sqlite")
    with pytest.raises(UsageError, match=r"mlflow\.db: is a link"):
        export_mlflow(report)
    assert Path("cookies.sqlite").read_bytes() == b""


@pytest.mark.parametrize("suffix", ["", "-journal", "-wal"])
def test_the_default_store_of_mlflow_and_its_journal_have_no_second_name(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    pytest.importorskip("mlflow.tracking", reason="the extra 'mlflow' is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    Path("diary.txt").write_text("mine")
    Path(f"mlflow.db{suffix}").hardlink_to("diary.txt")
    with pytest.raises(UsageError, match=rf"mlflow\.db{suffix}: has a second name"):
        export_mlflow(report)
    assert Path("diary.txt").read_text() == "mine"


def test_a_store_of_mlflow_that_is_no_database_is_named(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("mlflow.tracking", reason="the extra 'mlflow' is not installed")
    path = tmp_path / "notes.txt"
    path.write_text("notes " * 500)
    with pytest.raises(UsageError, match=r"MLflow at sqlite:\S+notes\.txt cannot be used: .*not a database"):
        export_mlflow(report, uri=f"sqlite:///{path}")
    assert path.read_text() == "notes " * 500


def test_the_password_of_a_tracking_server_is_not_shown(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow.tracking", reason="the extra 'mlflow' is not installed")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(UsageError, match="MLflow at http://ada:") as caught:
        export_mlflow(report, uri="http://ada:s3cret@127.0.0.1:9")
    assert "s3cret" not in str(caught.value)
    with pytest.raises(UsageError, match=r"http://ada:\*\*\*@\[x: is no address \(Invalid IPv6 URL\)"):
        export_mlflow(report, uri="http://ada:s3cret@[x")


@pytest.fixture
def quiet_wandb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The package wandb, with its folders in `tmp_path`."""
    wandb = pytest.importorskip("wandb", reason="the extra 'wandb' is not installed")
    for name in ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    yield wandb
    wandb.teardown()


def read_records(log: bytes) -> Iterator[bytes]:
    """Records of a wandb file: LevelDB's log format in blocks of 32 KiB, after a file header of seven bytes.

    Each fragment has a header of seven bytes: checksum (4), size (2, little-endian), kind (1 full, 2 first, 3 middle,
    4 last).
    """
    position, record = 7, b""
    while position + 7 <= len(log):
        if 32_768 - position % 32_768 < 7:
            position += 32_768 - position % 32_768
            continue
        size, fragment_kind = int.from_bytes(log[position + 4 : position + 6], "little"), log[position + 6]
        record = (b"" if fragment_kind in (1, 2) else record) + log[position + 7 : position + 7 + size]
        position += 7 + size
        if fragment_kind in (1, 4):
            yield record


def test_wandb_keeps_models_apart_whose_names_are_alike() -> None:
    """Weights & Biases shows the runs of one id as one, with the figures of the last."""
    long = "organisation/a-long-name-of-a-model-with-many-words"
    names = [f"{long}-2024-06", f"{long}-2024-12", "modèle", "modele", "model/a", "model:a"]
    ids = [_make_run_id(TrackerRun(name, {"audit": "a"}, {}), "0" * 64, "m") for name in names]
    assert len(set(ids)) == len(names)
    assert ids[0] == _make_run_id(TrackerRun(names[0], {"audit": "a", "seed": "1"}, {}), "0" * 64, "m")


@pytest.mark.slow
def test_wandb_runs_are_written_offline(report: Report, tmp_path: Path, quiet_wandb: Any) -> None:
    from wandb.proto.wandb_internal_pb2 import Record

    export = export_wandb(limit_models(report, 1), tmp_path / "runs")
    assert (len(export.runs), export.online) == (2, False)
    quiet_wandb.teardown()  # its process may still be writing; it is waited for when auditor ends, too
    _, models = build_runs(report)
    [log] = Path(export.runs[1]).glob("*.wandb")
    summary: dict[str, float] = {}
    started = None
    for record_bytes in read_records(log.read_bytes()):
        record = Record()
        record.ParseFromString(record_bytes)
        kind = record.WhichOneof("record_type")
        if kind == "summary":
            summary |= {(i.key or ".".join(i.nested_key)): json.loads(i.value_json) for i in record.summary.update}
        started = record.run if kind == "run" else started
    assert (known(started).display_name, known(started).run_group) == ("alder", "population")
    assert {name: summary[name] for name in models[0].metrics} == pytest.approx(models[0].metrics)
