"""Whole processes beside each other: `auditor run`, promptfoo, Inspect AI and DeepEval answer and judge the same items.

    python benchmarks/bench_peers.py [--items 1020] [--turns 7] [--only TOOLS] [--form samples|task]

The items are 51 cells of a survey with several samples, or, with `--form task`, so many items of a task with one sample
each. The scripted server answers at once, in a process whose CPU time is not counted; 60 requests are in flight. Each
item is answered by one model and judged by another: 2 calls. promptfoo and DeepEval grade each answer with a model
(`llm-rubric`, `GEval`); Inspect AI sends the requests of the audit and scores them by a function. No tool embeds texts
or reuses an answer. Start-up is the time of a job of one item. Prints JSON: ratios of the shortest turns, medians of
the turns' ratios, and every turn; the figures of a peer that is not installed are missing.
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
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench_audit import CONCURRENCY, KEY, PEERS_PYTHON, ROOT, load_requests, make_config, run_server
from peer_server import GRADER_MODEL
from turns import compare, find_module_version, find_version, summarize

from auditor.config import AuditConfig

CALLS_PER_ITEM = 2
"""One answer and one verdict."""
CELLS = 51
"""Of the audit: 17 countries x 3 topics."""
PROMPTFOO = ROOT / ".venv-bench" / "node_modules" / ".bin" / "promptfoo"
DEEPEVAL_SETTINGS = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    **dict.fromkeys(("DEEPEVAL_DISABLE_DOTENV", "DEEPEVAL_NO_INSPECT_PROMPT"), "1"),
}
PROMPTFOO_SETTINGS = {
    f"PROMPTFOO_{name}": "1" for name in ("DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION")
}

Job = Callable[[Path], list[str]]
"""Takes an empty folder, writes the files of a job there, and returns its command."""


def run_process(make_command: Job, environment: dict[str, str]) -> dict[str, float]:
    """Wall and CPU seconds of a process, the files that it reads already written.

    Raises:
        SystemExit: the process failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = make_command(Path(folder))
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        process = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=folder, env=os.environ | environment
        )
        wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"{command} failed:\n{process.stdout[-2000:]}\n{process.stderr[-2000:]}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(wall_s, 2), "cpu_s": round(cpu_s, 2)}


def auditor_job(url: str, samples: int, max_cells: int | None) -> Job:
    """A job of `auditor run` in a new database."""

    def write(folder: Path) -> list[str]:
        config: AuditConfig = make_config(url, samples)
        content = config.model_dump(mode="json", exclude_unset=True) | {"limits": {"max_cells": max_cells}}
        (folder / "audit.yaml").write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
        return [sys.executable, "-m", "auditor", "run", "audit.yaml", "--storage", "sqlite:///audit.db"]

    return write


def task_job(url: str, items: int) -> Job:
    """A job of `auditor run` in a new database: a task of so many items."""

    def model(name: str) -> dict[str, Any]:
        endpoint = {"api_base": url, "api_key": f"os.environ/{KEY}", "concurrency": CONCURRENCY}
        return {"name": name, "model": f"openai/{name}", **endpoint}

    def write(folder: Path) -> list[str]:
        questions = [{"id": f"item{i:06}", "question": f"How good is number {i}?"} for i in range(items)]
        (folder / "items.jsonl").write_text("\n".join(map(json.dumps, questions)), encoding="utf-8")
        content = {
            "name": "bench",
            "task": {"source": "items.jsonl", "answer": "score", "range": [-1, 1], "tolerance": 0},
            "models": [model("m0")],
            "judges": [model("judge")],
            "embedding": {"model": "none"},
            "probes": {"direct": {"samples": 1}},
            "limits": {"max_cells": None},
        }
        (folder / "audit.yaml").write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
        return [sys.executable, "-m", "auditor", "run", "audit.yaml", "--storage", "sqlite:///audit.db"]

    return write


def promptfoo_job(url: str, questions: list[str]) -> Job:
    """A job of `promptfoo eval`, with one graded test for each question."""

    def provider(model: str) -> dict[str, Any]:
        config = {"apiBaseUrl": url, "apiKey": "none", "temperature": 0.7, "max_tokens": 400}
        return {"id": f"openai:chat:{model}", "config": config}

    def write(folder: Path) -> list[str]:
        rubric = {
            "type": "llm-rubric",
            "value": "The reasoning supports the score.",
            "provider": provider(GRADER_MODEL),
        }
        content = {
            "prompts": ["{{question}}"],
            "providers": [provider("m0")],
            "defaultTest": {"assert": [rubric]},
            "tests": [{"vars": {"question": f"{i}. {question}"}} for i, question in enumerate(questions)],
        }
        (folder / "promptfooconfig.json").write_text(json.dumps(content), encoding="utf-8")
        options = ["--no-cache", "--no-progress-bar", "--no-table", "-j", str(CONCURRENCY)]
        return [str(PROMPTFOO), "eval", "-c", "promptfooconfig.json", *options]

    return write


def deepeval_job(url: str, questions: list[str]) -> Job:
    """A job of DeepEval, with one graded test case for each question."""

    def write(folder: Path) -> list[str]:
        (folder / "questions.json").write_text(json.dumps(questions))
        program = Path(__file__).with_name("deepeval_loop.py")
        return [str(PEERS_PYTHON), str(program), url, "questions.json", str(CONCURRENCY), GRADER_MODEL]

    return write


def inspect_job(url: str, requests: list[dict[str, Any]]) -> Job:
    """A job of Inspect AI on the requests of an audit."""

    def write(folder: Path) -> list[str]:
        fields = ("model", "messages", "response_format")
        (folder / "requests.json").write_text(
            json.dumps([{name: request[name] for name in fields} for request in requests])
        )
        program = Path(__file__).with_name("inspect_loop.py")
        return [str(PEERS_PYTHON), str(program), url, "requests.json", str(CONCURRENCY)]

    return write


def record_requests(url: str, samples: int) -> list[dict[str, Any]]:
    """Run the audit once, and return the requests that it sent."""
    from auditor.run import run_audit

    with tempfile.TemporaryDirectory() as folder:
        config = make_config(url, samples)
        run_audit(config, storage=f"sqlite:///{folder}/audit.db")
        return load_requests(f"sqlite:///{folder}/audit.db", config)


def record_task_requests(url: str, items: int) -> list[dict[str, Any]]:
    """Run the audit of a task once, and return the requests that it sent."""
    from auditor.config import load_config
    from auditor.run import run_audit

    with tempfile.TemporaryDirectory() as folder:
        task_job(url, items)(Path(folder))
        config, storage = load_config(Path(folder) / "audit.yaml"), f"sqlite:///{folder}/audit.db"
        run_audit(config, storage=storage)
        return load_requests(storage, config)


def make_jobs(url: str, items: int, form: str) -> dict[str, tuple[Job, Job]]:
    """For each tool a job of all items, and one of one item."""
    samples = max(1, items // CELLS)
    requests = record_task_requests(url, items) if form == "task" else record_requests(url, samples)
    questions = [
        "\n".join(message["content"] for message in request["messages"])
        for request in requests
        if request["model"] == "openai/m0"
    ]
    return {
        "auditor": (
            (task_job(url, items), task_job(url, 1))
            if form == "task"
            else (auditor_job(url, samples, None), auditor_job(url, 1, 1))
        ),
        "promptfoo": (promptfoo_job(url, questions), promptfoo_job(url, questions[:1])),
        "inspect_ai": (inspect_job(url, requests), inspect_job(url, requests[:2])),
        "deepeval": (deepeval_job(url, questions), deepeval_job(url, questions[:1])),
    }


def find_versions() -> dict[str, str | None]:
    """The versions of the tools; None for those that are not installed."""
    return {
        "auditor": version("auditor"),
        "promptfoo": find_version([str(PROMPTFOO), "--version"]),
        "inspect_ai": find_module_version(PEERS_PYTHON, "inspect_ai"),
        "deepeval": find_module_version(PEERS_PYTHON, "deepeval"),
    }


def measure(url: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run all tools in turns; return versions, start-up, every turn, and the ratios of the minima."""
    jobs, versions = make_jobs(url, arguments.items, arguments.form), find_versions()
    tools = [name for name in arguments.only.split(",") if versions[name]]
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in tools}
    start_up: dict[str, list[dict[str, float]]] = {name: [] for name in tools}
    with tempfile.TemporaryDirectory() as settings:
        environment = PROMPTFOO_SETTINGS | DEEPEVAL_SETTINGS | {"PROMPTFOO_CONFIG_DIR": settings}
        for _ in range(arguments.turns):
            for name in tools:
                turns[name].append(run_process(jobs[name][0], environment))
                start_up[name].append(run_process(jobs[name][1], environment))
    n_items = arguments.items if arguments.form == "task" else CELLS * max(1, arguments.items // CELLS)
    n_calls = CALLS_PER_ITEM * n_items
    figures: dict[str, Any] = {"calls": n_calls, "versions": versions, "start_up": start_up, "turns": turns}
    for name in tools:
        figures |= summarize(f"start_up_s_of_{name}", [turn["wall_s"] for turn in start_up[name]])
        for key in ("wall_s", "cpu_s") if name != "auditor" else ():
            seconds, peer_seconds = ([turn[key] for turn in turns[tool]] for tool in ("auditor", name))
            figures |= compare(f"{key[:-2]}_ratio_to_{name}", seconds, peer_seconds)
    return figures


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1020)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--only", default="auditor,promptfoo,inspect_ai,deepeval")
    parser.add_argument("--form", choices=["samples", "task"], default="samples")
    arguments = parser.parse_args()
    os.environ |= {KEY: "none", "AUDITOR_TRUST": f"{KEY}@127.0.0.1"}
    # promptfoo's folder also has the version of Node.js that it wants.
    os.environ["PATH"] = os.pathsep.join((str(PROMPTFOO.parent), os.environ["PATH"]))
    with run_server(Path(__file__).with_name("peer_server.py")) as url:
        figures = measure(url, arguments)
    print(json.dumps(figures | {"load": os.getloadavg()[0]}, indent=1))


if __name__ == "__main__":
    main()
