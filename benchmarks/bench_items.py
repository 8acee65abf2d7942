"""CPU time of a call as audits grow: tasks of 1,000 and 10,000 items, each answered and judged once.

    python benchmarks/bench_items.py [--items 100,1000,10000] [--turns 3]

Every audit is a whole process with a new database; the scripted server answers at once, in a process whose CPU time is
not counted. Marginal CPU time is that of the calls which one size has more than the size before it, so that start-up
cancels out. It is the same at all sizes if nothing that runs for each batch reads the whole audit. Prints JSON:
milliseconds a call up to the second and up to the largest size, their ratio, and every turn.
"""

from __future__ import annotations

import argparse
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench_audit import KEY, run_server
from bench_peers import CALLS_PER_ITEM, run_process, task_job
from turns import compare, summarize


def marginal_ms(sizes: list[int], cpu_s: list[float]) -> list[float]:
    """CPU milliseconds of each call that a size has more than the size before it."""
    return [
        1000 * (more_s - fewer_s) / (CALLS_PER_ITEM * (more - fewer))
        for (fewer, more), (fewer_s, more_s) in zip(pairwise(sizes), pairwise(cpu_s), strict=True)
    ]


def measure(url: str, sizes: list[int], turns: int) -> dict[str, Any]:
    """Run all sizes in turns; return the marginal CPU time of the first and last step, its growth, and every turn."""
    measured = [[run_process(task_job(url, items), {}) for items in sizes] for _ in range(turns)]
    marginals = [marginal_ms(sizes, [size["cpu_s"] for size in turn]) for turn in measured]
    figures: dict[str, Any] = {"calls": [CALLS_PER_ITEM * items for items in sizes], "turns": measured}
    first, last = ([marginal[index] for marginal in marginals] for index in (0, -1))
    figures |= summarize("first_cpu_ms_per_call", first) | summarize("cpu_ms_per_call", last)
    return figures | {"marginals_ms": marginals} | compare("growth", last, first)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", default="100,1000,10000", help="sizes of the task, the smallest first")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    os.environ |= {KEY: "none", "AUDITOR_TRUST": f"{KEY}@127.0.0.1"}
    load_before = os.getloadavg()[0]
    with run_server(Path(__file__).with_name("peer_server.py")) as url:
        figures = measure(url, [int(items) for items in arguments.items.split(",")], arguments.turns)
    print(json.dumps(figures | {"load": [load_before, os.getloadavg()[0]]}, indent=1))


if __name__ == "__main__":
    main()
