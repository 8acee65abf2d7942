"""The engine 'ray' with workers in this process instead of Ray; tests/e2e/test_ray.py uses two real nodes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from auditor.cli.doctor_audit import run_doctor_checks
from auditor.config import AuditConfig
from auditor.domain import Call, LogprobMeasure, Message, Purpose
from auditor.errors import ConfigError, UsageError
from auditor.run import ray_cluster, ray_engine, run_audit
from auditor.run.fingerprints import describe_config_change, fingerprint
from auditor.run.ray_engine import dedicated_model_selector, make_worker_config, slot_factory
from auditor.storage.database import open_database
from tests.e2e.test_replay import config_with_replay, write_log
from tests.e2e.test_run import question, stored
from tests.run.test_ray_pool import LocalWorker
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer
from tests.support.known import known
from tests.support.stored_rows import save_configured


@pytest.fixture
def worker_gpus(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Start workers in this process; lists the GPUs that each was started with."""
    gpus_by_worker: list[float] = []

    @contextmanager
    def connected(address: str | None, max_local_workers: int) -> Iterator[str]:
        yield "this process"

    def start_local_worker(actor_class: type[Any], worker_config: object, *, n_gpus: float) -> LocalWorker:
        gpus_by_worker.append(n_gpus)
        return LocalWorker(worker_config)

    for name, stand_in in (
        ("connect_to_cluster", connected),
        ("start_worker", start_local_worker),
        ("has_address", lambda address: True),
        ("count_hosts", lambda: 2),
    ):
        monkeypatch.setattr(ray_cluster, name, stand_in)
    return gpus_by_worker


def test_replayed_models_are_answered_here_once(server: FakeServer, worker_gpus: list[float], tmp_path: Path) -> None:
    audit = config_with_replay(server, write_log(tmp_path), others=2, judges="peers")
    local_storage, ray_storage = (f"sqlite:///{tmp_path / name}.db" for name in ("local", "ray"))
    run_audit(audit, storage=local_storage)
    local_questions = [question(r) for r in server.requests]
    server.requests.clear()
    run_audit(audit.with_run(engine="ray"), storage=ray_storage)
    assert stored(ray_storage) == stored(local_storage)
    assert sorted(question(r) for r in server.requests) == sorted(local_questions)
    assert worker_gpus == [0.0, 0.0]
    with open_database(ray_storage) as db, db.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM dispatch").scalar_one() == 0


async def test_a_model_on_its_host_has_one_worker_with_gpus(server: FakeServer, worker_gpus: list[float]) -> None:
    base = config(server.url, models=2, run={"engine": "ray", "gpus": 0.5}).model_dump(mode="json")
    embedded = {"name": "small", "model": "embedded/smollm2-135m"}
    audit = AuditConfig.model_validate(base | {"models": [base["models"][0] | {"weights": "mine.gguf"}, embedded]})
    unmeasured_call = Call("model-a", "openai/scripted-a", (), Purpose.DIRECT)
    select_model = dedicated_model_selector(audit)
    assert select_model(unmeasured_call) is None
    assert select_model(replace(unmeasured_call, measure=LogprobMeasure.CONTINUATION)) == "model-a"
    assert select_model(replace(unmeasured_call, name="small")) == "small"
    make_slots = slot_factory(audit)
    for name, expected in ((None, [("model-a",)] * 2), ("model-a", [("model-a",)]), ("small", [("small",)])):
        workers = [slot.start_worker() for slot in make_slots(name, lambda: None)]
        assert [worker.worker_config.models for worker in workers if isinstance(worker, LocalWorker)] == expected
    assert worker_gpus == [0.0, 0.0, 0.5, 0.5]


def test_a_worker_learns_neither_the_database_nor_a_key(server: FakeServer) -> None:
    audit = config(server.url, storage="postgresql+psycopg://db.example.org/audits").with_run(engine="ray")
    worker_config = make_worker_config(audit, ("model-a",))
    assert KEY_VARIABLE in repr(worker_config)
    assert "db.example.org" not in repr(worker_config)
    assert KEY not in repr(worker_config)


@pytest.mark.parametrize(("cores", "n_workers"), [(None, 1), (1, 1), (2, 1), (4, 3), (16, 4)])
def test_a_machine_alone_has_a_worker_for_each_core_but_one(
    server: FakeServer, cores: int | None, n_workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert len(slot_factory(config(server.url))(None, lambda: None)) == n_workers
    assert len(slot_factory(config(server.url, run={"workers": 7}))(None, lambda: None)) == 7


def test_the_engine_does_not_change_the_audits_hash(server: FakeServer, storage: str) -> None:
    local_audit = config(server.url)
    ray_audit = local_audit.with_run(engine="ray", ray_address="10.0.0.1:6379")
    assert ray_audit.hash == local_audit.hash
    with open_database(storage) as db:
        saved = save_configured(db, local_audit)
    assert describe_config_change(saved, ray_audit, fingerprint(ray_audit)) is None


def test_a_config_key_of_a_later_version_is_not_a_change(server: FakeServer, storage: str) -> None:
    audit = config(server.url)
    stored_config = audit.model_dump(mode="json")
    del stored_config["probes"]["review"]["max_trace_chars"]
    with open_database(storage) as db:
        saved = save_configured(db, audit, json.dumps(stored_config))
    changed_audit = audit.model_copy(update={"seed": 8})
    note = known(describe_config_change(saved, changed_audit, fingerprint(changed_audit)))
    assert "changed since its last run: seed. " in note


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "auto"])
def test_an_invalid_head_address_is_refused(
    server: FakeServer, storage: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'auditor[ray]'")
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(UsageError, match="is not the address"):
        run_audit(config(server.url).with_run(engine="ray", ray_address=address), storage=storage)


def test_a_cluster_that_lets_in_somebody_without_a_token_is_refused(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by tests/e2e/test_ray.py in `make faults`, with a real cluster."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'auditor[ray]'")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    monkeypatch.setattr(ray_cluster, "PING_SCRIPT", "")  # it succeeds
    with pytest.raises(UsageError, match="accepts connections without a token"):
        run_audit(config(server.url).with_run(engine="ray", ray_address="127.0.0.1:6379"), storage=storage)
    assert server.requests == []


async def test_a_busy_process_says_once_what_would_help(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "LOAD_CHECK_INTERVAL_S", 0.05)
    monkeypatch.setattr(ray_engine, "BUSY_CPU_SHARE", 0.05)  # a busy loop reaches this share on a loaded machine too
    monkeypatch.setattr(ray_engine, "MIN_BUSY_REQUESTS", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    notes, audit = list[str](), config(server.url, 1, judges=[])
    sent_call = Call("model-a", "openai/scripted-a", (Message("user", "hi"),), Purpose.DIRECT, server=server.url)
    async with ray_engine.open_dispatcher(audit, audit.models, notes.append) as dispatcher:
        for _ in range(3):
            await work_for(0.2)
        assert notes == []  # busy, but with nothing that Ray could do
        for _ in range(3):
            await dispatcher.send(sent_call, 1, 60.0)
            await work_for(0.2)
    assert [note.partition(".")[0] for note in notes] == ["The core of this process is busy, and calls wait for it"]


async def work_for(seconds: float) -> None:
    """Use this thread's core for some seconds, then let other tasks run."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    await asyncio.sleep(0.001)


def test_batches_are_refused_with_ray(server: FakeServer, storage: str) -> None:
    with pytest.raises(ConfigError, match="are sent only with the engine local"):
        run_audit(config(server.url, batch={}).with_run(engine="ray"), storage=storage)


def test_doctor_checks_the_cluster_and_not_its_hosts_keys(server: FakeServer, storage: str, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'auditor[ray]'")
    file = tmp_path / "audit.yaml"
    audit = config(server.url).with_run(engine="ray")
    file.write_text(yaml.safe_dump(audit.model_dump(mode="json", exclude_none=True, exclude_defaults=True)))
    checks_by_name = {check.name: check for check in run_doctor_checks(file, storage)}
    assert "on this machine will be started" in checks_by_name["cluster"].found
    assert not any(name.startswith("key of") for name in checks_by_name)
