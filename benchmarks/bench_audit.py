"""An audit against a scripted server that answers at once, beside a bare litellm loop and beside Inspect AI.

All ask the same server, in the same run; the loop asks the very questions of the audit with the same concurrency and
keeps nothing, Inspect AI generates, scores and logs. The machine's speed cancels out in the ratios. Prints JSON: the
ratios of the shortest turns, the medians over the turns, and all turns.

Usage: python benchmarks/bench_audit.py [--samples 10] [--turns 7] [--without-inspect]
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

from turns import compare, find_module_version, summarize

from auditor.config import AuditConfig
from auditor.models import litellm_client
from auditor.models.endpoint import resolve_endpoint
from auditor.models.structured import SCHEMA_BY_NAME, response_format
from auditor.run import run_audit
from auditor.storage.database import open_database

ROOT = Path(__file__).resolve().parent.parent
KEY = "BENCH_KEY"
CONCURRENCY = 60
PEERS_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
"""Environment of Inspect AI and DeepEval (`make bench` makes it): Inspect AI wants a newer client of OpenAI's than
litellm takes."""


@contextmanager
def run_server(program: Path, *arguments: float | str) -> Iterator[str]:
    """Run a server in a separate process, whose CPU time is not counted, and yield its base URL.

    Raises:
        SystemExit: the server does not start.
    """
    command = [sys.executable, str(program), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}  # of the server alone: it imports parts of the tests
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        url = process.stdout.readline().strip()
        if not url:
            raise SystemExit(f"{program} did not start.")
        yield url
        process.stdin.close()


def run_scripted_server() -> AbstractContextManager[str]:
    """Run the tests' scripted server, which answers immediately."""
    return run_server(ROOT / "tests" / "support" / "fake_server.py", 0.0)


def measure_seconds(job: Callable[[], object]) -> tuple[float, float]:
    """Run a job and return its wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - wall, time.process_time() - cpu


def make_config(url: str, samples: int) -> Any:
    """One model over 17 countries x 3 topics; every trace goes to one judge."""

    def model(name: str) -> dict[str, Any]:
        endpoint = {"api_base": url, "api_key": f"os.environ/{KEY}", "concurrency": CONCURRENCY}
        return {"name": name, "model": f"openai/{name}", **endpoint}

    return AuditConfig.model_validate(
        {
            "name": "bench",
            "survey": {"source": "wvs7-sample", "topics": ["divorce", "abortion", "death penalty"]},
            "models": [model("m0")],
            "judges": [model("judge")],
            "embedding": {"model": "none"},
            "probes": {"direct": {"samples": samples}},
        }
    )


async def run_bare_loop(requests: list[dict[str, Any]]) -> None:
    """Send the requests through litellm alone, with `CONCURRENCY` in flight."""

    queue = iter(requests)

    async def work() -> None:
        for request in queue:
            await litellm_client.load_litellm().acompletion(**request)

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    await litellm_client.load_litellm().close_litellm_async_clients()
    litellm_client.load_litellm().in_memory_llm_clients_cache.flush_cache()


def bare_loop_job(requests: list[dict[str, Any]]) -> Callable[[], None]:
    """Return a job that runs the bare loop with litellm's defaults instead of the pipeline's settings for it."""

    def job() -> None:
        name = "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"
        setting = os.environ.pop(name)
        try:
            asyncio.run(run_bare_loop(requests))
        finally:
            os.environ[name] = setting

    return job


def load_requests(storage: str, config: Any) -> list[dict[str, Any]]:
    """Load the requests that the audit sent, as keyword arguments of litellm's `acompletion`."""

    servers = {model.model: resolve_endpoint(model) for model in config.models_by_name.values()}
    with open_database(storage) as db, db.read() as connection:
        rows = connection.exec_driver_sql("SELECT model, request FROM answer").all()
    requests = []
    for model, text in rows:
        request = json.loads(text)
        schema_name, max_words = request["schema"]
        requests.append(
            {
                "model": model,
                "messages": request["messages"],
                **request["params"],
                "response_format": response_format(SCHEMA_BY_NAME[schema_name], max_words),
                "api_base": servers[model].base_url,
                "api_key": servers[model].api_key,
                "num_retries": 0,
                "max_retries": 0,
                "timeout": 60,
            }
        )
    return requests


def measure_inspect_ai(url: str, requests: list[dict[str, Any]], folder: str) -> dict[str, Any]:
    """Run the same requests with Inspect AI in a separate process.

    Returns:
        Status, number of scored samples, and wall and CPU seconds of the evaluation alone.
    """
    requests_file = Path(folder) / "requests.json"
    requests_file.write_text(
        json.dumps([{key: request[key] for key in ("model", "messages", "response_format")} for request in requests])
    )
    command = [
        str(PEERS_PYTHON),
        str(Path(__file__).with_name("inspect_loop.py")),
        url,
        str(requests_file),
        str(CONCURRENCY),
    ]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if process.returncode:
        raise SystemExit(f"Inspect AI failed:\n{process.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    if figures["status"] != "success" or figures["scored"] != len(requests):
        raise SystemExit(f"Inspect AI did not do the work, so its time says nothing: {figures}")
    return figures


def measure_turns(url: str, folder: str, samples: int, turns: int, *, with_inspect: bool) -> dict[str, Any]:
    """Time the audit, the bare loop and Inspect AI in turns; return minima and medians of the ratios, and all turns."""

    config = make_config(url, samples)
    litellm_client.load_litellm()
    run_audit(make_config(url, 1), storage=f"sqlite:///{folder}/warm.db")
    audit_seconds, bare_seconds, inspect_figures = [], [], []
    for turn in range(turns):
        storage = f"sqlite:///{folder}/turn{turn}.db"
        audit_seconds.append(measure_seconds(lambda storage=storage: run_audit(config, storage=storage)))  # type: ignore[misc]
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        requests = load_requests(storage, config)
        bare_seconds.append(measure_seconds(bare_loop_job(requests)))
        if with_inspect:
            inspect_figures.append(measure_inspect_ai(url, requests, folder))
    second_run_s, _ = measure_seconds(lambda: run_audit(config, storage=storage))
    n_calls = len(requests)
    turn_seconds: dict[str, dict[str, list[float]]] = {
        "audit": _split_seconds(audit_seconds),
        "bare_litellm": _split_seconds(bare_seconds),
    }
    if inspect_figures:
        turn_seconds["inspect_ai"] = {key: [figures[key] for figures in inspect_figures] for key in ("wall_s", "cpu_s")}
    cpu_ms = [1000 * seconds / n_calls for seconds in turn_seconds["audit"]["cpu_s"]]
    figures: dict[str, Any] = {"calls": n_calls, **summarize("cpu_ms_per_call", cpu_ms)}
    figures["versions"] = {"inspect_ai": find_module_version(PEERS_PYTHON, "inspect_ai") if with_inspect else None}
    for name in ("bare_litellm", "inspect_ai") if inspect_figures else ("bare_litellm",):
        for key in ("wall_s", "cpu_s"):
            ratio = f"{key[:-2]}_ratio_to_{name}"
            figures |= compare(ratio, turn_seconds["audit"][key], turn_seconds[name][key])
    load = os.getloadavg()[0]
    return figures | {"second_run_s": second_run_s, "peak_memory_mb": peak_mb, "load": load, "turns": turn_seconds}


def _split_seconds(seconds: list[tuple[float, float]]) -> dict[str, list[float]]:
    """Wall and CPU seconds of the turns."""
    return {"wall_s": [wall for wall, _ in seconds], "cpu_s": [cpu for _, cpu in seconds]}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10, help="of each cell; a cell is asked and judged that often")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--without-inspect", action="store_true")
    arguments = parser.parse_args()
    os.environ[KEY] = "none"
    os.environ["AUDITOR_TRUST"] = f"{KEY}@127.0.0.1"
    with run_scripted_server() as url, tempfile.TemporaryDirectory() as folder:
        figures = measure_turns(
            url,
            folder,
            arguments.samples,
            arguments.turns,
            with_inspect=PEERS_PYTHON.exists() and not arguments.without_inspect,
        )
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
