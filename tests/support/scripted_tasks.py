"""An arithmetic task for tests, models of different skill, and judges of imperfect accuracy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from auditor.config import AuditConfig
from auditor.domain.decisions import TASK_REVIEW
from tests.support.audit_configs import config
from tests.support.fake_server import Reply, Request, answer, completion, review_of_answer

SKILL = {"scripted-a": 0.9, "scripted-b": 0.6, "scripted-c": 0.3}
VALID_OF_RIGHT, VALID_OF_WRONG = 0.85, 0.25


def sum_task(folder: Path, kind: str = "exact", items: int = 10, *, truth: bool = True) -> dict[str, Any]:
    """Write the items; returns the table `task`. A choice is among the sum and its neighbours."""
    rows = []
    for i in range(items):
        first_addend, second_addend = 3 * i + 2, 7 * (i % 5) + 1
        row = {
            "id": f"sum{i:02d}",
            "question": f"What is {first_addend} + {second_addend}?",
            "truth": str(first_addend + second_addend) if truth else "",
        }
        if kind == "choice":
            row["options"] = "|".join(str(first_addend + second_addend + d) for d in (-1, 0, 1))
        rows.append(row)
    file = folder / "sums.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    task: dict[str, Any] = {"source": str(file), "answer": kind}
    return task | ({"range": [0, 200], "tolerance": 0} if kind == "score" else {})


def audit(url: str, folder: Path, kind: str = "exact", **changes: Any) -> AuditConfig:
    """An audit of the task with three scripted models."""
    task = changes.pop("task", None) or sum_task(folder, kind)
    return config(url, survey=None, task=task, name="sums", **changes)


def solver(request: Request) -> Reply:
    """Models that are correct with probability SKILL, and judges that say VALID more often of correct answers."""
    addends = re.search(r"What is (\d+) \+ (\d+)\?", request.text)
    if addends is None:
        return answer(request)
    correct_sum = int(addends[1]) + int(addends[2])
    if request.schema == TASK_REVIEW:
        reviewed_answer = re.search(r"^Answer of \w+: (\d+)$", request.text, re.MULTILINE)
        assert reviewed_answer is not None
        share = VALID_OF_RIGHT if int(reviewed_answer[1]) == correct_sum else VALID_OF_WRONG
        return completion(json.dumps(review_of_answer(request.draw() < share)))
    skill = SKILL[str(request.body["model"]).split("/")[-1]]
    error_size = 60 if request.schema == "ScoredAnswer" else 1
    answer_value: object = correct_sum if request.draw() < skill else correct_sum + error_size
    reasoning = f"Step {int(1000 * request.draw('t'))}: {addends[1]} and {addends[2]} make {answer_value}."
    if request.schema is None:
        letter = next(
            (line[0] for line in request.text.split("\n") if re.fullmatch(rf"[A-Z]\) {answer_value}", line)),
            answer_value,
        )
        return completion(f"{reasoning}\nANSWER = {letter}")
    if request.schema.startswith("ChosenOf"):
        answer_value = "B" if answer_value == correct_sum else "C"
    return completion(
        json.dumps(
            {"reasoning": reasoning, "answer": answer_value if request.schema == "ScoredAnswer" else str(answer_value)}
        )
    )
