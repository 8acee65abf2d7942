"""PairS against a scripted judge: few questions, none of them twice, and on from where it was stopped."""

from __future__ import annotations

import math

import pytest

from auditor.errors import UsageError
from auditor.ranking import RankingWanted, rank_items
from auditor.run import run_audit
from tests.audits import KEY, KEY_VARIABLE, config
from tests.comparing import TOPICS, scripted
from tests.e2e.test_logic import comparing
from tests.fake_server import FakeServer, Reply, Request, error

N = len(TOPICS)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setattr("auditor.models.limiter.FIRST_WAIT_S", 0.01)


def test_a_judge_without_faults_is_ranked_right_and_asked_little(server: FakeServer, storage: str) -> None:
    server.script = scripted(TOPICS.index)
    [one] = rank_items(comparing(server.url), RankingWanted(), storage=storage)
    assert [one.items.items[i].id for i in one.ranking.order] == TOPICS[::-1]
    assert one.ranking.asked == len(server.requests) <= 1.1 * N * math.log2(N)
    assert one.ranking.complete
    assert one.people.n == N
    rank_items(comparing(server.url), RankingWanted(), storage=storage)
    assert len(server.requests) == one.ranking.asked
    run_audit(comparing(server.url), storage=storage)
    assert len(server.requests) == 4 * N * (N - 1) // 2  # the probe asks only what the ranking had not asked
    rank_items(comparing(server.url), RankingWanted(beam=3, calibrated=True), storage=storage)
    assert len(server.requests) == 4 * N * (N - 1) // 2


def test_it_goes_on_where_it_was_stopped(server: FakeServer, storage: str) -> None:
    good = scripted(TOPICS.index)

    def failing(request: Request) -> Reply:
        return good(request) if request.number < 10 else error(401, "bad key")

    server.script = failing
    chosen = comparing(server.url, models=1)
    [one] = rank_items(chosen, RankingWanted(), storage=storage)
    assert one.ranking.failed > 0
    server.script, before = good, len(server.requests)
    [again] = rank_items(chosen, RankingWanted(), storage=storage)
    assert [again.items.items[i].id for i in again.ranking.order] == TOPICS[::-1]
    assert len(server.requests) - before == again.ranking.asked - 10


def test_a_budget_holds(server: FakeServer, storage: str) -> None:
    server.script = scripted(TOPICS.index)
    [one] = rank_items(comparing(server.url), RankingWanted(budget=5), storage=storage)
    assert one.ranking.asked == len(server.requests) == 5
    assert not one.ranking.complete
    assert sorted(one.ranking.order) == list(range(N))


def test_what_cannot_be_ranked_is_said(server: FakeServer, storage: str) -> None:
    with pytest.raises(UsageError, match="no probe 'logic'"):
        rank_items(config(server.url), RankingWanted(), storage=storage)
    with pytest.raises(UsageError, match="It has: model-a"):
        rank_items(comparing(server.url), RankingWanted(), judge="nobody", storage=storage)
