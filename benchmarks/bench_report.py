"""Building the report of audits of about a thousand, a hundred thousand and a million recorded calls.

    python benchmarks/bench_report.py [--sizes small,middle,large] [--turns 7]

Prints JSON: for each size, seconds and memory of a process that does nothing else, and the size of the page, as minimum
and median of the turns; memory as the largest of them. Filling the database takes minutes for the largest, and is not
counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from turns import summarize

sys.path.append(str(Path(__file__).resolve().parent.parent))  # for `tests`; auditor is the installed one

SIZES: dict[str, dict[str, Any]] = {
    "small": {"models": 4, "countries": 9, "topics": 7, "samples": 1, "judges": 3},
    "middle": {"models": 10, "countries": 61, "topics": 23, "samples": 2, "judges": 3},
    "large": {"models": 20, "countries": 61, "topics": 23, "samples": 5, "judges": 7},
}


def measure(url: str) -> None:
    """Build and render the report in this process, which has done nothing else, and print time and memory."""
    # Imported here, so that the parent process, which only fills databases, does not load them.
    from auditor.reports.data.build import build_report
    from auditor.reports.output import render_report
    from auditor.storage.database import open_database

    start, cpu = time.perf_counter(), time.process_time()
    with open_database(url, create=False) as db:
        report = build_report(db, "population")
        page = render_report(report, "html")
    bytes_per_unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in KiB, macOS in bytes
    figures = {
        "calls": report.cost.total.sums.calls,
        "seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_per_unit / 1e6),
        "page_mb": round(len(page.encode()) / 1e6, 2),
    }
    print(json.dumps(figures))


def measure_in_process(url: str) -> dict[str, Any]:
    """Run `measure` in a fresh process and return what it printed."""
    command = [sys.executable, __file__, "--measure", url]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, Any] = json.loads(process.stdout)
    return figures


def summarize_turns(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Minimum and median time and the largest memory of the turns, with all turns."""
    figures = turns[0] | {"peak_memory_mb": max(turn["peak_memory_mb"] for turn in turns), "turns": turns}
    for key in ("seconds", "cpu_seconds"):
        figures |= summarize(key, [turn[key] for turn in turns])
    return figures


def main() -> None:
    """Fill a database of each size, and measure it in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    from auditor.storage.database import open_database
    from tests.support.synthetic_audit import populate  # not at the top: the measured process must not load it

    figures_by_size: dict[str, Any] = {}
    for name in arguments.sizes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/audit.db"
            with open_database(url) as db:
                populate(db, **SIZES[name])
            figures_by_size[name] = summarize_turns([measure_in_process(url) for _ in range(arguments.turns)])
    if {"middle", "large"} <= figures_by_size.keys():
        times = [
            (figures_by_size[name][key] / figures_by_size[name]["calls"])
            for name in ("large", "middle")
            for key in ("seconds", "median_seconds")
        ]
        figures_by_size["large_to_middle"] = {"ratio": times[0] / times[2], "median_ratio": times[1] / times[3]}
    print(json.dumps(figures_by_size | {"load": os.getloadavg()[0]}, indent=1))


if __name__ == "__main__":
    main()
