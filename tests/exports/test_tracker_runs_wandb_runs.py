"""Export of an audit to offline files of Weights & Biases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.exports.tracker_runs import build_runs, export_wandb
from auditor.reports.data.report_schema import Report


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


@pytest.mark.slow
def test_wandb_runs_are_written_offline(report: Report, tmp_path: Path, quiet_wandb: Any) -> None:
    from wandb.proto.wandb_internal_pb2 import Record

    export = export_wandb(report, tmp_path / "runs")
    assert (len(export.runs), export.online) == (4, False)
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
    assert started is not None
    assert (started.display_name, started.run_group) == ("alder", "population")
    assert {name: summary[name] for name in models[0].metrics} == pytest.approx(models[0].metrics)
