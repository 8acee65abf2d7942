"""The engine 'ray' with workers in this process instead of Ray; tests/e2e/test_ray.py uses two real nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from auditor.cli.audit_checks import run_doctor_checks
from auditor.config import AuditConfig
from auditor.domain import Call, LogprobMeasure, Purpose
from auditor.errors import ConfigError, UsageError
from auditor.run import load_planned_survey, ray_cluster, run_audit
from auditor.run.config_changes import describe_config_change
from auditor.run.engines import dedicated_model_selector, slot_factory
from auditor.run.fingerprints import fingerprint
from auditor.storage import audits
from auditor.storage.database import open_database
from tests.e2e.test_replay import config_with_replay, write_log
from tests.e2e.test_run import question, stored
from tests.run.test_ray_pool import LocalWorker
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer
from tests.support.postgres_server import PASSWORD, Postgres


@pytest.fixture
def worker_gpus(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Start workers in this process; lists the GPUs that each was started with."""
    gpus_by_worker: list[float] = []

    @contextmanager
    def connected(address: str | None) -> Iterator[str]:
        yield "this process"

    def start_local_worker(actor_class: type[Any], *, n_gpus: float) -> LocalWorker:
        gpus_by_worker.append(n_gpus)
        return LocalWorker()

    for name, stand_in in (
        ("connect_to_cluster", connected),
        ("start_worker", start_local_worker),
        ("count_hosts", lambda: 2),
    ):
        monkeypatch.setattr(ray_cluster, name, stand_in)
    return gpus_by_worker


@pytest.fixture
def url(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return postgres.schema().replace(f":{PASSWORD}@", "@")


def test_replayed_models_are_answered_in_this_process_and_recorded_once(
    server: FakeServer, url: str, storage: str, worker_gpus: list[float], tmp_path: Path
) -> None:
    audit = config_with_replay(server, write_log(tmp_path), others=2, judges="peers")
    run_audit(audit, storage=storage)
    local_questions = [question(r) for r in server.requests]
    server.requests.clear()
    run_audit(audit.with_run(engine="ray"), storage=url)
    assert stored(url) == stored(storage)
    assert sorted(question(r) for r in server.requests) == sorted(local_questions)
    assert worker_gpus == [0.0, 0.0]
    with open_database(url) as db, db.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM dispatch").scalar_one() == 0


async def test_a_model_run_on_its_host_has_a_dedicated_worker_with_gpus(
    server: FakeServer, worker_gpus: list[float]
) -> None:
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
        assert [slot.worker_config.models for slot in make_slots(name, lambda: None)] == expected
    for slot in [*make_slots(None, lambda: None), *make_slots("small", lambda: None)]:
        slot.start_worker()
    assert worker_gpus == [0.0, 0.0, 0.5]


def test_a_worker_does_not_learn_where_the_database_is(server: FakeServer, worker_gpus: list[float]) -> None:
    audit = config(server.url, storage="postgresql+psycopg://db.example.org/audits").with_run(engine="ray")
    [slot, _] = slot_factory(audit)(None, lambda: None)
    assert "db.example.org" not in repr(slot.worker_config)


def test_the_engine_does_not_change_the_audits_hash(server: FakeServer, storage: str) -> None:
    local_audit = config(server.url)
    ray_audit = local_audit.with_run(engine="ray", ray_address="10.0.0.1:6379")
    assert ray_audit.hash == local_audit.hash
    with open_database(storage) as db:
        audit_columns: dict[str, Any] = {
            "config": local_audit.model_dump_json(),
            "config_hash": fingerprint(local_audit),
            "environment": {},
        }
        saved = audits.save_audit(db, name=local_audit.name, survey=load_planned_survey(local_audit), **audit_columns)
    assert describe_config_change(saved, ray_audit, fingerprint(ray_audit)) is None


def test_a_config_key_of_a_later_version_is_not_a_change(server: FakeServer, storage: str) -> None:
    audit = config(server.url)
    stored_config = audit.model_dump(mode="json")
    del stored_config["probes"]["review"]["max_trace_chars"]
    with open_database(storage) as db:
        audit_columns: dict[str, Any] = {
            "config": json.dumps(stored_config),
            "config_hash": fingerprint(audit),
            "environment": {},
        }
        saved = audits.save_audit(db, name=audit.name, survey=load_planned_survey(audit), **audit_columns)
    changed_audit = audit.model_copy(update={"seed": 8})
    note = describe_config_change(saved, changed_audit, fingerprint(changed_audit))
    assert note is not None
    assert "changed since its last run: seed. " in note


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "auto"])
def test_an_invalid_head_address_is_refused(
    server: FakeServer, url: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'auditor[ray]'")
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(UsageError, match="is not the address"):
        run_audit(config(server.url).with_run(engine="ray", ray_address=address), storage=url)


def test_an_sqlite_file_and_a_url_with_a_password_are_refused(
    server: FakeServer, storage: str, postgres: Postgres
) -> None:
    audit = config(server.url).with_run(engine="ray")
    with pytest.raises(UsageError, match="cannot share the file"):
        run_audit(audit, storage=storage)
    with pytest.raises(UsageError, match="holds a password") as refused:
        run_audit(audit, storage=postgres.schema())
    assert PASSWORD not in str(refused.value)
    assert not Path(storage.removeprefix("sqlite:///")).exists()


def test_batches_are_refused_with_ray(server: FakeServer, url: str) -> None:
    with pytest.raises(ConfigError, match="are sent only with the engine local"):
        run_audit(config(server.url, batch={}).with_run(engine="ray"), storage=url)


def test_doctor_checks_the_cluster_and_not_its_hosts_keys(server: FakeServer, storage: str, tmp_path: Path) -> None:
    file = tmp_path / "audit.yaml"
    audit = config(server.url).with_run(engine="ray")
    file.write_text(yaml.safe_dump(audit.model_dump(mode="json", exclude_none=True, exclude_defaults=True)))
    checks_by_name = {check.name: check for check in run_doctor_checks(file, storage)}
    assert checks_by_name["cluster"].state == "FAIL"
    assert "cannot share the file" in checks_by_name["cluster"].found
    assert not any(name.startswith("key of") for name in checks_by_name)
