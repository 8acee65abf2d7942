"""The engine 'ray' but for Ray: workers in this process. tests/e2e/test_ray.py has real ones, on two nodes."""

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
from tests.e2e.test_replay import log, replayed
from tests.e2e.test_run import question, stored
from tests.run.test_ray_pool import Near
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer
from tests.support.postgres_server import PASSWORD, Postgres


@pytest.fixture
def hired(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The GPUs of each worker that was hired."""
    found: list[float] = []

    @contextmanager
    def connected(address: str | None) -> Iterator[str]:
        yield "this process"

    def hire(actor_class: type[Any], *, n_gpus: float) -> Near:
        found.append(n_gpus)
        return Near()

    for name, stand_in in (("connect_to_cluster", connected), ("start_worker", hire), ("count_hosts", lambda: 2)):
        monkeypatch.setattr(ray_cluster, name, stand_in)
    return found


@pytest.fixture
def url(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return postgres.schema().replace(f":{PASSWORD}@", "@")


def test_replayed_models_are_answered_here_and_recorded_once(
    server: FakeServer, url: str, storage: str, hired: list[float], tmp_path: Path
) -> None:
    audit = replayed(server, log(tmp_path), others=2, judges="peers")
    run_audit(audit, storage=storage)
    asked = [question(r) for r in server.requests]
    server.requests.clear()
    run_audit(audit.with_run(engine="ray"), storage=url)
    assert stored(url) == stored(storage)
    assert sorted(question(r) for r in server.requests) == sorted(asked)
    assert hired == [0.0, 0.0]
    with open_database(url) as db, db.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM dispatch").scalar_one() == 0


async def test_what_runs_on_its_host_has_a_worker_of_its_own_with_gpus(
    server: FakeServer, storage: str, hired: list[float]
) -> None:
    base = config(server.url, models=2, run={"engine": "ray", "gpus": 0.5}).model_dump(mode="json")
    embedded = {"name": "small", "model": "embedded/smollm2-135m"}
    audit = AuditConfig.model_validate(base | {"models": [base["models"][0] | {"weights": "mine.gguf"}, embedded]})
    asked = Call("model-a", "openai/scripted-a", (), Purpose.DIRECT)
    place = dedicated_model_selector(audit)
    assert place(asked) is None
    assert place(replace(asked, measure=LogprobMeasure.CONTINUATION)) == "model-a"
    assert place(replace(asked, name="small")) == "small"
    with open_database(storage) as db:
        make = slot_factory(audit, 1, db)
        for name, expected in ((None, [("model-a",)] * 2), ("model-a", [("model-a",)]), ("small", [("small",)])):
            assert [post.worker_config.models for post in make(name, lambda: None)] == expected
        for post in [*make(None, lambda: None), *make("small", lambda: None)]:
            post.start_worker()
    assert hired == [0.0, 0.0, 0.5]


def test_where_requests_go_out_from_makes_no_other_audit(server: FakeServer, storage: str) -> None:
    here = config(server.url)
    there = here.with_run(engine="ray", ray_address="10.0.0.1:6379")
    assert there.hash == here.hash
    with open_database(storage) as db:
        made: dict[str, Any] = {"config": here.model_dump_json(), "config_hash": fingerprint(here), "environment": {}}
        saved = audits.save_audit(db, name=here.name, survey=load_planned_survey(here), **made)
    assert describe_config_change(saved, there, fingerprint(there)) is None


def test_a_key_that_came_with_a_later_version_has_not_changed(server: FakeServer, storage: str) -> None:
    here = config(server.url)
    stored = here.model_dump(mode="json")
    del stored["probes"]["review"]["max_trace_chars"]
    with open_database(storage) as db:
        made: dict[str, Any] = {"config": json.dumps(stored), "config_hash": fingerprint(here), "environment": {}}
        saved = audits.save_audit(db, name=here.name, survey=load_planned_survey(here), **made)
    later = here.model_copy(update={"seed": 8})
    note = describe_config_change(saved, later, fingerprint(later))
    assert note is not None
    assert "changed since it was run last: seed. " in note


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "auto"])
def test_what_is_no_address_of_a_head_is_refused(
    server: FakeServer, url: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'auditor[ray]'")
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(UsageError, match="is no address"):
        run_audit(config(server.url).with_run(engine="ray", ray_address=address), storage=url)


def test_a_file_and_a_password_are_refused(server: FakeServer, storage: str, postgres: Postgres) -> None:
    audit = config(server.url).with_run(engine="ray")
    with pytest.raises(UsageError, match="cannot share the file"):
        run_audit(audit, storage=storage)
    with pytest.raises(UsageError, match="holds a password") as refused:
        run_audit(audit, storage=postgres.schema())
    assert PASSWORD not in str(refused.value)
    assert not Path(storage.removeprefix("sqlite:///")).exists()


def test_batches_go_out_from_one_process(server: FakeServer, url: str) -> None:
    with pytest.raises(ConfigError, match="from one process"):
        run_audit(config(server.url, batch={}).with_run(engine="ray"), storage=url)


def test_doctor_looks_at_the_cluster_and_leaves_keys_to_its_hosts(
    server: FakeServer, storage: str, tmp_path: Path
) -> None:
    file = tmp_path / "audit.yaml"
    audit = config(server.url).with_run(engine="ray")
    file.write_text(yaml.safe_dump(audit.model_dump(mode="json", exclude_none=True, exclude_defaults=True)))
    found = {check.name: check for check in run_doctor_checks(file, storage)}
    assert found["cluster"].state == "FAIL"
    assert "cannot share the file" in found["cluster"].found
    assert not any(name.startswith("key of") for name in found)
