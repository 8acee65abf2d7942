"""Many calls at high concurrency against a scripted server: does memory grow, and does the writer keep up?

Prints JSON and fails when memory grows by 1 MB or more per 10,000 calls (the slope of a line through samples of the
resident size, workers' included, the first fifth left out as warming up), or when of the jobs handed to the writer 1 in
100 is durable only after 100 ms or more. Beside it, what the disk alone takes for a commit of 200 rows, before and
after, and how late the event loop itself came to what was due, which is no part of the writer's time. Run it on a
machine with nothing else to do: where processors are shared, whoever waits for one is late, too.

`--recording-only` copies the first reply instead of sending requests: how fast one process plans, permits and records.

Usage: python benchmarks/soak.py [--calls 100000] [--concurrency 200] [--run engine=ray] [--run workers=2]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))  # for `tests`; auditor is the installed one

from bench_audit import KEY, run_scripted_server

from auditor import bootstrap
from auditor.agents.call_runner import run_calls
from auditor.config import AuditConfig
from auditor.domain import Call, Message, Purpose
from auditor.models.dispatch import REPLIES_ADAPTER, LocalDispatcher, WorkerReply
from auditor.models.provider_request import ProviderReply
from auditor.run import fingerprint, load_planned_survey
from auditor.run.model_access import run_with_models
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.engine import PRAGMAS
from tests.support.ray_nodes import descendants

T = TypeVar("T")
CHUNK = 2000
MAX_SLOPE_MB, MAX_LAG_S = 1.0, 0.1


def resident_mb() -> float:
    """Resident memory in MB of this process and all processes below it, without the scripted server."""
    pages = 0
    for pid in descendants(os.getpid()):
        with suppress(OSError):  # the process has ended meanwhile
            if "fake_server" not in Path(f"/proc/{pid}/cmdline").read_text():
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds_by_process() -> dict[str, float]:
    """CPU seconds of all processes below this one, by what they do."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for pid in descendants(os.getpid()):
        with suppress(OSError):  # the process has ended meanwhile
            command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            roles = {"fake_server": "server", "WorkerActor": "worker"}
            role = next((role for word, role in roles.items() if word in command), "other")
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            seconds["main" if pid == os.getpid() else role] += sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return dict(seconds)


def make_config(url: str, concurrency: int, names: Sequence[str], rpm: int | None, run: Mapping[str, str]) -> Any:
    """Configuration of an audit of scripted models, each with this concurrency and limit of requests a minute.

    Args:
        run: settings of `[run]`.
    """

    model = {"api_base": url, "api_key": f"os.environ/{KEY}", "concurrency": concurrency, "rpm": rpm}
    models = [{"name": name, "model": f"openai/{name}", **model} for name in names]
    survey = {"source": "wvs7-sample", "topics": ["divorce"]}
    return AuditConfig.model_validate({"name": "soak", "survey": survey, "models": models, "judges": [], "run": run})


def measure_bare_commits(folder: str, n: int = 200) -> list[float]:
    """Seconds of each of n durable commits of 200 small rows by SQLite alone, which measures the disk."""

    seconds = []
    with closing(sqlite3.connect(f"{folder}/bare.db", isolation_level=None)) as connection:
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE IF NOT EXISTS bare (text TEXT)")
        for _ in range(n):
            start = time.perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO bare VALUES (?)", [("x" * 500,)] * 200)
            connection.execute("COMMIT")
            seconds.append(time.perf_counter() - start)
    return seconds


@dataclass
class LagMonitor:
    """Measures the delays of the writer and of the event loop every 100 ms while the calls run.

    Attributes:
        writer: seconds from handing a job to the writer until it is durable.
        loop: seconds by which the event loop woke up late, from its own load and not the writer's.
    """

    writer: list[float] = field(default_factory=list)
    loop: list[float] = field(default_factory=list)

    async def look(self, writer: Any) -> None:
        """Measure until the task is cancelled."""
        while True:
            start = time.perf_counter()
            future = writer.submit(lambda connection: None)
            future.add_done_callback(lambda _, start=start: self.writer.append(time.perf_counter() - start))
            await asyncio.sleep(0.1)
            self.loop.append(time.perf_counter() - start - 0.1)


def fit_memory_slope(memory: list[tuple[int, float]]) -> float:
    """MB by which the memory grows in 10,000 calls, from (calls, MB) without the first fifth; 0 of too few samples."""
    after_warm_up = [sample for sample in memory if sample[0] > memory[-1][0] / 5]
    if len(after_warm_up) < 3:
        return 0.0
    n_calls, memory_mb = zip(*after_warm_up, strict=True)
    return float(np.polyfit(np.array(n_calls) / 10_000, memory_mb, 1)[0])


def make_calls(numbers: Iterable[int]) -> list[Call]:
    """A call for each number, none like another."""
    return [
        Call("m", "openai/m", (Message("user", f"question {i}"),), Purpose.DIRECT, sample=i, params={"seed": i})
        for i in numbers
    ]


async def run_soak(context: Any, calls: int, requested_at: float) -> dict[str, Any]:
    """Run the calls in chunks while measuring memory and delays; return the figures."""

    monitor = LagMonitor()
    memory: list[tuple[int, float]] = []
    outcomes = Counter[str]()
    monitor_task = asyncio.create_task(monitor.look(context.db.writer))
    await run_calls(context, "soak", [Call("m", "openai/m", (Message("user", "first"),), Purpose.DIRECT)])
    first_answer_s = time.perf_counter() - requested_at
    ends = [(0, time.perf_counter(), cpu_seconds_by_process())]
    for start in range(0, calls, CHUNK):
        chunk = make_calls(range(start, min(start + CHUNK, calls)))
        outcomes.update(answer.outcome.value for answer in (await run_calls(context, "soak", chunk)).values())
        memory.append((start + len(chunk), resident_mb()))
        ends.append((start + len(chunk), time.perf_counter(), cpu_seconds_by_process()))
    monitor_task.cancel()
    (middle_calls, middle_s, middle_cpu_s), (_, end_s, end_cpu_s) = ends[(len(ends) - 1) // 2], ends[-1]
    n_later, slope = calls - middle_calls, fit_memory_slope(memory)
    return {
        "calls": calls,
        "outcomes": dict(outcomes),
        "first_answer_s": round(first_answer_s, 1),
        "calls_per_s": round(calls / (ends[-1][1] - ends[0][1]), 1),
        "calls_per_s_second_half": round(n_later / (end_s - middle_s), 1),
        "cpu_ms_per_call_second_half": {
            role: round(1000 * (seconds - middle_cpu_s.get(role, 0.0)) / n_later, 2)
            for role, seconds in end_cpu_s.items()
        },
        "memory_mb": [round(memory[0][1]), round(memory[-1][1])],
        "mb_per_10000_calls": round(slope, 3),
        "writer_lag_ms": summarize_ms(monitor.writer),
        "loop_delay_ms": summarize_ms(monitor.loop),
        "holds": slope < MAX_SLOPE_MB
        and float(np.quantile(monitor.writer, 0.99)) < MAX_LAG_S
        and set(outcomes) == {"ok"},
    }


def summarize_ms(seconds: list[float]) -> dict[str, float]:
    """Median and 99th percentile in milliseconds."""
    return {name: round(1000 * float(np.quantile(seconds, q)), 1) for name, q in (("median", 0.5), ("p99", 0.99))}


def answer_by_copies() -> None:
    """Let all dispatchers of this process send one request only, and answer the later ones with copies of its reply."""
    send, replies = LocalDispatcher.send, list[ProviderReply]()

    async def copy_reply(self: LocalDispatcher, call: Call, attempt_number: int, *args: Any) -> ProviderReply:
        if not replies:
            replies.append(await send(self, call, attempt_number, *args))
        reply_json = REPLIES_ADAPTER.dump_json([WorkerReply(1, replies[0])])
        reply = REPLIES_ADAPTER.validate_json(reply_json)[0].reply  # as if it came from a worker
        await asyncio.sleep(0)
        return replace(reply, answer=replace(reply.answer, key=call.key))

    LocalDispatcher.send = copy_reply  # type: ignore[method-assign, assignment]


def run_in_audit(
    url: str,
    folder: str,
    concurrency: int,
    work: Callable[[Any], Awaitable[T]],
    names: Sequence[str] = ("m",),
    rpm: int | None = None,
    *,
    run: Mapping[str, str] | None = None,
) -> T:
    """Set up an audit as `run_audit` does, and run the work with its context."""

    config = make_config(url, concurrency, names, rpm, run or {})
    survey = load_planned_survey(config)
    with open_database(f"sqlite:///{folder}/soak.db") as db:
        audit_columns = {"config": config.model_dump_json(), "config_hash": fingerprint(config), "survey": survey}
        audit = audits.save_audit(db, name="soak", environment={}, **audit_columns)
        return run_with_models(work, config, survey, audit, db)


def main() -> None:
    """Soak, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--run", action="append", default=[], metavar="KEY=VALUE", help="a setting of [run]")
    parser.add_argument("--recording-only", action="store_true", help="send one request, and copy its reply")
    arguments = parser.parse_args()
    if arguments.recording_only:
        answer_by_copies()
    run_settings = dict(setting.split("=", 1) for setting in arguments.run)
    prepare_environment()
    with run_scripted_server() as url, tempfile.TemporaryDirectory() as folder:
        commit_seconds = measure_bare_commits(folder)
        requested_at = time.perf_counter()
        figures = run_in_audit(
            url,
            folder,
            arguments.concurrency,
            lambda context: run_soak(context, arguments.calls, requested_at),
            run=run_settings,
        )
        commit_seconds += measure_bare_commits(folder)
    lag_ms, commit_ms = figures["writer_lag_ms"], summarize_ms(commit_seconds)
    lag_to_commit = {name: round(lag_ms[name] / commit_ms[name], 1) for name in commit_ms}
    print(json.dumps(figures | {"bare_commit_ms": commit_ms, "writer_lag_to_bare_commit": lag_to_commit}, indent=1))
    if not figures["holds"]:
        sys.exit(1)


def prepare_environment() -> None:
    """Set a key and allow it for the scripted server; prepare the libraries' environment as a run does."""

    os.environ |= {KEY: "none", "AUDITOR_TRUST": f"{KEY}@127.0.0.1"}
    bootstrap.prepare_environment()


if __name__ == "__main__":
    main()
