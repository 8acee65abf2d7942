"""PairS against a scripted judge: few questions, none of them twice, and on from where it was stopped."""

from __future__ import annotations

import math
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.config import AuditConfig, load_config
from auditor.errors import UsageError
from auditor.probes.logic.ranking import RankingOptions, rank_items
from auditor.run import run_audit
from auditor.storage import audits, costs
from auditor.storage.database import open_database
from tests.e2e.test_logic import config_of_comparisons
from tests.e2e.test_run import config_file, wait_for
from tests.support.audit_configs import config
from tests.support.comparison_judge import TOPICS, scripted
from tests.support.fake_server import FakeServer, Reply, Request, completion, error
from tests.support.forked_commands import start
from tests.support.patience import PATIENCE_S

N = len(TOPICS)


def test_a_judge_without_faults_is_ranked_right_and_asked_little(server: FakeServer, storage: str) -> None:
    server.script = scripted(TOPICS.index)
    [one] = rank_items(config_of_comparisons(server.url), RankingOptions(), storage=storage)
    assert [one.item_set.items[i].id for i in one.ranking.order] == TOPICS[::-1]
    assert one.ranking.asked == len(server.requests) <= 1.1 * N * math.log2(N)
    assert one.ranking.complete
    assert one.human_correlation.n == N
    rank_items(config_of_comparisons(server.url), RankingOptions(), storage=storage)
    assert len(server.requests) == one.ranking.asked
    run_audit(config_of_comparisons(server.url), storage=storage)
    assert len(server.requests) == 4 * N * (N - 1) // 2  # the probe asks only what the ranking had not asked
    rank_items(config_of_comparisons(server.url), RankingOptions(beam=3, calibrated=True), storage=storage)
    assert len(server.requests) == 4 * N * (N - 1) // 2


def test_it_goes_on_where_it_was_stopped(server: FakeServer, storage: str) -> None:
    good = scripted(TOPICS.index)

    def failing(request: Request) -> Reply:
        return good(request) if request.number < 10 else error(401, "bad key")

    server.script = failing
    chosen = config_of_comparisons(server.url, models=1)
    [one] = rank_items(chosen, RankingOptions(), storage=storage)
    assert one.ranking.failed > 0
    server.script, before = good, len(server.requests)
    [second_ranking] = rank_items(chosen, RankingOptions(), storage=storage)
    assert [second_ranking.item_set.items[i].id for i in second_ranking.ranking.order] == TOPICS[::-1]
    assert len(server.requests) - before == second_ranking.ranking.asked - 10


def test_a_signal_drains_and_the_same_command_goes_on(server: FakeServer, storage: str, tmp_path: Path) -> None:
    good = scripted(TOPICS.index)
    stopped = threading.Event()
    server.script = lambda request: replace(good(request), after=stopped if request.number >= 2 else None)
    file = config_file(tmp_path, config_of_comparisons(server.url, models=1))
    running = start("logic", "rank", file, "--storage", storage)
    wait_for(server, 3)
    running.send_signal(signal.SIGINT)
    stopped.set()
    _, talk = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, "run the same command again." in talk) == (130, True), talk
    before = len(server.requests)
    server.script = good
    [one] = rank_items(load_config(file), RankingOptions(), storage=storage)
    assert one.ranking.complete
    assert len(server.requests) - before == one.ranking.asked - before


def test_a_budget_holds(server: FakeServer, storage: str) -> None:
    server.script = scripted(TOPICS.index)
    [one] = rank_items(config_of_comparisons(server.url), RankingOptions(budget=5), storage=storage)
    assert one.ranking.asked == len(server.requests) == 5
    assert not one.ranking.complete
    assert sorted(one.ranking.order) == list(range(N))
    assert one.human_correlation.value is not None


@pytest.mark.parametrize(
    ("reply", "options"),
    [
        (completion("A"), RankingOptions(budget=0)),
        (completion("", finish="content_filter"), RankingOptions()),
        (completion('{"answer": "TIE"}'), RankingOptions()),
        (completion('{"answer": "A"}'), RankingOptions(calibrated=True)),
    ],
    ids=["unasked", "refused", "tied", "names the first"],
)
def test_an_order_for_which_no_pair_was_decided_says_nothing_of_the_judge(
    server: FakeServer, storage: str, reply: Reply, options: RankingOptions
) -> None:
    server.script = lambda request: reply
    [ranked] = rank_items(config_of_comparisons(server.url), options, storage=storage)
    assert ranked.human_correlation.value is None
    assert "decided no pair" in (ranked.human_correlation.reason or "")


def test_the_audits_money_is_one_and_what_ranking_costs_is_its_own(server: FakeServer, storage: str) -> None:
    server.script = scripted(TOPICS.index)
    settings = config_of_comparisons(server.url).model_dump(mode="json")
    settings["models"][0]["price"] = {"input": 10.0, "output": 10.0}
    rank_items(AuditConfig.model_validate(settings), RankingOptions(), storage=storage)
    asked = len(server.requests)
    with open_database(storage, create=False) as db:
        spent = costs.sum_audit_cost(db, audits.get_audit(db, "scripted").id)
    assert spent.usd == pytest.approx(asked * 120 * 10e-6)
    assert spent.unpriced == 0
    assert spent.usd is not None
    poor = AuditConfig.model_validate(settings | {"limits": {"budget_usd": spent.usd + 0.001}})
    [one] = rank_items(poor, RankingOptions(beam=3, calibrated=True), storage=storage)
    assert one.ranking.failed > 0
    assert len(server.requests) == asked


def test_items_that_cannot_be_ranked_are_an_error(server: FakeServer, storage: str) -> None:
    with pytest.raises(UsageError, match="no probe 'logic'"):
        rank_items(config(server.url), RankingOptions(), storage=storage)
    with pytest.raises(UsageError, match="It has: model-a"):
        rank_items(config_of_comparisons(server.url), RankingOptions(), judge="nobody", storage=storage)
    traces = config(server.url, 1, judges=[], probes={"direct": {"samples": 2}, "logic": {"items": "traces"}})
    with pytest.raises(UsageError, match=r"no set has two items. Run the audit first"):
        rank_items(traces, RankingOptions(), storage=storage)
