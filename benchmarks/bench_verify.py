"""`auditor verify` of an audit of about a hundred thousand recorded calls, compared with its report.

    python benchmarks/bench_verify.py [--samples 12] [--turns 3]

Simulated models answer and review first, which takes minutes and is not counted. Both jobs run in fresh processes.
Prints JSON: wall and CPU seconds of all processes of each job, the ratio of the times, and the largest memory of a
process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing.forkserver
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

from turns import compare, summarize

NAME = "simulated-verify"
MODELS = ("western-everywhere", "knows-every-culture", "agrees-with-everybody", "careful-judge-1", "careful-judge-2")
"""Five models that review each other: each sample of a cell is 25 calls."""


def fill(url: str, samples: int) -> int:
    """Run the audit, and return its number of calls."""
    from auditor.config import AuditConfig
    from auditor.run import run_audit

    config = {
        "name": NAME,
        "survey": {"source": "wvs7-sample"},
        "models": [{"name": f"m{number}", "model": f"simulated/{model}"} for number, model in enumerate(MODELS)],
        "judges": "peers",
        "embedding": {"model": "none"},
        "probes": {"direct": {"samples": samples}},
    }
    return run_audit(AuditConfig.model_validate(config), storage=url).report().cost.total.sums.calls


def verify(url: str) -> None:
    """Do what `auditor verify` does."""
    from auditor.run import open_stored_audit
    from auditor.run.derivation_workers import start_verification
    from auditor.run.rederivation import derive_again

    with (
        open_stored_audit(NAME, url) as (db, audit),
        start_verification(db, audit) as (unknown, get_verification),
    ):
        assert derive_again(db, audit, unknown=unknown).is_consistent
        assert get_verification().is_consistent


def report(url: str) -> None:
    """Do what `auditor report` does."""
    from auditor.reports.data.build import build_report
    from auditor.reports.output import render_report
    from auditor.storage.database import open_database

    with open_database(url, create=False) as db:
        render_report(build_report(db, NAME), "html")


JOBS = {"verify": verify, "report": report}


def measure(job: str, url: str) -> dict[str, Any]:
    """Run a job in a fresh process."""
    process = subprocess.run(
        [sys.executable, __file__, "--measure", job, url], check=True, capture_output=True, text=True
    )
    figures: dict[str, Any] = json.loads(process.stdout)
    return figures


def print_measurement(job: str, url: str) -> None:
    """Run a job in this process, and print its time and memory."""
    start = time.perf_counter()
    JOBS[job](url)
    multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]  # its processes' CPU counts once it has ended
    usages = [resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)]
    bytes_per_unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in KiB, macOS in bytes
    figures = {
        "seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(sum(usage.ru_utime + usage.ru_stime for usage in usages), 2),
        "peak_memory_mb": round(max(usage.ru_maxrss for usage in usages) * bytes_per_unit / 1e6),
    }
    print(json.dumps(figures))


def main() -> None:
    """Fill a database, and measure both jobs in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=12, help="of each cell; a sample of all cells is 8,075 calls")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print_measurement(*arguments.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/audit.db"
        n_calls = fill(url, arguments.samples)
        turns = [{job: measure(job, url) for job in JOBS} for _ in range(arguments.turns)]
    seconds = {job: [turn[job]["seconds"] for turn in turns] for job in JOBS}
    figures: dict[str, Any] = {"calls": n_calls, "turns": turns, "load": os.getloadavg()[0]}
    for job in JOBS:
        figures |= summarize(f"{job}_seconds", seconds[job])
        figures[f"{job}_peak_memory_mb"] = max(turn[job]["peak_memory_mb"] for turn in turns)
    print(json.dumps(figures | compare("ratio", seconds["verify"], seconds["report"]), indent=1))


if __name__ == "__main__":
    main()
