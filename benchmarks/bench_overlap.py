"""Embedding while models answer: audits of 2,000 reasonings with and without embeddings.

    python benchmarks/bench_overlap.py [--calls 2000] [--delay 0.3] [--concurrency 20] [--turns 7]
    python benchmarks/bench_overlap.py --instant [--calls 2000] [--turns 7]

Answers take 300 ms; with `--instant` they come at once, so that nothing can overlap with waiting, and an audit with
embeddings is compared with one whose reasonings are embedded after it by plain `encode`. Each audit runs in a process
of its own; the two take turns. Prints JSON: wall and CPU seconds of each turn, the ratios of the minima and the medians
of the turns' ratios, and minimum and median of the 99th percentile of the event loop's lag with embeddings.
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

from bench_audit import run_server
from turns import compare, summarize

from auditor.config import AuditConfig

LAG_INTERVAL_S = 0.01
N_CELLS, N_SAMPLES = 40, 50
ENCODER, NO_ENCODER = "all-MiniLM-L6-v2", "none"


def run_one_audit(arguments: argparse.Namespace) -> None:
    """Run one audit in this process, and print its time and the lag of its event loop."""
    from auditor.models import litellm_client  # imported before the clock starts, as is all that both audits load
    from auditor.run import run_audit

    lags = measure_lags_of_audits()
    litellm_client.load_litellm()
    config = make_config(arguments)
    wall, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{folder}/audit.db"
        run_audit(config, storage=storage)
        if arguments.encode_after:
            encode_reasonings(storage)
    figures = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    print(json.dumps(figures | {"lag_p99_ms": 1000 * statistics.quantiles(lags, n=100)[98]}))


def measure_lags_of_audits() -> list[float]:
    """Let audits of this process record by how many seconds their event loop is late; returns the growing list."""
    from auditor.agents import nodes

    lags: list[float] = []
    plan, tasks = nodes.plan, []

    async def measure_lag() -> None:
        """Measure until the audit ends."""
        while True:
            start = time.perf_counter()
            await asyncio.sleep(LAG_INTERVAL_S)
            lags.append(time.perf_counter() - start - LAG_INTERVAL_S)

    async def plan_and_measure(state: Any, runtime: Any) -> Any:
        """The first node, after which the lag is measured."""
        tasks.append(asyncio.create_task(measure_lag()))
        return await plan(state, runtime)

    plan_and_measure.__name__ = "plan"
    nodes.plan = plan_and_measure
    return lags


def make_config(arguments: argparse.Namespace) -> AuditConfig:
    """One model, asked about each cell as often as gives the number of calls."""
    endpoint = {"api_base": arguments.url, "api_key": "os.environ/BENCH_KEY", "concurrency": arguments.concurrency}
    return AuditConfig.model_validate(
        {
            "name": "overlap",
            "survey": {"source": "wvs7-sample"},
            "models": [{"name": "m0", "model": "openai/m0", **endpoint}],
            "judges": [],
            "embedding": {"model": arguments.encoder},
            "limits": {"max_cells": N_CELLS},
            "probes": {"direct": {"samples": max(2, arguments.calls // N_CELLS)}},
        }
    )


def encode_reasonings(storage: str) -> None:
    """Embed the reasonings of an audit by plain `encode` of the same weights."""
    from sentence_transformers import SentenceTransformer

    from auditor.models.weights import pull_weights
    from auditor.storage import audits, results
    from auditor.storage.database import open_database

    with open_database(storage) as db:
        texts = [trace.text for trace in results.load_traces(db, audits.load_audits(db)[0].id) if trace.text]
    encoder = SentenceTransformer(str(pull_weights(ENCODER)), device="cpu")
    encoder.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def measure_turn(url: str, arguments: argparse.Namespace, options: list[str]) -> dict[str, float]:
    """Run an audit in a process of its own."""
    command = [sys.executable, __file__, "--url", url, "--calls", str(arguments.calls), *options]
    command += ["--concurrency", str(arguments.concurrency)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: dict[str, float] = json.loads(output.splitlines()[-1])
    return figures


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=N_CELLS * N_SAMPLES)
    parser.add_argument("--delay", type=float, default=0.3)
    parser.add_argument("--concurrency", type=int, default=20)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--instant", action="store_true")
    for option in ("--url", "--encoder"):
        parser.add_argument(option, help=argparse.SUPPRESS)
    parser.add_argument("--encode-after", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.url:
        run_one_audit(arguments)
        return
    os.environ |= {"BENCH_KEY": "none", "AUDITOR_TRUST": "BENCH_KEY@127.0.0.1"}
    base = "after" if arguments.instant else "without"
    options = {"with": ["--encoder", ENCODER], base: ["--encoder", NO_ENCODER, *["--encode-after"] * arguments.instant]}
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in options}
    delay_s = 0.0 if arguments.instant else arguments.delay
    with run_server(Path(__file__).with_name("slow_server.py"), delay_s, 0.0, "reasonings") as url:
        for _ in range(arguments.turns):
            for name in options:
                turns[name].append(measure_turn(url, arguments, options[name]))
    figures: dict[str, Any] = summarize("lag_p99_ms", [turn["lag_p99_ms"] for turn in turns["with"]])
    for key in ("wall_s", "cpu_s"):
        figures |= compare(f"{key[:-2]}_ratio", *([turn[key] for turn in some] for some in turns.values()))
    print(json.dumps(figures | {"load": os.getloadavg()[0], "turns": turns}, indent=1))


if __name__ == "__main__":
    main()
