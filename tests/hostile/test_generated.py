"""Cases with random values on every axis, sensible or not: the invariants hold whatever a server does.

The invariants: no crash, no made-up score, no request or cost above the limits, no leaked key, no blocked event loop.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from tests.hostile import axes
from tests.hostile.axes import AXES, BATCHES, ECHO, NONE
from tests.hostile.bodies import JUDGEMENT
from tests.hostile.corpus import Case, Charge
from tests.hostile.expectations import violations
from tests.hostile.runner import CRASHES, CaseResults, run_cases

SEED = 19
EVERYTHING = bool(os.environ.get("AUDITOR_ALL_HOSTILE"))
COUNT = 1000 if EVERYTHING else 40
BUDGET_USD = COUNT * 0.004
"""US dollars; not enough for all cases."""
GROUPS = 5
NORMS = str(JUDGEMENT["norms"])
WRITTEN = {NORMS, json.dumps(NORMS)[1:-1], NORMS.encode("latin-1", "replace").decode("utf-8", "replace")}
"""Text that the model wrote, plain, as a JSON escape, and with U+FFFD in place of bytes that are not UTF-8."""
VALUES: dict[str, tuple[str, ...]] = {
    "protocol": axes.CHATS, "status": ("200",) * 15 + axes.ERRORS + axes.REDIRECTS,
    "headers": axes.TYPES * 5 + axes.LYING + tuple(wait for wait in axes.WAITS if wait != "wait-day"),
    "body": (
        *axes.ANSWERS * 2, *axes.WITHOUT_TEXT, *(body for body in axes.UNREADABLE if body != "9mb"), *axes.ERROR_BODIES,
    ),
    "usage": axes.USAGE, "finish": axes.FINISHES, "encoding": axes.READABLE * 2 + axes.NOT_UTF8,
    "timing": axes.ARRIVES * 4 + axes.SILENT[:2] + ("broken",),
}  # fmt: skip
NEVER_OK: dict[str, tuple[str, ...]] = {
    "status": (*axes.ERRORS, *axes.REDIRECTS),
    "headers": ("shorter",),
    "body": ("prose", "refusal", "blank", "null-message", *axes.WITHOUT_TEXT, *axes.UNREADABLE, *axes.ERROR_BODIES),
    "finish": ("cut", "CUT", "refused", "REFUSED", "failed"),
    "timing": (*axes.SILENT, "broken"),
}
"""Values by axis that no answer with a score can have."""


def generate_cases(seed: int, count: int) -> list[Case]:
    """Random cases, reproducible by the seed; 10% are of completions endpoints or batches."""
    rng = random.Random(seed)
    others = [block for block in axes.BLOCKS if set(block["protocol"]) <= {ECHO, *BATCHES}]
    cases = []
    for number in range(count):
        values = rng.choice(others) if rng.random() < 0.1 else VALUES
        choice = {axis: rng.choice(values.get(axis, (NONE,))) for axis in AXES}
        # A batch goes out only after a single call has shown what the server accepts.
        contact = "known" if number % 2 or choice["protocol"] in BATCHES else "first"
        cases.append(Case(f"made-{number}", choice, contact, "", 0, Charge(), 0, ()))
    return cases


CASES = generate_cases(SEED, COUNT)


@pytest.fixture(scope="module")
def groups(memory: Path) -> list[CaseResults]:
    """Results of all cases in groups; each group shares a budget, except the last, which has none."""
    size = -(-len(CASES) // GROUPS)
    budgets: list[float | None] = [BUDGET_USD / GROUPS] * (GROUPS - 1) + [None]
    return [
        run_cases(CASES[i * size : (i + 1) * size], memory / str(i), budget_usd=budget)
        for i, budget in enumerate(budgets)
    ]


def test_no_generated_case_violates_an_invariant(groups: list[CaseResults]) -> None:
    results = {id_: result for case_results in groups for id_, result in case_results.results.items()}
    faults_by_case = {}
    for case in CASES:
        result = results[case.id]
        case_faults = violations(case, result)
        if result.outcome == CRASHES:
            case_faults.append("a crash")
        if result.outcome == "ok":
            case_faults += [
                f"{value} and yet ok" for axis, bad in NEVER_OK.items() if (value := case.choice[axis]) in bad
            ]
            if case.protocol != ECHO and result.answer and not WRITTEN & set((result.answer.text or "").split('"')):
                case_faults.append("a text that is not what the model wrote")
        if case_faults:
            faults_by_case[case.id] = (" ".join(case.choice.values()), case_faults, result.text[:300])
    assert not faults_by_case, "\n".join(map(str, faults_by_case.items()))


def test_generated_cases_have_successes_and_failures(groups: list[CaseResults]) -> None:
    outcomes = {result.outcome for case_results in groups for result in case_results.results.values()}
    assert {"ok", "server_error"} <= outcomes
    assert not EVERYTHING or {"truncated", "refused", "unparsed", "rate_limited", "over_budget"} <= outcomes


def test_no_budget_is_exceeded(groups: list[CaseResults]) -> None:
    assert all(case_results.spent_usd <= BUDGET_USD / GROUPS + 1e-9 for case_results in groups[:-1])
    for case_results in groups:
        assert sum(result.usd for result in case_results.results.values()) == pytest.approx(case_results.spent_usd)
