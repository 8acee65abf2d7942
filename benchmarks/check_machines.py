"""An audit on several hosts: what the driver takes for an answer, and what happens when a worker or the driver dies.

    make machines    # or: python benchmarks/check_machines.py [--only rate,worker,driver] [--workers 1,2,4]

Each host is a network namespace of this machine, with an address and a cable of its own: a provider that answers after
300 ms, a PostgreSQL server that keeps commits (`fsync`), the driver with the head of a Ray cluster, one host for each
worker, and a second place for the driver. This needs root, `ip` (the package iproute2), PostgreSQL (`make system`) and
Ray; without them the check is skipped, and says why. The checks:

- rate: for 1, 2 and 4 workers with 400 requests in flight, answers recorded a second and CPU time for each answer, by
  process, between the first fifth and the end of the answers. Goal: 1,000 a second, and 0.5 ms of the driver's CPU.
- worker: a worker is killed in mid-run. The run goes on; each recorded answer was asked once.
- driver: the driver's host loses its power in mid-run. A driver on another host, with another cluster and the same
  database, goes on; no recorded answer is asked again.

All hosts share this machine's cores, so answers a second are far below those of real hosts; CPU times hold. Results of
each check go to standard error, all figures as JSON to standard output. Exit code 1: a check failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))  # for `tests`; auditor is the installed one

from bench_scale import cpu_seconds
from slow_server import Admission, Connection, build_response
from turns import summarize

from tests.support.postgres_server import PASSWORD, Postgres, PostgresUnavailable, running as running_postgres
from tests.support.ray_nodes import ADDRESS, STARTED, Host, Node, descendants, environment, head, hosts_of_network, node
from tests.support.review_answers import rate_aspects

KEY = "MACHINES_KEY"
DELAY_S, IN_FLIGHT = 0.3, 400
MODELS = ("m0", "m1", "m2", "m3")
N_CELLS = 317
"""Cells of the survey that every audit asks."""
MIN_ANSWERS_PER_S, MAX_DRIVER_MS = 1000.0, 0.5
SERVER_PORT = 8000
POLL_INTERVAL_S, MAX_RUN_S = 0.5, 500.0
DURABLE = ("fsync=on", "synchronous_commit=on", "full_page_writes=on", "shared_buffers=128MB", "autovacuum=on")
COMMITS_QUERY = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
LOCK_HOLDER = "is being run by"
REVIEW = {**rate_aspects(True), "justification": "The steps follow.", "verdict": "VALID", "confidence": 80}


class Provider(Connection):
    """A connection to the provider, which answers questions and reviews, and logs all requests."""

    log: Any = None

    def answer(self, body: bytes) -> bytes:
        """The response to a request; the request goes into the log."""
        self.log.write(body.replace(b"\n", b" ") + b"\n")
        return build_response(json.dumps(REVIEW)) if b'"verdict"' in body else super().answer(body)


async def serve(address: str) -> None:
    """Serve until standard input is closed."""
    loop, admission = asyncio.get_running_loop(), Admission(None, [])
    await loop.create_server(
        lambda: Provider(DELAY_S, 0.0, admission, reasonings=True), address, SERVER_PORT, backlog=1000
    )
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)


@dataclass
class Machines:
    """The hosts, and what runs on those that stay.

    Attributes:
        provider: host of the scripted server.
        drivers: hosts that a driver may run on.
        workers: hosts of workers.
        postgres: the database server.
        server_pid: process id of the scripted server.
        log: requests of the provider, one in a line.
        folder: of temporary files; its path is short, as sockets need it.
    """

    provider: Host
    drivers: list[Host]
    workers: list[Host]
    postgres: Postgres
    server_pid: int
    log: Path
    folder: Path


@contextmanager
def machines(n_workers: int) -> Iterator[Machines]:
    """Start the provider and the database, each on a host of its own.

    Raises:
        PostgresUnavailable: something that the check needs is missing; the message says what.
    """
    if os.getuid() != 0 or shutil.which("ip") is None:
        raise PostgresUnavailable("network namespaces need root, and `ip` of the package iproute2")
    with ExitStack() as stack:
        _, hosts = stack.enter_context(hosts_of_network(4 + n_workers))
        if hosts[0].namespace is None:
            raise PostgresUnavailable("this machine does not allow network namespaces (CAP_NET_ADMIN, CAP_SYS_ADMIN)")
        provider, database, *others = hosts
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aud-m-", ignore_cleanup_errors=True)))
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        postgres = stack.enter_context(
            running_postgres(address=database.address, settings=DURABLE, command=database.command(*as_user))
        )
        log = folder / "requests"
        command = provider.command(sys.executable, __file__, "--serve", provider.address, str(log))
        server = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        stack.callback(server.kill)
        assert server.stdout is not None
        if server.stdout.readline() != b"ready\n":
            raise SystemExit("the scripted server did not start")
        yield Machines(provider, others[:2], others[2:], postgres, server.pid, log, folder)


@dataclass
class Cluster:
    """A Ray cluster.

    Attributes:
        address: of its head.
        head: node on the driver's host, without workers.
        nodes: one on each worker's host.
    """

    address: str
    head: Node
    nodes: list[Node]


@contextmanager
def cluster(hosts: Machines, driver: Host) -> Iterator[Cluster]:
    """Start a cluster whose head is on the driver's host, with a node on each worker's host."""
    changes = {
        KEY: "none",
        "AUDITOR_TRUST": f"{KEY}@http://{hosts.provider.address}",
        # On a busy machine, starts and answers to health checks take long.
        "RAY_raylet_start_wait_time_s": "300",
        "RAY_health_check_timeout_ms": "10000",
    }
    for host in (driver, *hosts.workers):
        host.reconnect()  # the end of an earlier cluster has cut its cable
    with ExitStack() as stack:
        name = f"h{driver.address.rpartition('.')[2]}"
        head_node = stack.enter_context(head(hosts.folder, name, driver, "--num-cpus=0", **changes))
        address = head_node.wait_for_output(ADDRESS)
        nodes = []
        for number, host in enumerate(hosts.workers):  # one after another: together, they would start more slowly
            nodes.append(
                stack.enter_context(node(hosts.folder, f"{name}-{number}", host, f"--address={address}", **changes))
            )
            nodes[-1].wait_for_output(f"({STARTED})")
        yield Cluster(address, head_node, nodes)


@dataclass
class Run:
    """A running `auditor run`.

    Attributes:
        process: the driver.
        log: what it prints.
        database: name of its database.
        n_planned: calls of the whole audit.
    """

    process: subprocess.Popen[str]
    log: Path
    database: str
    n_planned: int


def start_run(
    hosts: Machines, ray: Cluster, driver: Host, database: str, samples: int, *, workers: int, reviews: bool = False
) -> Run:
    """Start the driver of an audit of four models over the whole survey."""
    url = f"http://{hosts.provider.address}:{SERVER_PORT}/v1"
    endpoint = {"api_base": url, "api_key": f"os.environ/{KEY}"}
    concurrency = IN_FLIGHT // len(MODELS) // (2 if reviews else 1)
    content = {
        "name": "machines",
        "survey": {"source": "wvs7-sample", "countries": "all", "topics": "all"},
        "models": [
            {**endpoint, "name": name, "model": f"openai/{name}", "concurrency": concurrency} for name in MODELS
        ],
        "judges": [{**endpoint, "name": "judge", "model": "openai/judge", "concurrency": IN_FLIGHT // 2}] * reviews,
        "embedding": {"model": "none"},
        "probes": {"direct": {"samples": samples}},
        "limits": {"max_cells": None},
        "run": {"engine": "ray", "workers": workers},
    }
    folder = hosts.folder / database
    folder.mkdir(exist_ok=True)
    (folder / "audit.yaml").write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    storage = f"{hosts.postgres.url(database)}?sslmode=disable"
    command = [sys.executable, "-m", "auditor", "run", "audit.yaml", "--storage", storage, "--ray-address", ray.address]
    trusted = {KEY: "none", "AUDITOR_TRUST": f"{KEY}@http://{hosts.provider.address}", "PGPASSWORD": PASSWORD}
    log = folder / f"{driver.address}.log"
    with log.open("a") as output:
        process = subprocess.Popen(
            driver.command(*command),
            cwd=folder,
            env=environment(COLUMNS="200", **trusted),
            stdout=output,
            stderr=output,
            text=True,
        )
    return Run(process, log, database, N_CELLS * samples * len(MODELS) * (2 if reviews else 1))


def read_scalar(hosts: Machines, database: str, query: str) -> Any:
    """The only value of a query."""
    with hosts.postgres.connect(database) as connection:
        return connection.execute(query).fetchone()[0]


def count_answers(hosts: Machines, run: Run) -> int:
    """Answers recorded so far; 0 before the tables are there."""
    if read_scalar(hosts, run.database, "SELECT to_regclass('answer')") is None:
        return 0
    return int(read_scalar(hosts, run.database, "SELECT count(*) FROM answer"))


def wait_for_answers(hosts: Machines, run: Run, n_answers: int) -> int:
    """Wait until so many answers are recorded, or the run has ended; returns their number."""
    deadline = time.monotonic() + MAX_RUN_S
    while (n_recorded := count_answers(hosts, run)) < n_answers and run.process.poll() is None:
        if time.monotonic() > deadline:
            raise SystemExit(f"only {n_recorded} answers after {MAX_RUN_S:.0f} s:\n{run.log.read_text()[-2000:]}")
        time.sleep(POLL_INTERVAL_S)
    return n_recorded


def finish(run: Run) -> None:
    """Wait for the end of a run.

    Raises:
        SystemExit: it failed.
    """
    run.process.wait(MAX_RUN_S)
    if run.process.returncode:
        raise SystemExit(f"auditor run failed:\n{run.log.read_text()[-3000:]}")


def read_cpu_s(hosts: Machines, ray: Cluster, run: Run) -> dict[str, float]:
    """CPU seconds so far by role: driver, workers, the rest of Ray, database and provider."""
    seconds = dict.fromkeys(("worker", "ray"), 0.0)
    for pid in {pid for ray_node in (ray.head, *ray.nodes) for pid in descendants(ray_node.process.pid)}:
        seconds["worker" if "WorkerActor" in read_command(pid) else "ray"] += cpu_seconds(pid)
    database = sum(cpu_seconds(pid, and_children=True) for pid in descendants(hosts.postgres.process.pid))
    return seconds | {
        "driver": cpu_seconds(run.process.pid),
        "database": database,
        "provider": cpu_seconds(hosts.server_pid),
    }


def read_command(pid: int) -> str:
    """Command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def measure_rate(hosts: Machines, ray: Cluster, workers: int, samples: int, *, reviews: bool) -> dict[str, Any]:
    """Run an audit to its end; return its answers a second and CPU times for each answer."""
    load = os.getloadavg()[0]
    run = start_run(hosts, ray, hosts.drivers[0], hosts.postgres.database(), samples, workers=workers, reviews=reviews)
    points = []
    for share in (0.2, 0.95):
        n_answers = wait_for_answers(hosts, run, int(share * run.n_planned))
        n_commits = read_scalar(hosts, run.database, COMMITS_QUERY)
        points.append((n_answers, time.perf_counter(), n_commits, read_cpu_s(hosts, ray, run)))
    finish(run)
    (n_before, start_s, commits_before, cpu_before_s), (n_after, end_s, commits_after, cpu_after_s) = points
    n_measured = n_after - n_before
    size = read_scalar(hosts, run.database, "SELECT pg_database_size(current_database())")
    empty_size = read_scalar(hosts, "template1", "SELECT pg_database_size(current_database())")
    return {
        "workers": workers,
        "answers": n_after,
        "answers_per_s": round(n_measured / (end_s - start_s), 1),
        "load_before": round(load, 1),
        "answers_per_transaction": round(n_measured / (commits_after - commits_before), 1),
        "bytes_per_answer": round((size - empty_size) / n_after),
        "cpu_ms": {
            role: round(1000 * (cpu_after_s[role] - cpu_before_s[role]) / n_measured, 3) for role in cpu_after_s
        },
    }


def check_rate(hosts: Machines, arguments: argparse.Namespace) -> tuple[bool, str, dict[str, Any]]:
    """Answers a second and CPU times of all numbers of workers."""
    with cluster(hosts, hosts.drivers[0]) as ray:
        turns = [
            [
                measure_rate(hosts, ray, workers, arguments.samples, reviews=arguments.reviews)
                for workers in arguments.workers
            ]
            for _ in range(arguments.turns)
        ]
    figures: dict[str, Any] = {"turns": turns}
    rates = [max(row["answers_per_s"] for row in rows) for rows in turns]
    figures |= {"answers_per_s": max(rates), "median_answers_per_s": statistics.median(rates)}
    for role in ("driver", "worker"):
        figures |= summarize(f"{role}_cpu_ms", [max(row["cpu_ms"][role] for row in rows) for rows in turns])
    text = "; ".join(
        f"{row['workers']} workers: {row['answers_per_s']:.0f} a second, CPU of the driver "
        f"{row['cpu_ms']['driver']:.2f} ms, of workers {row['cpu_ms']['worker']:.2f} ms"
        for rows in turns
        for row in rows
    )
    is_passed = figures["answers_per_s"] >= MIN_ANSWERS_PER_S and figures["driver_cpu_ms"] <= MAX_DRIVER_MS
    return is_passed, text, figures


def count_repeats(hosts: Machines, run: Run) -> tuple[int, int]:
    """Requests for answers that were recorded before, and further requests of calls that were asked twice."""
    repeats = (
        "SELECT count(*) FROM attempt t JOIN answer a ON a.key = t.key WHERE t.started_at > a.created_at",
        "SELECT count(*) - count(DISTINCT key) FROM attempt",
    )
    recorded, lost = (int(read_scalar(hosts, run.database, query)) for query in repeats)
    return recorded, lost


def describe_end(hosts: Machines, run: Run, n_asked_again: int) -> tuple[bool, str, dict[str, Any]]:
    """Whether a run that lost a process has all answers, none of which was asked again after it was recorded."""
    n_recorded_repeats, n_repeats = count_repeats(hosts, run)
    n_answers = count_answers(hosts, run)
    figures = {"answers": n_answers, "asked_again_after_recording": n_asked_again + n_recorded_repeats}
    text = f"{n_answers} of {run.n_planned} answers, {n_asked_again + n_recorded_repeats} recorded ones asked again"
    is_complete = n_answers == run.n_planned and n_asked_again + n_recorded_repeats == 0
    return is_complete, f"{text}, {n_repeats} requests repeated", figures | {"repeats": n_repeats}


def check_worker(hosts: Machines, arguments: argparse.Namespace) -> tuple[bool, str, dict[str, Any]]:
    """A worker is killed in mid-run."""
    with cluster(hosts, hosts.drivers[0]) as ray:
        run = start_run(hosts, ray, hosts.drivers[0], hosts.postgres.database(), 2, workers=2)
        wait_for_answers(hosts, run, run.n_planned // 4)
        recorded = load_recorded(hosts, run)
        offset = hosts.log.stat().st_size
        pids = [pid for ray_node in ray.nodes for pid in descendants(ray_node.process.pid)]
        os.kill(next(pid for pid in pids if "WorkerActor" in read_command(pid)), signal.SIGKILL)
        finish(run)
    return describe_end(hosts, run, count_asked(hosts, recorded, offset))


def load_recorded(hosts: Machines, run: Run) -> set[tuple[str, int, str]]:
    """What identifies each call whose answer is recorded: model, seed and question."""
    with hosts.postgres.connect(run.database) as connection:
        rows = connection.execute("SELECT model, request FROM answer").fetchall()
    requests = [(model.partition("/")[2], json.loads(request)) for model, request in rows]
    return {(model, request["params"]["seed"], request["messages"][-1]["content"]) for model, request in requests}


def count_asked(hosts: Machines, recorded: set[tuple[str, int, str]], offset: int) -> int:
    """Requests for recorded answers in the provider's log, from a position in it."""
    bodies = map(json.loads, hosts.log.read_bytes()[offset:].splitlines())
    return sum((body["model"], body["seed"], body["messages"][-1]["content"]) in recorded for body in bodies)


def check_driver(hosts: Machines, arguments: argparse.Namespace) -> tuple[bool, str, dict[str, Any]]:
    """The driver's host loses its power; another one goes on."""
    with cluster(hosts, hosts.drivers[0]) as ray:
        run = start_run(hosts, ray, hosts.drivers[0], hosts.postgres.database(), 2, workers=2)
        wait_for_answers(hosts, run, run.n_planned // 4)
        hosts.drivers[0].cut_cable()
        run.process.kill()
        run.process.wait()
        ray.head.kill()
    n_before, recorded, offset = count_answers(hosts, run), load_recorded(hosts, run), hosts.log.stat().st_size
    died_at = time.monotonic()
    with cluster(hosts, hosts.drivers[1]) as ray:
        n_refusals = 0
        while True:
            run = start_run(hosts, ray, hosts.drivers[1], run.database, 2, workers=2)
            run.process.wait(MAX_RUN_S)
            if not (run.process.returncode and LOCK_HOLDER in run.log.read_text()):
                break
            if time.monotonic() - died_at > MAX_RUN_S:
                raise SystemExit("the dead driver's lock is never released")
            n_refusals += 1
            run.log.unlink()
        finish(run)
    is_passed, text, figures = describe_end(hosts, run, count_asked(hosts, recorded, offset))
    text = f"{n_before} answers before; {text}; {n_refusals} starts refused while the dead driver held its lock"
    return is_passed, text, figures | {"answers_before": n_before, "refused_starts": n_refusals}


Check = Callable[[Machines, argparse.Namespace], tuple[bool, str, dict[str, Any]]]
"""Returns whether a check passed, its figures as a sentence, and as JSON."""
CHECKS: dict[str, Check] = {"rate": check_rate, "worker": check_worker, "driver": check_driver}


def main() -> None:
    """Check, and print."""
    if sys.argv[1:2] == ["--serve"]:
        with Path(sys.argv[3]).open("ab", buffering=0) as Provider.log:
            asyncio.run(serve(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CHECKS), help="some of " + ", ".join(CHECKS))
    parser.add_argument("--workers", default="1,2,4", help="numbers of workers whose rate is measured")
    parser.add_argument("--turns", type=int, default=1, help="how often each rate is measured")
    parser.add_argument("--samples", type=int, default=8, help="of each of 317 cells by each of four models")
    parser.add_argument("--reviews", action="store_true", help="a judge reviews one answer of each cell")
    arguments = parser.parse_args()
    arguments.workers = [int(number) for number in arguments.workers.split(",")]
    figures: dict[str, Any] = {}
    is_failed = False
    try:
        with machines(max(2, *arguments.workers) if "rate" in arguments.only else 2) as hosts:
            for name in arguments.only.split(","):
                is_passed, text, figures[name] = CHECKS[name](hosts, arguments)
                is_failed |= not is_passed
                print(f"{name}: {'pass' if is_passed else 'FAIL'}: {text}", file=sys.stderr, flush=True)
    except PostgresUnavailable as error:
        print(f"Skipped: {error}", file=sys.stderr)
        figures["skipped"] = str(error)
    # The rate alone is a benchmark of `suite.py`, which expects its figures and no failure.
    is_benchmark = arguments.only == "rate"
    print(json.dumps(figures.get("rate", figures) if is_benchmark else figures, indent=1))
    raise SystemExit(int(is_failed and not is_benchmark))


if __name__ == "__main__":
    main()
