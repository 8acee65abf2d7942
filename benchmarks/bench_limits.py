"""At the provider's limit: 10,000 requests a minute over four models of one account, answers of 300 ms.

    python benchmarks/bench_limits.py [--seconds 120] [--rpm 10000] [--delay 0.3] [--concurrency 200] [--turns 3]

Prints JSON of three kinds of runs, each in a process of its own against a server that enforces the limit:

- `steady`: the models' `rpm` make up the limit.
- `bursts`: the same, and for 3 s the server refuses all requests with status 429, once with and once without
  `retry-after`. The recovery is the time from the burst's end until the answers of the following 3 s come at 95% of
  the permitted rate; `max_recovery_s` is the longer of the two, or the run's length if the rate was not reached.
- `unknown`: no `rpm` is configured, so that the concurrency limit has to find the rate by the server's refusals.

The server's CPU time is not counted. `min_share` is the number of answers of the slowest model in the middle half of
the run, divided by that of the fastest; all have the same limit and plan the same number of calls. Of several turns, a
figure is the smallest, but the recovery the largest; beside it is the median.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from soak import prepare_environment, run_in_audit
from turns import summarize

from auditor.agents.call_runner import run_calls
from auditor.agents.run_context import SilentProgress
from auditor.domain import Answer, Call, Message, Purpose

MODELS = ("m0", "m1", "m2", "m3")
BURST_S, RECOVERED_SHARE, WINDOW_S = 3.0, 0.95, 3.0
RUNS = ("steady", "bursts", "unknown")


class AnswerCounter(SilentProgress):
    """Counts outcomes, and the HTTP statuses of all attempts."""

    def __init__(self) -> None:
        self.outcomes, self.statuses = Counter[str](), Counter[str]()

    def on_answer(self, stage: str, answer: Answer) -> None:
        self.outcomes[answer.outcome.value] += 1
        self.statuses.update(str(attempt.http_status) for attempt in answer.attempts)


def build_calls(n: int) -> list[Call]:
    """Calls to the models in turn."""
    return [
        Call(name, f"openai/{name}", (Message("user", f"question {i}"),), Purpose.DIRECT, sample=i)
        for i, name in zip(range(n), itertools.cycle(MODELS), strict=False)
    ]


def run_audit_calls(url: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Send the calls in this process; return outcomes, CPU and wall seconds, and (seconds, model) of each answer."""
    prepare_environment()
    answers: list[tuple[float, str]] = []
    calls = build_calls(int(arguments.rpm / 60 * arguments.seconds))
    models, counter = {call.key: call.name for call in calls}, AnswerCounter()

    async def send(context: Any) -> tuple[float, float]:
        """Send the calls, and return wall and CPU seconds."""
        object.__setattr__(context, "progress", counter)
        wall, cpu = time.perf_counter(), _cpu_seconds()
        await run_calls(
            context,
            "limits",
            calls,
            lambda key, answer: (
                answers.append((time.perf_counter() - wall, models[key])) if answer.outcome == "ok" else None
            ),
        )
        return time.perf_counter() - wall, _cpu_seconds() - cpu

    with tempfile.TemporaryDirectory() as folder:
        rpm = None if arguments.run == "unknown" else int(arguments.rpm / len(MODELS))
        wall_s, cpu_s = run_in_audit(url, folder, arguments.concurrency // len(MODELS), send, MODELS, rpm)
    return {
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "outcomes": dict(counter.outcomes),
        "statuses": dict(counter.statuses),
        "answers": answers,
    }


def _cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def summarize_run(run: dict[str, Any], arguments: argparse.Namespace, burst_ends: list[float]) -> dict[str, Any]:
    """The published figures of one run."""
    times = sorted(at for at, _ in run["answers"])
    first, last = times[0], times[-1]
    middle = (first + (last - first) / 4, last - (last - first) / 4)
    counts = Counter(model for at, model in run["answers"] if middle[0] <= at < middle[1])
    permitted_per_s = arguments.rpm / 60
    n_middle = sum(counts.values())
    return {
        "calls": sum(run["outcomes"].values()),
        "outcomes": run["outcomes"],
        "statuses": run["statuses"],
        "wall_s": round(run["wall_s"], 2),
        "cpu_s": round(run["cpu_s"], 2),
        "cpu_per_wall": round(run["cpu_s"] / run["wall_s"], 3),
        "share_of_permitted_rate": round(n_middle / (middle[1] - middle[0]) / permitted_per_s, 3),
        "min_share": round(min(counts.values()) / max(counts.values()), 3) if len(counts) == len(MODELS) else 0.0,
        "recovery_s": (recovery_s := [find_recovery(times, end, permitted_per_s) for end in burst_ends]),
        "max_recovery_s": max((arguments.seconds if s is None else s for s in recovery_s), default=None),
        "per_second": [sum(s <= at < s + 1 for at in times) for s in range(int(last) + 1)],
    }


def summarize_turns(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Smallest and median figures of the turns, of the recovery the largest; and all turns."""
    figures: dict[str, Any] = {"turns": turns}
    for key in ("cpu_per_wall", "share_of_permitted_rate", "min_share"):
        figures |= summarize(key, [turn[key] for turn in turns])
    if None not in (recoveries := [turn["max_recovery_s"] for turn in turns]):
        figures |= summarize("max_recovery_s", recoveries) | {"max_recovery_s": max(recoveries)}
    return figures


def find_recovery(times: list[float], end: float, permitted_per_s: float) -> float | None:
    """Seconds from a burst's end until the rate over the next `WINDOW_S` is `RECOVERED_SHARE` of the permitted one."""
    for tenths in range(int(10 * (times[-1] - WINDOW_S - end))):
        start = end + tenths / 10
        n_answers = sum(start <= at < start + WINDOW_S for at in times)
        if n_answers >= RECOVERED_SHARE * permitted_per_s * WINDOW_S:
            return round(tenths / 10, 1)
    return None


def measure(arguments: argparse.Namespace, run: str) -> dict[str, Any]:
    """Measure one run in a process of its own, against a server of its own."""
    from bench_audit import run_server

    starts = [arguments.seconds * share for share in (0.25, 0.6)] if run == "bursts" else []
    options: list[str | float] = [arguments.delay, "--rpm", arguments.rpm * (1 if run == "unknown" else 1.05)]
    for start, retry_after in zip(starts, (":2", ""), strict=False):
        options += ["--refuse", f"{start}:{start + BURST_S}{retry_after}"]
    with run_server(Path(__file__).with_name("slow_server.py"), *options) as url:
        command = [sys.executable, __file__, "--url", url, "--run", run]
        for name in ("seconds", "rpm", "delay", "concurrency"):
            command += [f"--{name}", str(getattr(arguments, name))]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return summarize_run(json.loads(output.splitlines()[-1]), arguments, [start + BURST_S for start in starts])


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--rpm", type=float, default=10_000.0)
    parser.add_argument("--delay", type=float, default=0.3)
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--only", default=",".join(RUNS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.url:
        print(json.dumps(run_audit_calls(arguments.url, arguments)))
        return
    figures: dict[str, Any] = {
        run: summarize_turns([measure(arguments, run) for _ in range(arguments.turns)])
        for run in arguments.only.split(",")
    }
    print(json.dumps(figures | {"load": os.getloadavg()[0]}, indent=1))


if __name__ == "__main__":
    main()
