"""The tests' scripted server, which answers at once, also to promptfoo's grader and to items of a task.

Usage: python benchmarks/peer_server.py

Prints its address, and serves until its standard input is closed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))  # for `tests`; auditor is the installed one

from tests.support.fake_server import FakeServer, Reply, Request, answer, completion

GRADER_MODEL = "grader"
GRADE = json.dumps({"reason": "The steps follow.", "pass": True, "score": 1})


def script(request: Request) -> Reply:
    """A grade for promptfoo's grader, a score of an item of a task, or the default answer."""
    if request.schema == "ScoredAnswer":
        reasoning = f"The number has property {int(1000 * request.draw('p'))}."
        return completion(json.dumps({"reasoning": reasoning, "answer": round(2 * request.draw() - 1, 2)}))
    return completion(GRADE) if request.body["model"] == GRADER_MODEL else answer(request)


if __name__ == "__main__":
    with FakeServer(script) as server:
        print(server.url, flush=True)
        sys.stdin.read()
