"""Comparison of a case's result with its line in the corpus; each fault names the expected and the actual value."""

from __future__ import annotations

import math
import re

from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS
from tests.hostile.axes import BATCHES, ECHO
from tests.hostile.bodies import SCORE
from tests.hostile.corpus import Case
from tests.hostile.runner import ATTEMPTS, ENDS, MAX_TOKENS, PRICE, Result, beginning_of, question_of

BATCH_FACTOR = 0.5
CHARS_PER_TOKEN = 4
INTERNAL = re.compile(
    r"Traceback|NoneType|object has no attribute|not subscriptable|validation error|Input should|pydantic|File \""
)
"""Words of a crashed program, which no error message may have."""


def estimate_of(case: Case) -> float:
    """Estimated cost in US dollars of one request without usage: by characters of the prompt and `max_tokens`."""
    texts = [beginning_of(case) + end for end in ENDS] if case.protocol == ECHO else [question_of(case)]
    prompt = math.ceil(sum(map(len, texts)) / CHARS_PER_TOKEN)
    usd = (prompt * PRICE.input + (1 if case.protocol == ECHO else MAX_TOKENS) * PRICE.output) / 1e6
    return usd * (BATCH_FACTOR if case.protocol in BATCHES else 1.0)


def complaints(case: Case, result: Result) -> list[str]:
    """All differences between a result and the expectations of its case, and all violations of invariants."""
    expected_usd = case.charge.dollars + case.charge.estimates * estimate_of(case)
    pairs = {
        "outcome": (case.outcome, result.outcome),
        "requests at the server": (case.requests, result.requests),
        "attempts recorded": (case.requests, result.attempts),
        "exit code": (case.exit, result.exit),
        "attempts charged by estimate": (case.charge.estimates, result.estimated),
    }
    faults = [
        f"{figure}: expected {expected}, was {was}" for figure, (expected, was) in pairs.items() if expected != was
    ]
    if not math.isclose(expected_usd, result.usd, rel_tol=1e-9, abs_tol=1e-12):
        faults.append(f"dollars: expected {expected_usd:.9g} ({case.charge}), was {result.usd:.9g}")
    return [
        *faults,
        *(f"'{word}' is nowhere" for word in case.words if word not in result.text),
        *violations(case, result),
    ]


def violations(case: Case, result: Result) -> list[str]:
    """Violations of what must hold for every case: no leak, crash text, surrogate, extra request or made-up score."""
    faults = [f"the key is in {leak}" for leak in result.leaks] + [f"the chain is broken: {b}" for b in result.broken]
    if match := INTERNAL.search(result.text):
        faults.append(f"a program's own words: {result.text[max(0, match.start() - 80) : match.end() + 80]!r}")
    if any(0xD800 <= ord(char) < 0xE000 for char in result.text):
        faults.append("half of a surrogate pair, which nothing can store or show")
    extra_requests = {"first": MAX_DISCOVERY_REQUESTS, "later": 1, "known": 0}[case.contact]
    max_requests = ATTEMPTS
    if result.requests > max_requests + (0 if case.protocol == ECHO and case.contact == "first" else extra_requests):
        faults.append(f"{result.requests} requests for one call")
    if result.outcome == "ok" and case.protocol != ECHO and result.score != SCORE:
        faults.append(f"a score of {result.score} that nobody gave")
    return faults
