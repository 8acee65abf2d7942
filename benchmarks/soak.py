"""Many calls at high concurrency against a scripted server: does memory grow, and does the writer keep up?

Prints JSON and fails when memory grows by 1 MB or more per 10,000 calls (the slope of a line through samples of the
resident size, helpers' included, the first fifth left out as warming up), or when of the jobs handed to the writer 1 in
100 is durable only after 100 ms or more. Beside it, what the disk alone takes for a commit of 200 rows, before and
after, and how late the event loop itself came to what was due, which is no part of the writer's time. Run it on a
machine with nothing else to do: where processors are shared, whoever waits for one is late, too.

Usage: python benchmarks/soak.py [--calls 100000] [--concurrency 200]
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
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_audit import KEY, run_scripted_server

from auditor import bootstrap
from auditor.agents.call_runner import run_calls
from auditor.config import AuditConfig
from auditor.domain import Call, Message, Purpose
from auditor.run import fingerprint, load_planned_survey
from auditor.run.model_access import run_with_models
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.engine import PRAGMAS

T = TypeVar("T")
CHUNK = 2000
MAX_SLOPE_MB, MAX_LAG_S = 1.0, 0.1


def resident_mb() -> float:
    """Resident memory in MB of this process and its helper processes, without the scripted server."""
    helpers = [pid for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split() if _is_helper(pid)]
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in ["self", *helpers])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _is_helper(pid: str) -> bool:
    return "auditor.models.helper_process" in Path(f"/proc/{pid}/cmdline").read_text()


def make_config(url: str, concurrency: int, names: Sequence[str], rpm: int | None) -> Any:
    """Configuration of an audit of scripted models, each with this concurrency and limit of requests a minute."""

    model = {"api_base": url, "api_key": f"os.environ/{KEY}", "concurrency": concurrency, "rpm": rpm}
    models = [{"name": name, "model": f"openai/{name}", **model} for name in names]
    survey = {"source": "wvs7-sample", "topics": ["divorce"]}
    return AuditConfig.model_validate({"name": "soak", "survey": survey, "models": models, "judges": []})


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


async def run_soak(context: Any, calls: int) -> dict[str, Any]:
    """Run the calls in chunks while measuring memory and delays; return the figures."""

    monitor = LagMonitor()
    memory: list[tuple[int, float]] = []
    outcomes = Counter[str]()
    monitor_task = asyncio.create_task(monitor.look(context.db.writer))
    began = time.perf_counter()
    for start in range(0, calls, CHUNK):
        chunk = [
            Call("m", "openai/m", (Message("user", f"question {i}"),), Purpose.DIRECT, sample=i, params={"seed": i})
            for i in range(start, min(start + CHUNK, calls))
        ]
        outcomes.update(answer.outcome.value for answer in (await run_calls(context, "soak", chunk)).values())
        memory.append((start + len(chunk), resident_mb()))
    seconds = time.perf_counter() - began
    monitor_task.cancel()
    after_warm_up = [sample for sample in memory if sample[0] > calls / 5] or memory
    slope = (
        float(
            np.polyfit(
                [n_calls / 10_000 for n_calls, _ in after_warm_up], [memory_mb for _, memory_mb in after_warm_up], 1
            )[0]
        )
        if len(after_warm_up) > 2
        else 0.0
    )
    return {
        "calls": calls,
        "outcomes": dict(outcomes),
        "calls_per_s": round(calls / seconds, 1),
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


def run_in_audit(
    url: str,
    folder: str,
    concurrency: int,
    work: Callable[[Any], Awaitable[T]],
    names: Sequence[str] = ("m",),
    rpm: int | None = None,
) -> T:
    """Set up an audit as `run_audit` does, and run the work with its context."""

    config = make_config(url, concurrency, names, rpm)
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
    arguments = parser.parse_args()
    prepare_environment()
    with run_scripted_server() as url, tempfile.TemporaryDirectory() as folder:
        commit_seconds = measure_bare_commits(folder)
        figures = run_in_audit(url, folder, arguments.concurrency, lambda context: run_soak(context, arguments.calls))
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
