"""Many calls at high concurrency against a scripted server: does memory grow, and does the writer keep up?

Prints JSON and fails when memory grows by 1 MB or more per 10,000 calls (the slope of a line through samples of the
resident size, the first fifth left out as warming up), or when 1 in 100 waits for the writer takes 100 ms or more.

Usage: python benchmarks/soak.py [--calls 100000] [--concurrency 200]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
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
    """Memory of this process that is in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


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


async def soak(context: Any, calls: int) -> dict[str, Any]:
    """Ask, and watch."""
    from auditor.agents.asking import ask
    from auditor.domain import Call, Message, Purpose

    lags: list[float] = []
    memory: list[tuple[int, float]] = []
    outcomes = Counter[str]()

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.wrap_future(context.db.writer.submit(lambda connection: None))
            lags.append(time.perf_counter() - began)
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    began = time.perf_counter()
    for start in range(0, calls, CHUNK):
        chunk = [
            Call("m", "openai/m", (Message("user", f"question {i}"),), Purpose.DIRECT, sample=i, params={"seed": i})
            for i in range(start, min(start + CHUNK, calls))
        ]
        outcomes.update(a.outcome.value for a in (await ask(context, "soak", chunk)).values())
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
        "writer_lag_ms": {q: round(1000 * float(np.quantile(lags, p)), 1) for q, p in (("median", 0.5), ("p99", 0.99))},
        "holds": slope < MAX_SLOPE_MB and float(np.quantile(lags, 0.99)) < MAX_LAG_S and set(outcomes) == {"ok"},
    }


async def with_context(url: str, folder: str, concurrency: int, work: Callable[[Any], Awaitable[T]]) -> T:
    """Set up what an audit has, and do the work in it."""
    from auditor.agents.context import Context
    from auditor.agents.recording import Book, Recording
    from auditor.models.gateway import Gateway
    from auditor.run import fingerprint, planned_cells, planned_survey
    from auditor.storage import audits
    from auditor.storage.database import open_database

    config = config_of(url, concurrency)
    survey = planned_survey(config)
    with open_database(f"sqlite:///{folder}/soak.db") as db:
        made = {"config": config.model_dump_json(), "config_hash": fingerprint(config), "survey": survey}
        audit = audits.save(db, name="soak", environment={}, **made)
        gateway = Gateway(config.models, config.limits)
        try:
            asker = Recording(gateway, Book(db, audit.id, "soak"))
            context = Context(config, survey, audit.id, planned_cells(survey), db, gateway=asker, encoder=None)
            return await work(context)
        finally:
            await gateway.close()


def main() -> None:
    """Soak, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--concurrency", type=int, default=200)
    given = parser.parse_args()
    os.environ[KEY] = "none"
    from auditor import bootstrap

    bootstrap.prepare()
    with scripted_server() as url, tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(with_context(url, folder, given.concurrency, lambda context: soak(context, given.calls)))
    print(json.dumps(found, indent=1))
    if not found["holds"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
