"""Where the CPU time of a call goes: a task whose items are answered and judged once, by an instant server.

    python benchmarks/profile_call.py [--items 1000,4000] [--callers]

Samples the stacks of all threads, each weighted by the CPU time that its thread has used since the sample before, and
counts it for the part of the program of the innermost frame that belongs to one. A call's milliseconds are those that
the larger task has more than the smaller one, so that start-up cancels out. The floor is a loop of aiohttp that sends
the same requests and parses the answers' JSON, with the same concurrency. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from bench_audit import CONCURRENCY, KEY, load_requests, run_server
from bench_peers import CALLS_PER_ITEM, task_job

INTERVAL_S = 0.002
PARTS: tuple[tuple[str, str], ...] = (
    ("json/encoder.py", "JSON, encoded"),
    ("json/__init__.py:dumps", "JSON, encoded"),
    ("json/decoder.py", "JSON, decoded"),
    ("json/__init__.py:loads", "JSON, decoded"),
    (":canonical_hash", "hashes"),
    ("storage/hash_chain.py", "hashes"),
    ("zlib", "compression"),
    (":compress_payload", "compression"),
    ("auditor/text_safety.py", "redaction"),
    ("/redact", "redaction"),
    ("/sqlalchemy/", "SQL"),
    ("/sqlite3/", "SQL"),
    ("/storage/", "rows and queries"),
    ("/litellm/", "litellm"),
    ("/openai/", "litellm"),
    ("/httpx/", "httpx"),
    ("/aiohttp/", "aiohttp"),
    ("/yarl/", "aiohttp"),
    ("/multidict/", "aiohttp"),
    ("/langgraph/", "langgraph"),
    ("/langchain_core/", "langgraph"),
    ("/pydantic/", "pydantic"),
    ("auditor/models/", "gateway: limits, capabilities, reading of responses"),
    ("/agents/", "graph: prompts, calls, reading of answers"),
    ("auditor/", "graph: prompts, calls, reading of answers"),
    ("asyncio/", "event loop"),
    ("selectors.py", "event loop"),
)
"""Parts of the program, by what a frame's file and function contain; the first that matches counts."""


class Sampler:
    """Samples of the stacks of all threads, weighted by their CPU time.

    Attributes:
        seconds: CPU time by part.
        callers: CPU time by part, and by the function of the project that the part was used by.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.callers: dict[tuple[str, str], float] = defaultdict(float)
        self._cpu_s: dict[int, float] = {}
        self._parts: dict[CodeType, str | None] = {}

    def __enter__(self) -> Sampler:
        """Begin."""
        self._cpu_s[threading.get_ident()] = time.thread_time()
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        frames = sys._current_frames() | {threading.get_ident(): frame}
        for thread in threading.enumerate():
            ident = thread.ident
            if ident is None or (top := frames.get(ident)) is None:
                continue
            try:
                cpu_s = time.clock_gettime(time.pthread_getcpuclockid(ident))
            except OSError:  # the thread has ended
                continue
            weight = cpu_s - min(self._cpu_s.get(ident, 0.0), cpu_s)  # idents of threads that ended are given again
            self._cpu_s[ident] = cpu_s
            part, caller = self._find(top)
            self.seconds[part] += weight
            self.callers[part, caller] += weight

    def _find(self, frame: FrameType | None) -> tuple[str, str]:
        """The part of the innermost frame that belongs to one, and the innermost function of the project around it."""
        part, caller = None, "?"
        while frame is not None:
            code = frame.f_code
            if code not in self._parts:
                name = f"{code.co_filename}:{code.co_name}"
                self._parts[code] = next((part for marker, part in PARTS if marker in name), None)
            part = part or self._parts[code]
            if part and "site-packages" not in code.co_filename and "auditor/" in code.co_filename:
                caller = f"{Path(code.co_filename).stem}.{code.co_name}"
                break
            frame = frame.f_back
        return part or "other", caller


def profile(url: str, items: int) -> tuple[Sampler, float, list[dict[str, Any]]]:
    """Run a task; return its samples, the CPU seconds of the process, and the requests."""
    from auditor.config import load_config
    from auditor.run import run_audit

    with tempfile.TemporaryDirectory() as folder:
        task_job(url, items)(Path(folder))
        config, storage = load_config(Path(folder) / "audit.yaml"), f"sqlite:///{folder}/audit.db"
        before = time.process_time()
        with Sampler() as sampler:
            run_audit(config, storage=storage)
        cpu_s = time.process_time() - before
        return sampler, cpu_s, load_requests(storage, config)


async def send_plainly(url: str, requests: list[dict[str, Any]]) -> None:
    """Send requests by aiohttp, and parse the answers' JSON."""
    import aiohttp

    queue = iter(requests)

    async def work(session: aiohttp.ClientSession) -> None:
        for request in queue:
            body = json.dumps({**request, "model": request["model"].split("/", 1)[1]})
            async with session.post(f"{url}/chat/completions", data=body) as response:
                json.loads(json.loads(await response.read())["choices"][0]["message"]["content"])

    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        await asyncio.gather(*(work(session) for _ in range(CONCURRENCY)))


def measure(url: str, sizes: list[int], *, with_callers: bool) -> dict[str, Any]:
    """Milliseconds of a call by part, of the whole, and of the floor."""
    (small, small_s, _), (large, large_s, requests) = [profile(url, items) for items in sizes]
    before = time.process_time()
    asyncio.run(send_plainly(url, requests))
    floor_ms = 1000 * (time.process_time() - before) / len(requests)
    n_calls = CALLS_PER_ITEM * (sizes[1] - sizes[0])

    def per_call(counts: dict[Any, float], others: dict[Any, float]) -> dict[str, float]:
        rows = {key: 1000 * (seconds - others[key]) / n_calls for key, seconds in counts.items()}
        return {str(key): round(ms, 3) for key, ms in sorted(rows.items(), key=lambda row: -row[1]) if ms > 0.005}

    figures: dict[str, Any] = {
        "cpu_ms_per_call": round(1000 * (large_s - small_s) / n_calls, 3),
        "floor_cpu_ms_per_call": round(floor_ms, 3),
        "parts_ms": per_call(large.seconds, small.seconds),
    }
    return figures | ({"callers_ms": per_call(large.callers, small.callers)} if with_callers else {})


def main() -> None:
    """Profile, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", default="1000,4000", help="two sizes of the task, the smaller first")
    parser.add_argument("--callers", action="store_true", help="also by the function that uses a part")
    arguments = parser.parse_args()
    os.environ |= {KEY: "none", "AUDITOR_TRUST": f"{KEY}@127.0.0.1"}
    sizes = [int(items) for items in arguments.items.split(",")]
    with run_server(Path(__file__).with_name("peer_server.py")) as url:
        profile(url, 2)  # imports
        figures = measure(url, sizes, with_callers=arguments.callers)
    print(json.dumps(figures | {"load": os.getloadavg()[0]}, indent=1))


if __name__ == "__main__":
    main()
