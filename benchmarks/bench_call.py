"""CPU time of sending a call: auditor's one way past litellm's public function, beside that function.

    python benchmarks/bench_call.py [--calls 1000] [--turns 7]

A scripted server of another process answers at once, and 60 requests are in flight. Measured in turns: litellm's
defaults; the public function with the settings that litellm supports; litellm's undecorated function, which builds each
request; and what is sent by default, whose requests of one kind are built once. Prints JSON: minimum and median of the
turns in milliseconds a call, and all turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench_audit import CONCURRENCY, run_scripted_server
from turns import summarize

from auditor.models import direct_completion, litellm_client
from auditor.models.answer_schemas import MoralJudgement
from auditor.models.structured import response_format

HANDLER_SETTING = "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"


@contextmanager
def _environment(**settings: str | None) -> Iterator[None]:
    """Set environment variables, or remove those that are None, for a while."""
    before = {name: os.environ.get(name) for name in settings}
    for values in (settings, before):
        if values is before:
            yield
        for name, value in values.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


async def _send_all(send: Callable[..., Any], url: str, n_calls: int) -> float:
    """Send requests with `CONCURRENCY` in flight; return CPU milliseconds a call, without the first calls."""
    common = {"model": "openai/m0", "api_base": url, "api_key": "none", "timeout": 60, "num_retries": 0}
    common |= {"max_retries": 0, "temperature": 0.7, "response_format": response_format(MoralJudgement, 60)}
    seeds = iter(range(n_calls))

    async def work() -> None:
        for seed in seeds:
            await send(**common, seed=seed, messages=[{"role": "user", "content": f"Is divorce acceptable? {seed}"}])

    await asyncio.gather(*(send(**common, seed=seed, messages=[{"role": "user", "content": "hi"}]) for seed in (1, 2)))
    cpu = time.process_time()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return 1000 * (time.process_time() - cpu) / n_calls


async def _send_by_defaults(url: str, n_calls: int) -> float:
    """The public function with litellm's default handler."""
    litellm = litellm_client.load_litellm()
    try:
        with _environment(**{HANDLER_SETTING: None}):
            return await _send_all(litellm.acompletion, url, n_calls)
    finally:
        await litellm.close_litellm_async_clients()
        litellm.in_memory_llm_clients_cache.flush_cache()


async def _send_by_auditor(url: str, n_calls: int, public_only: str = "0") -> float:
    """What a run sends, with or without the way past the public function."""
    litellm_client.open_http_clients()
    try:
        with _environment(**{direct_completion.PUBLIC_ONLY_VARIABLE: public_only}):
            return await _send_all(litellm_client.complete_chat, url, n_calls)
    finally:
        await litellm_client.close_http_clients()


async def _send_without_kinds(url: str, n_calls: int) -> float:
    """The way past the public function, with each request built anew."""
    prepare = direct_completion._prepare
    direct_completion._prepare = lambda *_: None
    try:
        return await _send_by_auditor(url, n_calls)
    finally:
        direct_completion._prepare = prepare


WAYS: dict[str, Callable[[str, int], Any]] = {
    "defaults": _send_by_defaults,
    "public": lambda url, n_calls: _send_by_auditor(url, n_calls, "1"),
    "built_each_time": _send_without_kinds,
    "direct": _send_by_auditor,
}


def compare_ways(ms: dict[str, float]) -> dict[str, float]:
    """Ratio of what is sent by default to the public function, and what preparing each kind of request once saves.

    The saving is compared with the public function with litellm's defaults, so that it does not depend on the machine.
    """
    saved_ms = ms["built_each_time"] - ms["direct"]
    return {
        "direct_ratio_to_public": ms["direct"] / ms["public"],
        "saved_by_kinds_ms": saved_ms,
        "saved_by_kinds_share": saved_ms / ms["defaults"],
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    turns: dict[str, list[float]] = {name: [] for name in WAYS}
    litellm_client.load_litellm()
    with run_scripted_server() as url:
        for _ in range(arguments.turns):
            for name, send in WAYS.items():
                turns[name].append(asyncio.run(send(url, arguments.calls)))
    figures: dict[str, Any] = {name: summarize("ms", values) | {"turns_ms": values} for name, values in turns.items()}
    figures["load"] = os.getloadavg()[0]
    figures |= compare_ways({name: min(values) for name, values in turns.items()})
    comparisons = [compare_ways(dict(zip(WAYS, values, strict=True))) for values in zip(*turns.values(), strict=True)]
    figures |= {f"median_{key}": statistics.median(c[key] for c in comparisons) for key in comparisons[0]}
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
