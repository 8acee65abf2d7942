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
    """Scorer: the score in the answer's JSON, or 1.0 if its verdict is VALID, else 0.0."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = json.loads(state.output.completion)
        return Score(value=float(answer["score"]) if "score" in answer else float(answer["verdict"] == "VALID"))

    return score


def make_sample(request: dict[str, Any]) -> Sample:
    message_classes = {"system": ChatMessageSystem, "user": ChatMessageUser}
    return Sample(
        input=[message_classes[message["role"]](content=message["content"]) for message in request["messages"]],
        target="",
    )


def run_tasks(url: str, requests: list[dict[str, Any]], connections: int) -> list[EvalLog]:
    """Run one evaluation per model and response format, since an Inspect task has one of each."""
    logs = []
    requests_by_task: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for request in requests:
        requests_by_task.setdefault((request["model"], json.dumps(request["response_format"])), []).append(request)
    for (model, response_format), model_requests in requests_by_task.items():
        json_schema = json.loads(response_format)["json_schema"]
        schema = ResponseSchema(name=json_schema["name"], json_schema=JSONSchema.model_validate(json_schema["schema"]))
        task = Task(
            dataset=[make_sample(request) for request in model_requests], solver=generate(), scorer=stated_score()
        )
        generate_config = GenerateConfig(
            response_schema=schema, max_connections=connections, temperature=0.7, max_tokens=400
        )
        model_api = get_model(model, base_url=url, api_key="none", config=generate_config, responses_api=False)
        settings = {"display": "none", "log_dir": "logs", "max_samples": connections, "log_level": "error"}
        logs += eval(task, model=model_api, **settings)
    return logs


def main() -> None:
    """Warm up, measure, print."""
    url, requests_file, connections = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    requests = json.loads(requests_file.read_text())
    run_tasks(url, requests[:2], connections)
    wall, cpu = time.perf_counter(), time.process_time()
    logs = run_tasks(url, requests, connections)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    statuses = {log.status for log in logs}
    scored = sum(len(sample.scores or {}) for log in logs for sample in log.samples or [])
    status = "success" if statuses == {"success"} else ", ".join(sorted(statuses))
    errors = [log.error.message for log in logs if log.error]
    print(json.dumps({"status": status, "scored": scored, "wall_s": wall, "cpu_s": cpu, "errors": errors[:1]}))


if __name__ == "__main__":
    main()
