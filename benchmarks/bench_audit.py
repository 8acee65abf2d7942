"""An audit against a scripted server that answers at once: calls a second, CPU a call, peak memory.

Beside it, in the same run and against the same server, a bare litellm loop that asks the same questions with the same
concurrency and keeps nothing. The machine's speed cancels out in the ratios. Prints JSON.

Usage: python benchmarks/bench_audit.py [--samples 10]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

KEY = "BENCH_KEY"
CONCURRENCY = 20
MODELS = 3


@contextmanager
def scripted_server() -> Iterator[str]:
    """The tests' scripted server, in a process of its own so that its CPU time is not counted."""
    command = [sys.executable, str(ROOT / "tests" / "fake_server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def measured(job: Any) -> tuple[float, float]:
    """Wall and CPU seconds of a job."""
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - wall, time.process_time() - cpu


def audit_config(url: str, samples: int) -> Any:
    """Three models over 14 countries x 3 topics; every trace goes to one judge."""
    from auditor.config import AuditConfig

    def model(name: str) -> dict[str, Any]:
        reached = {"api_base": url, "api_key": f"os.environ/{KEY}", "concurrency": CONCURRENCY}
        return {"name": name, "model": f"openai/{name}", **reached}

    return AuditConfig.model_validate(
        {
            "name": "bench",
            "survey": {"source": "wvs7-sample", "topics": ["divorce", "abortion", "death penalty"]},
            "models": [model(f"m{i}") for i in range(MODELS)],
            "judges": [model("judge")],
            "embedding": {"model": "none"},
            "probes": {"direct": {"samples": samples}},
        }
    )


async def bare_loop(requests: list[dict[str, Any]]) -> None:
    """The same questions through litellm alone."""
    from auditor.models import door

    queue = iter(requests)

    async def work() -> None:
        for request in queue:
            await door.litellm().acompletion(**request)

    await asyncio.gather(*(work() for _ in range(CONCURRENCY * MODELS)))
    await door.close_clients()


def same_requests(storage: str, config: Any) -> list[dict[str, Any]]:
    """What the audit sent, as litellm requests."""
    from auditor.models.endpoint import resolve
    from auditor.models.structured import SCHEMAS, response_format
    from auditor.storage.database import open_database

    servers = {m.model: resolve(m) for m in [*config.models, *config.judge_models]}
    with open_database(storage) as db, db.read() as connection:
        rows = connection.exec_driver_sql("SELECT model, request FROM answer").all()
    requests = []
    for model, text in rows:
        asked = json.loads(text)
        structure, words = asked["schema"]
        requests.append(
            {
                "model": model,
                "messages": asked["messages"],
                **asked["params"],
                "response_format": response_format(SCHEMAS[structure], words),
                "api_base": servers[model].server,
                "api_key": servers[model].key,
                "num_retries": 0,
                "max_retries": 0,
                "timeout": 60,
            }
        )
    return requests


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10)
    samples = parser.parse_args().samples
    os.environ[KEY] = "none"
    os.environ["AUDITOR_TRUST"] = f"{KEY}@127.0.0.1"
    from auditor.models import door
    from auditor.run import run_audit

    with scripted_server() as url, tempfile.TemporaryDirectory() as folder:
        storage, config = f"sqlite:///{folder}/bench.db", audit_config(url, samples)
        door.litellm()
        run_audit(audit_config(url, 1), storage=f"sqlite:///{folder}/warm.db")
        wall, cpu = measured(lambda: run_audit(config, storage=storage))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        requests = same_requests(storage, config)
        bare_wall, bare_cpu = measured(lambda: asyncio.run(bare_loop(requests)))
        again, _ = measured(lambda: run_audit(config, storage=storage))
    n = len(requests)
    result = {
        "calls": n,
        "calls_per_s": round(n / wall, 1),
        "cpu_ms_per_call": round(1000 * cpu / n, 2),
        "bare_litellm": {"calls_per_s": round(n / bare_wall, 1), "cpu_ms_per_call": round(1000 * bare_cpu / n, 2)},
        "cpu_ratio_to_bare_litellm": round(cpu / bare_cpu, 2),
        "wall_ratio_to_bare_litellm": round(wall / bare_wall, 2),
        "second_run_s": round(again, 2),
        "peak_memory_mb": round(peak),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
