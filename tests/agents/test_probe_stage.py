"""The batches of a probe's stage."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from auditor.agents import run_context
from auditor.agents.probe_stage import ProbeStage, build_stage_graph
from auditor.agents.run_context import RunContext
from auditor.surveys import load_survey
from tests.support.audit_configs import config

STAGE, N_UNITS, MAX_OPEN = "logic", 1000, 3


@pytest.mark.parametrize("batch", [None, {}])
def test_batches_are_asked_about_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, batch: dict[str, Any] | None) -> None:
    """The number of batches in memory does not grow with the cells; a provider's batch takes all that come together."""
    monkeypatch.setattr(run_context, "MAX_OPEN_BATCHES", MAX_OPEN)
    audit = config("http://127.0.0.1:1/v1", probes={"direct": {"samples": 1}, STAGE: {}}, batch=batch)
    no_database: Any = None
    context = RunContext(audit, load_survey("wvs7-sample"), 1, [], no_database, client=no_database)
    n_open, peaks = 0, [0]
    asked: list[int] = []

    async def plan(context: RunContext) -> int:
        return N_UNITS

    async def ask(context: RunContext, start: int, stop: int) -> None:
        nonlocal n_open
        n_open += 1
        peaks.append(n_open)
        await asyncio.sleep(0)
        asked.extend(range(start, stop))
        n_open -= 1

    graph = build_stage_graph(ProbeStage(STAGE, plan, ask, 10))
    asyncio.run(graph.ainvoke({}, context=context))
    assert sorted(asked) == list(range(N_UNITS))
    assert max(peaks) == (MAX_OPEN if batch is None else N_UNITS // 10)
