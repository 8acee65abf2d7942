"""Workers on two local Ray nodes: the results equal those of one process even if a node dies, and no key leaks."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from auditor.config import AuditConfig
from auditor.errors import UsageError
from auditor.models.limiter import RATE_BURST_S
from auditor.reports.data.verification import verify_audit
from auditor.run import open_audit, run_audit
from auditor.storage.database import Database, open_database
from tests.e2e.test_killed import small
from tests.e2e.test_run import exported, question, stored
from tests.e2e.test_team import report
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer, answer
from tests.support.postgres_server import PASSWORD, Postgres
from tests.support.ray_nodes import TIMEOUT_S, TOKEN, Clusters, clusters, environment
from tests.support.stored_rows import count_attempts

pytest.importorskip("ray", reason="needs Ray: pip install 'auditor[ray]'")

SECRETS = (KEY, PASSWORD, TOKEN)
DUMP = """
import sys, ray
from ray._private.state import actors, jobs
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list
ray.init(address=sys.argv[1], log_to_driver=False)
print(actors(), jobs())
for namespace in (None, b"fun", b"job", b"session", b"package", b"cluster"):
    for key in _internal_kv_list(b"", namespace=namespace):
        print(key, _internal_kv_get(key, namespace=namespace))
"""


@pytest.fixture(scope="module")
def nodes(postgres: Postgres) -> Iterator[Clusters]:
    """Running Ray clusters: one with two nodes and a token, one open to everybody."""
    with clusters() as running_clusters:
        yield running_clusters


@pytest.fixture
def url(postgres: Postgres) -> str:
    """URL of a new database schema, without the password."""
    return postgres.schema().replace(f":{PASSWORD}@", "@")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ((KEY_VARIABLE, KEY), ("PGPASSWORD", PASSWORD)):
        monkeypatch.setenv(name, value)


def start(audit: AuditConfig, url: str, address: str, folder: Path) -> subprocess.Popen[str]:
    """Start `auditor run` on a cluster in a process that has no API key in its environment."""
    file = folder / "audit.yaml"
    file.write_text(yaml.safe_dump(audit.model_dump(mode="json", exclude_none=True, exclude_defaults=True)))
    arguments = [str(file), "--storage", url, "--engine", "ray", "--ray-address", address]
    env = {k: v for k, v in environment(COLUMNS="200").items() if k != KEY_VARIABLE}
    return subprocess.Popen(
        [sys.executable, "-m", "auditor", "run", *arguments],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
    )


def wait_for(server: FakeServer, requests: int, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while len(server.requests) < requests:
        assert running.poll() is None, running.communicate()[0]
        assert time.monotonic() < deadline, "the run asks nothing"
        time.sleep(0.01)


def test_after_a_node_dies_the_results_are_those_of_one_process(
    server: FakeServer, nodes: Clusters, url: str, tmp_path: Path
) -> None:
    local_storage = f"sqlite:///{tmp_path / 'audits.db'}"
    run_audit(small(server), storage=local_storage)
    local_questions = Counter(map(question, server.requests))
    server.requests.clear()
    server.script = lambda request: replace(answer(request), delay_s=0.1)

    running = start(small(server), url, nodes.address, tmp_path)
    wait_for(server, 15, running)
    nodes.second.kill()
    stdout = running.communicate(timeout=TIMEOUT_S)[0]

    assert running.returncode == 0, stdout
    assert "Worker exit type" not in stdout
    assert "marked dead" not in stdout
    assert max(map(len, stdout.splitlines())) < 250, stdout
    assert stored(url) == stored(local_storage)
    assert report(url) == report(local_storage)
    assert exported(url, tmp_path / "ray") == exported(local_storage, tmp_path / "local")
    ray_questions = Counter(map(question, server.requests))
    in_flight = sum(m.max_concurrency for m in small(server).models)
    repeated = sum((ray_questions - local_questions).values())
    assert set(ray_questions) == set(local_questions)
    assert open_audit("scripted", storage=url).report().cost.lost == 0  # each has a recorded attempt
    with open_database(url) as db:
        assert repeated <= count_lost_attempts(db) <= in_flight
        assert verify_audit(db, "scripted").is_consistent


def count_lost_attempts(db: Database) -> int:
    """Number of recorded requests whose worker died."""
    with db.read() as connection:
        n_attempts: int = connection.exec_driver_sql(
            "SELECT count(*) FROM attempt WHERE error = 'the process that sent it died' AND outcome = 'server_error'"
        ).scalar_one()
    return n_attempts


def test_keys_are_in_no_log_and_no_table_of_ray(nodes: Clusters, tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", DUMP, nodes.address], env=environment(), capture_output=True, text=True, check=True
    )
    assert "Worker" in process.stdout
    files = [path for path in nodes.folder.rglob("*") if path.is_file()]
    assert any("worker" in path.name for path in files)
    for secret in SECRETS:
        assert secret not in process.stdout
        assert [path for path in files if secret.encode() in path.read_bytes()] == []


def test_one_signal_drains_the_run_and_another_engine_resumes_it(
    server: FakeServer, nodes: Clusters, url: str, tmp_path: Path
) -> None:
    server.script = lambda request: replace(answer(request), delay_s=0.1)
    running = start(small(server), url, nodes.address, tmp_path)
    wait_for(server, 15, running)
    running.send_signal(signal.SIGINT)
    stdout = running.communicate(timeout=TIMEOUT_S)[0]
    assert running.returncode == 130, stdout
    assert "all answers received so far are saved" in stdout
    request_count = len(server.requests)
    with open_database(url) as db:
        assert count_attempts(db) == request_count
    run_audit(small(server), storage=url)
    assert len(server.requests) == len(set(map(question, server.requests)))


def test_workers_share_a_models_rate_limit(server: FakeServer, nodes: Clusters, url: str, tmp_path: Path) -> None:
    rpm, n_samples = 600, 40
    survey = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce"]}
    probes = {"direct": {"samples": n_samples}}
    audit = config(server.url, models=1, judges=[], survey=survey, probes=probes)
    audit = audit.model_copy(update={"models": [m.model_copy(update={"rpm": rpm}) for m in audit.models]})

    running = start(audit, url, nodes.address, tmp_path)
    stdout = running.communicate(timeout=TIMEOUT_S)[0]

    assert running.returncode == 0, stdout
    times = [request.at for request in server.requests]
    assert len(times) == n_samples
    assert all(n <= rpm / 60 * (RATE_BURST_S + at - times[0]) + 1 for n, at in enumerate(times))


DYING = """
import asyncio, os, sys
from auditor.run.ray_cluster import WorkerDied, connect_to_cluster, start_worker

class Worker:
    def pid(self): return os.getpid()
    def wait(self):
        import time
        time.sleep(60)

async def main():
    worker = start_worker(Worker, n_gpus=0)
    pid = await worker.call_method("pid")
    waiting = asyncio.ensure_future(worker.call_method("wait"))
    await asyncio.sleep(1)
    os.kill(pid, 9)
    try:
        await waiting
    except WorkerDied as gone:
        print("gone:", gone)
    await asyncio.sleep(5)  # Ray's own line comes within seconds

with connect_to_cluster(sys.argv[1]):
    asyncio.run(main())
"""


def test_ray_prints_no_messages_when_a_worker_dies(nodes: Clusters) -> None:
    process = subprocess.run(
        [sys.executable, "-c", DYING, nodes.address], env=environment(), capture_output=True, text=True, check=True
    )
    assert (process.stdout, process.stderr) == ("gone: ActorDiedError\n", "")
    logs = [path.read_text(errors="replace") for path in nodes.folder.rglob("raylet.out")]
    assert any(
        "A worker died or was killed" in log or "Worker exit type" in log or "disconnected" in log for log in logs
    )


def test_a_cluster_without_authentication_is_refused(
    server: FakeServer, nodes: Clusters, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", nodes.open)
    audit = config(server.url).with_run(engine="ray", ray_address=nodes.open)
    with pytest.raises(UsageError, match="accepts connections without a token"):
        run_audit(audit, storage=url)
    assert server.requests == []
