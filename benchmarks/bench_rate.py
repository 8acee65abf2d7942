"""Answers that take 300 ms, 200 of them in flight: how near the pipeline comes to the possible rate.

    python benchmarks/bench_rate.py [--calls 20000] [--concurrency 200] [--delay 0.3] [--spread 0.5] [--turns 7]

The possible rate is concurrency / delay. Counted are the answers after the first half, when the limit of the account
has found itself, and before the last tenth, when fewer are left than may be in flight. The server has the same
processors, and takes little of them. Prints JSON: the smallest share of the turns, their median, and all.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_audit import run_server
from soak import make_calls, prepare_environment, run_in_audit
from turns import summarize

from auditor.agents.call_runner import run_calls
from auditor.agents.run_context import SilentProgress


async def record_answer_times(context: Any, calls: int) -> list[float]:
    """Send the calls, and return the time at which each answer was recorded (`time.perf_counter`)."""

    times: list[float] = []

    class AnswerTimer(SilentProgress):
        """Records the time of each answer."""

        def on_answer(self, stage: str, answer: Any) -> None:
            times.append(time.perf_counter())

    object.__setattr__(context, "progress", AnswerTimer())
    await run_calls(context, "rate", make_calls(range(calls)))
    return times


def measure_rate(url: str, arguments: argparse.Namespace) -> float:
    """Answers a second in the middle of one audit, in a new database."""
    with tempfile.TemporaryDirectory() as folder:
        times: list[float] = run_in_audit(
            url, folder, arguments.concurrency, lambda context: record_answer_times(context, arguments.calls)
        )
    first, last = arguments.calls // 2, arguments.calls - max(arguments.concurrency, arguments.calls // 10)
    rate: float = (last - first) / (times[last] - times[first])
    return rate


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--delay", type=float, default=0.3)
    parser.add_argument("--spread", type=float, default=0.0, help="share of the delay by which answers differ")
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    prepare_environment()
    with run_server(Path(__file__).with_name("slow_server.py"), arguments.delay, arguments.spread) as url:
        rates = [measure_rate(url, arguments) for _ in range(arguments.turns)]
    possible_rate = arguments.concurrency / arguments.delay
    figures = {
        "calls": arguments.calls,
        "possible_per_s": possible_rate,
        **summarize("share", [rate / possible_rate for rate in rates]),
        "load": os.getloadavg()[0],
        "turns_per_s": rates,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
