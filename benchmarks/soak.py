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
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench_audit import KEY, scripted_server

T = TypeVar("T")
CHUNK = 2000
MAX_SLOPE_MB, MAX_LAG_S = 1.0, 0.1


def resident_mb() -> float:
    """Memory of this process and its helpers that is in use now; the scripted server is no helper."""
    helpers = [pid for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split() if _helps(pid)]
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in ["self", *helpers])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _helps(pid: str) -> bool:
    return "auditor.models.helper_process" in Path(f"/proc/{pid}/cmdline").read_text()


def config_of(url: str, concurrency: int) -> Any:
    """One scripted model."""
    from auditor.config import AuditConfig

    model = {
        "name": "m",
        "model": "openai/m",
        "api_base": url,
        "api_key": f"os.environ/{KEY}",
        "concurrency": concurrency,
    }
    survey = {"source": "wvs7-sample", "topics": ["divorce"]}
    return AuditConfig.model_validate({"name": "soak", "survey": survey, "models": [model], "judges": []})


def bare_commits(folder: str, n: int = 200) -> list[float]:
    """Seconds of each of n durable commits of 200 small rows by SQLite alone: what the disk costs here."""
    from auditor.storage.engine import PRAGMAS

    times = []
    with closing(sqlite3.connect(f"{folder}/bare.db", isolation_level=None)) as connection:
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE IF NOT EXISTS bare (text TEXT)")
        for _ in range(n):
            began = time.perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO bare VALUES (?)", [("x" * 500,)] * 200)
            connection.execute("COMMIT")
            times.append(time.perf_counter() - began)
    return times


@dataclass
class Watch:
    """What is seen while the calls go out, every 100 ms.

    Attributes:
        writer: seconds from handing a job to the writer until it is durable.
        loop: seconds that the event loop came too late to what was due: its own load, and no part of the writer's.
    """

    writer: list[float] = field(default_factory=list)
    loop: list[float] = field(default_factory=list)

    async def look(self, writer: Any) -> None:
        """Until it is cancelled."""
        while True:
            began = time.perf_counter()
            durable = writer.submit(lambda connection: None)
            durable.add_done_callback(lambda _, began=began: self.writer.append(time.perf_counter() - began))
            await asyncio.sleep(0.1)
            self.loop.append(time.perf_counter() - began - 0.1)


async def soak(context: Any, calls: int) -> dict[str, Any]:
    """Ask, and watch."""
    from auditor.agents.call_runner import run_calls
    from auditor.domain import Call, Message, Purpose

    seen = Watch()
    memory: list[tuple[int, float]] = []
    outcomes = Counter[str]()
    watching = asyncio.create_task(seen.look(context.db.writer))
    began = time.perf_counter()
    for start in range(0, calls, CHUNK):
        chunk = [
            Call("m", "openai/m", (Message("user", f"question {i}"),), Purpose.DIRECT, sample=i, params={"seed": i})
            for i in range(start, min(start + CHUNK, calls))
        ]
        outcomes.update(a.outcome.value for a in (await run_calls(context, "soak", chunk)).values())
        memory.append((start + len(chunk), resident_mb()))
    seconds = time.perf_counter() - began
    watching.cancel()
    late = [m for m in memory if m[0] > calls / 5] or memory
    slope = float(np.polyfit([n / 10_000 for n, _ in late], [mb for _, mb in late], 1)[0]) if len(late) > 2 else 0.0
    return {
        "calls": calls,
        "outcomes": dict(outcomes),
        "calls_per_s": round(calls / seconds, 1),
        "memory_mb": [round(memory[0][1]), round(memory[-1][1])],
        "mb_per_10000_calls": round(slope, 3),
        "writer_lag_ms": milliseconds(seen.writer),
        "loop_delay_ms": milliseconds(seen.loop),
        "holds": slope < MAX_SLOPE_MB and float(np.quantile(seen.writer, 0.99)) < MAX_LAG_S and set(outcomes) == {"ok"},
    }


def milliseconds(seconds: list[float]) -> dict[str, float]:
    """Median and 99th percentile."""
    return {name: round(1000 * float(np.quantile(seconds, q)), 1) for name, q in (("median", 0.5), ("p99", 0.99))}


def in_audit(url: str, folder: str, concurrency: int, work: Callable[[Any], Awaitable[T]]) -> T:
    """Set up an audit as a run does, and do the work in it."""
    from auditor.run import fingerprint, load_planned_survey
    from auditor.run.model_access import run_with_models
    from auditor.storage import audits
    from auditor.storage.database import open_database

    config = config_of(url, concurrency)
    survey = load_planned_survey(config)
    with open_database(f"sqlite:///{folder}/soak.db") as db:
        made = {"config": config.model_dump_json(), "config_hash": fingerprint(config), "survey": survey}
        audit = audits.save_audit(db, name="soak", environment={}, **made)
        return run_with_models(work, config, survey, audit, db)


def main() -> None:
    """Soak, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--concurrency", type=int, default=200)
    given = parser.parse_args()
    prepare()
    with scripted_server() as url, tempfile.TemporaryDirectory() as folder:
        disk = bare_commits(folder)
        found = in_audit(url, folder, given.concurrency, lambda context: soak(context, given.calls))
        disk += bare_commits(folder)
    lag, bare = found["writer_lag_ms"], milliseconds(disk)
    ratio = {name: round(lag[name] / bare[name], 1) for name in bare}
    print(json.dumps(found | {"bare_commit_ms": bare, "writer_lag_to_bare_commit": ratio}, indent=1))
    if not found["holds"]:
        sys.exit(1)


def prepare() -> None:
    """A key that may go to the scripted server, and libraries as a run has them."""
    from auditor import bootstrap

    os.environ |= {KEY: "none", "AUDITOR_TRUST": f"{KEY}@127.0.0.1"}
    bootstrap.prepare_environment()


if __name__ == "__main__":
    main()
