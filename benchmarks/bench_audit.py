"""An audit against a scripted server that answers at once, beside a bare litellm loop and beside Inspect AI.

All ask the same server, in the same run; the loop asks the very questions of the audit with the same concurrency and
keeps nothing, Inspect AI generates, scores and logs. The machine's speed cancels out in the ratios; the shortest of
some turns counts. Prints JSON.

Usage: python benchmarks/bench_audit.py [--samples 10] [--turns 3] [--without-inspect]
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
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

KEY = "BENCH_KEY"
CONCURRENCY = 60
INSPECT = ROOT / ".venv-bench" / "bin" / "python"
"""Inspect AI's own environment (`make bench` makes it): it wants a newer client of OpenAI's than litellm takes."""


@contextmanager
def served(program: Path, *words: float) -> Iterator[str]:
    """The address of a server in a process of its own, so that its CPU time is not counted."""
    command = [sys.executable, str(program), *map(str, words)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def scripted_server() -> AbstractContextManager[str]:
    """The tests' scripted server, which answers at once."""
    return served(ROOT / "tests" / "support" / "fake_server.py", 0.0)


def measured(job: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of a job."""
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - wall, time.process_time() - cpu


def audit_config(url: str, samples: int) -> Any:
    """One model over 14 countries x 3 topics; every trace goes to one judge."""
    from auditor.config import AuditConfig

    def model(name: str) -> dict[str, Any]:
        reached = {"api_base": url, "api_key": f"os.environ/{KEY}", "concurrency": CONCURRENCY}
        return {"name": name, "model": f"openai/{name}", **reached}

    return AuditConfig.model_validate(
        {
            "name": "bench",
            "survey": {"source": "wvs7-sample", "topics": ["divorce", "abortion", "death penalty"]},
            "models": [model("m0")],
            "judges": [model("judge")],
            "embedding": {"model": "none"},
            "probes": {"direct": {"samples": samples}},
            "run": {"processes": 1},  # helpers would make its wall time shorter, and their CPU would not be counted
        }
    )


async def bare_loop(requests: list[dict[str, Any]]) -> None:
    """The same questions through litellm alone, as it comes."""
    from auditor.models import litellm_client

    queue = iter(requests)

    async def work() -> None:
        for request in queue:
            await litellm_client.load_litellm().acompletion(**request)

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    await litellm_client.load_litellm().close_litellm_async_clients()
    litellm_client.load_litellm().in_memory_llm_clients_cache.flush_cache()


def as_it_comes(requests: list[dict[str, Any]]) -> Callable[[], None]:
    """The bare loop, without the settings that the pipeline gives litellm."""

    def job() -> None:
        name = "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"
        kept = os.environ.pop(name)
        try:
            asyncio.run(bare_loop(requests))
        finally:
            os.environ[name] = kept

    return job


def same_requests(storage: str, config: Any) -> list[dict[str, Any]]:
    """What the audit sent, as litellm requests."""
    from auditor.models.endpoint import resolve_endpoint
    from auditor.models.structured import SCHEMA_BY_NAME, response_format
    from auditor.storage.database import open_database

    servers = {m.model: resolve_endpoint(m) for m in [*config.models, *config.judge_models]}
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
                "response_format": response_format(SCHEMA_BY_NAME[structure], words),
                "api_base": servers[model].base_url,
                "api_key": servers[model].api_key,
                "num_retries": 0,
                "max_retries": 0,
                "timeout": 60,
            }
        )
    return requests


def inspect_ai(url: str, requests: list[dict[str, Any]], folder: str) -> dict[str, Any]:
    """The same questions by Inspect AI, in a process of its own; wall and CPU seconds of its evaluation alone."""
    asked = Path(folder) / "requests.json"
    asked.write_text(json.dumps([{k: r[k] for k in ("model", "messages", "response_format")} for r in requests]))
    command = [str(INSPECT), str(Path(__file__).with_name("inspect_loop.py")), url, str(asked), str(CONCURRENCY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise SystemExit(f"Inspect AI failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if found["status"] != "success" or found["scored"] != len(requests):
        raise SystemExit(f"Inspect AI did not do the work, so its time says nothing: {found}")
    return found


def compare(url: str, folder: str, samples: int, turns: int, *, with_inspect: bool) -> dict[str, Any]:
    """Time all of them, turn by turn."""
    from auditor.models import litellm_client
    from auditor.run import run_audit

    config = audit_config(url, samples)
    litellm_client.load_litellm()
    run_audit(audit_config(url, 1), storage=f"sqlite:///{folder}/warm.db")
    ours, bare, others = [], [], []
    for turn in range(turns):
        storage = f"sqlite:///{folder}/turn{turn}.db"
        ours.append(measured(lambda storage=storage: run_audit(config, storage=storage)))  # type: ignore[misc]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        requests = same_requests(storage, config)
        bare.append(measured(as_it_comes(requests)))
        if with_inspect:
            others.append(inspect_ai(url, requests, folder))
    again, _ = measured(lambda: run_audit(config, storage=storage))
    n = len(requests)
    (wall, cpu), (bare_wall, bare_cpu) = (tuple(min(t[i] for t in times) for i in (0, 1)) for times in (ours, bare))
    found = {
        "calls": n,
        "calls_per_s": n / wall,
        "cpu_ms_per_call": 1000 * cpu / n,
        "bare_litellm": {"calls_per_s": n / bare_wall, "cpu_ms_per_call": 1000 * bare_cpu / n},
        "cpu_ratio_to_bare_litellm": cpu / bare_cpu,
        "wall_ratio_to_bare_litellm": wall / bare_wall,
        "second_run_s": again,
        "peak_memory_mb": peak,
    }
    if others:
        best_wall, best_cpu = (min(o[what] for o in others) for what in ("wall_s", "cpu_s"))
        found["inspect_ai"] = {"samples_per_s": n / best_wall, "cpu_ms_per_sample": 1000 * best_cpu / n}
        found["wall_ratio_to_inspect_ai"] = wall / best_wall
        found["cpu_ratio_to_inspect_ai"] = cpu / best_cpu
    return found


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10, help="of each cell; a cell is asked and judged that often")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--without-inspect", action="store_true")
    given = parser.parse_args()
    os.environ[KEY] = "none"
    os.environ["AUDITOR_TRUST"] = f"{KEY}@127.0.0.1"
    with scripted_server() as url, tempfile.TemporaryDirectory() as folder:
        found = compare(
            url, folder, given.samples, given.turns, with_inspect=INSPECT.exists() and not given.without_inspect
        )
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
