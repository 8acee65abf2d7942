"""Embedding while models answer: an audit of 2,000 reasonings with and without embeddings, answers of 300 ms.

    python benchmarks/bench_overlap.py [--calls 2000] [--delay 0.3] [--concurrency 20] [--turns 7]

Each audit runs in a process of its own; the two take turns. Prints JSON: wall and CPU seconds of each turn, the ratios
of the minima, and the smallest 99th percentile of the event loop's lag with embeddings.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

LAG_INTERVAL_S = 0.01
N_CELLS, N_SAMPLES = 40, 50
ENCODERS = {"without": "none", "with": "all-MiniLM-L6-v2"}


def run_one_audit(url: str, encoder: str, n_calls: int, concurrency: int) -> None:
    """Run one audit in this process, and print its time and the lag of its event loop."""
    from auditor.agents import nodes  # imported before the clock starts, as is all that both audits load
    from auditor.config import AuditConfig
    from auditor.models import litellm_client
    from auditor.run import run_audit

    lags: list[float] = []

    async def measure_lag() -> None:
        """Record by how much the event loop is late."""
        while True:
            start = time.perf_counter()
            await asyncio.sleep(LAG_INTERVAL_S)
            lags.append(time.perf_counter() - start - LAG_INTERVAL_S)

    plan, tasks = nodes.plan, []

    async def plan_and_measure(state: Any, runtime: Any) -> Any:
        """The first node, after which the lag is measured."""
        tasks.append(asyncio.create_task(measure_lag()))
        return await plan(state, runtime)

    plan_and_measure.__name__ = "plan"
    nodes.plan = plan_and_measure
    litellm_client.load_litellm()
    model = {"name": "m0", "model": "openai/m0", "api_base": url, "api_key": "os.environ/BENCH_KEY"}
    config = AuditConfig.model_validate(
        {
            "name": "overlap",
            "survey": {"source": "wvs7-sample"},
            "models": [model | {"concurrency": concurrency}],
            "judges": [],
            "embedding": {"model": encoder},
            "limits": {"max_cells": N_CELLS},
            "probes": {"direct": {"samples": max(2, n_calls // N_CELLS)}},
        }
    )
    wall, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run_audit(config, storage=f"sqlite:///{folder}/audit.db")
    figures = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    print(json.dumps(figures | {"lag_p99_ms": 1000 * statistics.quantiles(lags, n=100)[98]}))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=N_CELLS * N_SAMPLES)
    parser.add_argument("--delay", type=float, default=0.3)
    parser.add_argument("--concurrency", type=int, default=20)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--audit", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.audit:
        url, encoder = arguments.audit
        run_one_audit(url, encoder, arguments.calls, arguments.concurrency)
        return
    from bench_audit import run_server

    os.environ |= {"BENCH_KEY": "none", "AUDITOR_TRUST": "BENCH_KEY@127.0.0.1"}
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in ENCODERS}
    with run_server(Path(__file__).with_name("slow_server.py"), arguments.delay, 0.0, "reasonings") as url:
        for _ in range(arguments.turns):
            for name, encoder in ENCODERS.items():
                command = [sys.executable, __file__, "--calls", str(arguments.calls), "--audit", url, encoder]
                command += ["--concurrency", str(arguments.concurrency)]
                output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                turns[name].append(json.loads(output.splitlines()[-1]))
    ratios = {
        f"{key[:-2]}_ratio": min(turn[key] for turn in turns["with"]) / min(turn[key] for turn in turns["without"])
        for key in ("wall_s", "cpu_s")
    }
    ratios |= {
        f"median_{key[:-2]}_ratio": statistics.median(
            turn[key] / base[key] for turn, base in zip(turns["with"], turns["without"], strict=True)
        )
        for key in ("wall_s", "cpu_s")
    }
    lags_ms = [turn["lag_p99_ms"] for turn in turns["with"]]
    figures = {"lag_p99_ms": min(lags_ms), "median_lag_p99_ms": statistics.median(lags_ms)}
    print(json.dumps({**ratios, **figures, "load": os.getloadavg()[0], "turns": turns}, indent=1))


if __name__ == "__main__":
    main()
