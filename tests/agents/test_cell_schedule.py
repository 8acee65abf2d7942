"""Batches are small in small audits, reviews follow each batch, and lanes do not grow with the number of cells."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from typing import Any

import pytest

from auditor.agents.cell_schedule import CellSchedule, Lane, Role, Step, Task
from tests.support.audit_configs import config
from tests.support.known import known
from tests.support.patience import PATIENCE_S

URL = "http://127.0.0.1:9/v1"


def make_schedule(
    n_cells: int,
    *,
    models: int = 2,
    max_concurrent_calls: int = 1,
    stop_event: threading.Event | None = None,
    **changes: Any,
) -> CellSchedule:
    """A schedule of models that judge each other, one sample for each cell unless changed."""
    audit = config(URL, models, **{"probes": {"direct": {"samples": 1}}, **changes})
    return CellSchedule(audit, n_cells, lambda model: max_concurrent_calls, stop_event or threading.Event())


async def work_on(schedule: CellSchedule, lane: Lane, n_steps: int | None = None) -> list[Step]:
    """Take and complete all steps of a lane, or some, which are there."""
    steps: list[Step] = []
    while len(steps) != n_steps and (step := await asyncio.wait_for(schedule.take(lane), PATIENCE_S)) is not None:
        steps.append(step)
        schedule.complete(step)
    assert n_steps in (None, len(steps))
    return steps


def answers(name: str) -> Lane:
    return Lane(name, Role.ANSWER)


def reviews(name: str) -> Lane:
    return Lane(name, Role.REVIEW)


def test_small_audits_have_small_batches() -> None:
    assert make_schedule(25).cells_per_batch <= 2
    assert make_schedule(1).cells_per_batch == 1
    assert make_schedule(10_000).cells_per_batch >= 16


@pytest.mark.parametrize("max_concurrent_calls", [1, 20, 140])
def test_lanes_are_enough_for_all_requests_in_flight_and_do_not_grow_with_the_cells(max_concurrent_calls: int) -> None:
    counts = []
    for n_cells in (10_000, 1_000_000):
        schedule = make_schedule(n_cells, models=3, max_concurrent_calls=max_concurrent_calls)
        schedule.add_answers(0, n_cells)
        counts.append(Counter(schedule.lanes()))
    assert counts[0] == counts[1]
    assert set(counts[0]) == {Lane(f"model-{letter}", role) for letter in "abc" for role in Role}
    assert all(n * schedule.cells_per_batch >= 2 * max_concurrent_calls for n in counts[0].values())
    assert max(counts[0].values()) <= 2 + 2 * max_concurrent_calls // 16


async def test_a_batch_is_reviewed_while_other_cells_are_asked_whatever_other_models_do() -> None:
    schedule = make_schedule(25, models=3)
    schedule.add_answers(0, 25)
    [first, second] = await work_on(schedule, answers("model-a"), 2)
    assert [first, second] == [Step(Task.ANSWER, "model-a", 0, 1), Step(Task.ANSWER, "model-a", 1, 2)]
    for judge in ("model-b", "model-c"):
        steps = await work_on(schedule, reviews(judge), 2)
        assert steps == [first._replace(task=Task.REVIEW), second._replace(task=Task.REVIEW)]
    assert not schedule.answers_complete.is_set()


async def test_all_lanes_work_until_no_step_is_left() -> None:
    schedule = make_schedule(25, models=3)
    schedule.add_answers(0, 25)
    async with asyncio.timeout(PATIENCE_S):
        steps = await asyncio.gather(*(work_on(schedule, lane) for lane in schedule.lanes()))
    counts = Counter((step.task, step.author) for lane_steps in steps for step in lane_steps)
    names = [f"model-{letter}" for letter in "abc"]
    assert counts == {(Task.ANSWER, n): 25 for n in names} | {(Task.REVIEW, n): 50 for n in names}
    assert schedule.answers_complete.is_set()
    assert not list(schedule.lanes())


async def test_restated_traces_are_reviewed_after_they_are_there() -> None:
    review = {"guess": True, "rewrite": "neutral", "rewriter": "model-b"}
    schedule = make_schedule(1, models=3, probes={"direct": {"samples": 1}, "review": review})
    schedule.add_answers(0, 1)
    await work_on(schedule, answers("model-a"), 1)
    assert [step.task for step in await work_on(schedule, reviews("model-c"), 2)] == [Task.REVIEW, Task.GUESS]
    tasks = [step.task for step in await work_on(schedule, reviews("model-b"), 3)]
    assert tasks == [Task.REVIEW, Task.GUESS, Task.RESTATE]
    [step] = await work_on(schedule, reviews("model-c"), 1)
    assert (step.task, step.author) == (Task.REVIEW_RESTATED, "model-a")


async def test_reviews_wait_for_the_last_round_of_answers_with_a_target_width() -> None:
    schedule = make_schedule(4, probes={"direct": {"samples": 1, "target_width": 0.5}})
    for start in (0, 2):
        schedule.add_answers(start, start + 2)
        assert {lane.role for lane in schedule.lanes()} == {Role.ANSWER}
        for name in ("model-a", "model-b"):
            assert len(await work_on(schedule, answers(name))) == 2
        assert not list(schedule.lanes())
        assert not schedule.answers_complete.is_set()
    schedule.release_reviews()
    assert schedule.answers_complete.is_set()
    assert len(await work_on(schedule, reviews("model-a"), 4)) == 4


async def test_reviews_wait_for_all_answers_of_their_author_with_batches_of_providers() -> None:
    schedule = make_schedule(100, max_concurrent_calls=sys.maxsize, batch={})
    schedule.add_answers(0, 100)
    assert Counter(schedule.lanes())[answers("model-a")] == 4
    await work_on(schedule, answers("model-a"), 3)
    review = asyncio.create_task(schedule.take(reviews("model-b")))
    await asyncio.sleep(0)
    assert not review.done()
    await work_on(schedule, answers("model-a"), 1)
    assert (await review) == Step(Task.REVIEW, "model-a", 0, 32)


async def test_adaptive_panels_are_not_asked_by_lanes() -> None:
    schedule = make_schedule(2, models=5, panel={"adaptive": True})
    schedule.add_answers(0, 2)
    async with asyncio.timeout(PATIENCE_S):
        steps = await asyncio.gather(*(work_on(schedule, lane) for lane in schedule.lanes()))
    assert {step.task for lane_steps in steps for step in lane_steps} == {Task.ANSWER}


async def test_a_stopped_run_ends_lanes_that_wait() -> None:
    stop_event = threading.Event()
    schedule = make_schedule(2, stop_event=stop_event)
    schedule.add_answers(0, 2)
    waiting = [asyncio.create_task(schedule.take(reviews(name))) for name in ("model-a", "model-b")]
    step = known(await schedule.take(answers("model-a")))
    stop_event.set()
    schedule.complete(step)
    async with asyncio.timeout(PATIENCE_S):
        assert await asyncio.gather(*waiting) == [None, None]
    assert await schedule.take(answers("model-b")) is None
    assert schedule.answers_complete.is_set()
