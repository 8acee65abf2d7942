"""Inspect AI on the questions of an audit: generates, scores, logs. `bench_audit.py` runs it; prints one line of JSON.

Usage: python benchmarks/inspect_loop.py URL REQUESTS.json CONNECTIONS
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, ResponseSchema, get_model
from inspect_ai.scorer import Score, Target, mean, scorer
from inspect_ai.solver import TaskState, generate
from inspect_ai.util import JSONSchema


@scorer(metrics=[mean()])  # type: ignore[untyped-decorator]
def stated_score() -> Any:
    """The score that the answer states, or whether it says VALID."""

    async def score(state: TaskState, target: Target) -> Score:
        said = json.loads(state.output.completion)
        return Score(value=float(said["score"]) if "score" in said else float(said["verdict"] == "VALID"))

    return score


def sample(request: dict[str, Any]) -> Sample:
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    return Sample(input=[kinds[m["role"]](content=m["content"]) for m in request["messages"]], target="")


def run(url: str, requests: list[dict[str, Any]], connections: int) -> list[EvalLog]:
    """One evaluation for each model and structure, as Inspect has one of each in a task."""
    logs = []
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for request in requests:
        groups.setdefault((request["model"], json.dumps(request["response_format"])), []).append(request)
    for (model, form), group in groups.items():
        asked = json.loads(form)["json_schema"]
        schema = ResponseSchema(name=asked["name"], json_schema=JSONSchema.model_validate(asked["schema"]))
        task = Task(dataset=[sample(r) for r in group], solver=generate(), scorer=stated_score())
        wanted = GenerateConfig(response_schema=schema, max_connections=connections, temperature=0.7, max_tokens=400)
        reached = get_model(model, base_url=url, api_key="none", config=wanted, responses_api=False)
        settings = {"display": "none", "log_dir": "logs", "max_samples": connections, "log_level": "error"}
        logs += eval(task, model=reached, **settings)
    return logs


def main() -> None:
    """Warm up, measure, print."""
    url, file, connections = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    requests = json.loads(file.read_text())
    run(url, requests[:2], connections)
    wall, cpu = time.perf_counter(), time.process_time()
    logs = run(url, requests, connections)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    statuses = {log.status for log in logs}
    scored = sum(len(s.scores or {}) for log in logs for s in log.samples or [])
    status = "success" if statuses == {"success"} else ", ".join(sorted(statuses))
    errors = [log.error.message for log in logs if log.error]
    print(json.dumps({"status": status, "scored": scored, "wall_s": wall, "cpu_s": cpu, "errors": errors[:1]}))


if __name__ == "__main__":
    main()
