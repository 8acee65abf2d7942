"""Nothing waits for what it does not need: whole runs, timed by the server's log. Prints pass or fail of each check.

    make flow        # or: python benchmarks/check_flow.py [--only pipe,slow,peers,limited]

For a quiet machine: it takes some 5 minutes, nearly all of it waiting for the scripted servers. The checks:

- pipe: one model and one judge that take 1 s a call, one at a time, over 25 cells. Their work could overlap fully in 27
  s: at most 31 s, and the first review within 3 s of the first answer.
- slow: a quick model and its judge beside one that takes 2 s a call, and is asked for comparisons too. The last review
  comes within 10% of the time that it takes without the comparisons.
- peers: four models on four servers of different speed judge each other: at most 1.15 times the slowest server's work.
- limited: of four models, one may get 10 requests a minute. The answers of the others, and as many reviews, come within
  10% of the time without it, over a task of 1,000 items.

Exit code 1: a check failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))  # for `tests`; auditor is the installed one

from peer_server import script

from auditor.domain.decisions import SURVEY_REVIEWS, TASK_REVIEWS
from tests.support.comparison_judge import scripted
from tests.support.fake_server import FakeServer, Reply, Request

KEY = "FLOW_KEY"
COUNTRIES = ["Germany", "United States", "Brazil", "Japan", "Nigeria"]
TOPICS = ["homosexuality", "divorce", "abortion", "euthanasia", "death penalty"]
N_CELLS = len(COUNTRIES) * len(TOPICS)
N_ITEMS = 1000
Check = Callable[[], tuple[bool, str]]
"""Returns whether a check passed, and its figures."""


def answer(request: Request) -> Reply:
    """Answer an item of a task, a comparison, a question of a survey, or a review."""
    return script(request) if request.schema == "ScoredAnswer" else scripted(len)(request)


def is_review(request: Request) -> bool:
    """Whether a verdict is asked for."""
    return request.schema in (*SURVEY_REVIEWS, *TASK_REVIEWS)


def delayed(delays: dict[str, float]) -> Callable[[Request], Reply]:
    """A script whose models take so many seconds a call, by name; those that are not named answer at once."""
    return lambda request: replace(answer(request), delay_s=delays.get(request.body["model"], 0.0))


def model(name: str, server: FakeServer, concurrency: int, **settings: Any) -> dict[str, Any]:
    """A model's section in a configuration."""
    endpoint = {"api_base": server.url, "api_key": f"os.environ/{KEY}", "concurrency": concurrency}
    return {"name": name, "model": f"openai/{name}", **endpoint, **settings}


@contextmanager
def running(content: dict[str, Any], items: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Start `auditor run` in a folder of its own; it is interrupted at the end if it has not ended.

    Args:
        content: of the configuration.
        items: of a task that is asked in place of the survey.
    """
    survey = {"source": "wvs7-sample", "countries": COUNTRIES, "topics": TOPICS}
    defaults = {"name": "flow", "survey": survey, "embedding": {"model": "none"}}
    with tempfile.TemporaryDirectory() as folder:
        if items:
            rows = [{"id": f"item{i:06}", "question": f"How good is number {i}?"} for i in range(items)]
            (Path(folder) / "items.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
            task = {"source": "items.jsonl", "answer": "score", "range": [-1, 1], "tolerance": 0}
            content = content | {"task": task, "limits": {"max_cells": None}}
        text = json.dumps({**defaults, "probes": {"direct": {"samples": 1}}, **content})
        (Path(folder) / "audit.yaml").write_text(text, encoding="utf-8")  # JSON is YAML
        command = [sys.executable, "-m", "auditor", "run", "audit.yaml", "--storage", "sqlite:///audit.db"]
        environment = os.environ | {KEY: "none", "AUDITOR_TRUST": f"{KEY}@127.0.0.1"}
        log = Path(folder) / "log.txt"
        with log.open("w") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=output, text=True, start_new_session=True
            )
            try:
                yield process
                if process.poll() not in (None, 0):
                    raise SystemExit(f"auditor run failed:\n{log.read_text()[-2000:]}")
            finally:
                for stop in (signal.SIGINT, signal.SIGKILL):
                    if process.poll() is None:
                        process.send_signal(stop)
                        with ExitStack() as stack:
                            stack.callback(process.poll)
                            _wait(lambda: process.poll() is not None, 30)


def _wait(is_done: Callable[[], bool], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_done() and time.monotonic() < deadline:
        time.sleep(0.05)


def run(content: dict[str, Any]) -> None:
    """Run an audit to its end."""
    with running(content) as process:
        process.wait()


def check_pipe() -> tuple[bool, str]:
    """One model and one judge overlap."""
    with FakeServer(delayed({"slowmodel": 1.0, "slowjudge": 1.0})) as server:
        run({"models": [model("slowmodel", server, 1)], "judges": [model("slowjudge", server, 1)]})
        start, end = server.requests[0].at, server.requests[-1].at + 1.0
        answers, reviews = ([r.at for r in server.requests if is_review(r) is kind] for kind in (False, True))
    # One review is the preflight's, of a made-up trace.
    lag_s = sorted(reviews)[1] - answers[0]
    return end - start <= 31 and lag_s <= 3, f"{end - start:.1f} s (at most 31), first review after {lag_s:.1f} s (3)"


def last_review_s(probes: dict[str, Any]) -> float:
    """Seconds from the first request to the last review of a quick and a slow model."""
    with FakeServer(delayed({"slow": 2.0})) as server:
        models = [model("fast", server, 8), model("slow", server, 2)]
        run({"models": models, "judges": [model("quick-judge", server, 8)], "probes": probes})
        return max(r.at for r in server.requests if is_review(r)) - server.requests[0].at


def check_slow() -> tuple[bool, str]:
    """Comparisons of a slow model hold up no review."""
    direct = {"direct": {"samples": 1}}
    logic = {"countries": ["Germany"], "max_items": 5, "samples": 1}
    alone_s, compared_s = last_review_s(direct), last_review_s({**direct, "logic": logic})
    return (
        compared_s <= 1.1 * alone_s,
        f"{compared_s:.1f} s with comparisons, {alone_s:.1f} s without (at most 1.1 times)",
    )


def check_peers() -> tuple[bool, str]:
    """Four servers work side by side."""
    delays = {"m0": 0.1, "m1": 0.2, "m2": 0.4, "m3": 0.8}
    concurrency = 4
    with ExitStack() as stack:
        servers = {name: stack.enter_context(FakeServer(delayed(delays))) for name in delays}
        run({"models": [model(name, server, concurrency) for name, server in servers.items()], "judges": "peers"})
        requests = {name: server.requests for name, server in servers.items()}
    start = min(r.at for r in requests["m3"])
    end = max(r.at + delays[name] for name in delays for r in requests[name])
    work_s = max(len(requests[name]) * delay / concurrency for name, delay in delays.items())
    return end - start <= 1.15 * work_s, f"{end - start:.1f} s, {work_s:.1f} s of work (at most 1.15 times)"


def others_s(limited: bool) -> float:
    """Seconds until three models without a limit have answered, and as many reviews were asked for."""
    names = ["m0", "m1", "m2"]
    with FakeServer(delayed(dict.fromkeys((*names, "limited", "judge"), 0.2))) as server:
        models = [model(name, server, 20) for name in names]
        if limited:
            models.append(model("limited", server, 20, rpm=10))
        content = {"survey": None, "models": models, "judges": [model("judge", server, 60)]}
        n_expected = len(names) * N_ITEMS
        counts: Counter[str] = Counter()

        def count() -> tuple[int, int]:
            for request in server.requests[counts.total() :]:  # the others are counted: this process serves, too
                kind = "review" if is_review(request) else "answer"
                counts["limited" if request.body["model"] == "limited" else kind] += 1
            return counts["answer"], counts["review"] - 1  # one is the preflight's; few are of the limited model

        with running(content, items=N_ITEMS) as process:
            _wait(lambda: process.poll() is not None or min(count()) >= n_expected, 600)
            start = min(r.at for r in server.requests if r.body["model"] in names)
            return time.monotonic() - start


def check_limited() -> tuple[bool, str]:
    """A model with 10 requests a minute holds up no other."""
    alone_s, compared_s = others_s(limited=False), others_s(limited=True)
    return compared_s <= 1.1 * alone_s, f"{compared_s:.1f} s beside it, {alone_s:.1f} s alone (at most 1.1 times)"


CHECKS: dict[str, Check] = {
    "pipe": check_pipe,
    "slow": check_slow,
    "peers": check_peers,
    "limited": check_limited,
}


def main() -> None:
    """Check, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CHECKS), help="some of " + ", ".join(CHECKS))
    arguments = parser.parse_args()
    failed = False
    for name in arguments.only.split(","):
        load = os.getloadavg()[0]
        is_passed, figures = CHECKS[name]()
        failed |= not is_passed
        print(f"{name}: {'pass' if is_passed else 'FAIL'}: {figures}; load before {load:.1f}", flush=True)
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
