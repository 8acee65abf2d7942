"""The report’s cost equals that of the ledger’s rows, and savings are relative to asking everything."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from auditor.config import AuditConfig, Price
from auditor.domain import Answer, Attempt, Call, Message, Outcome, Purpose
from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.cost import CostReport, build_cost_report, build_savings_rows
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import load_source
from auditor.storage import audits, ledger, results
from auditor.storage.audits import Audit
from auditor.storage.costs import AnswerVersion, CallCounts, CallSums
from auditor.storage.database import Database
from tests.support.known import known
from tests.support.synthetic_audit import populate


def test_cost_equals_that_of_the_ledger(population: tuple[Database, Audit], report: Report) -> None:
    db, audit = population
    traces = [trace for trace in results.load_traces(db, audit.id) if trace.model == "alder" and trace.key]
    answers = ledger.load_answers(db, [trace.key or "" for trace in traces]).values()
    row = next(r for r in report.cost.rows if (r.name, r.purpose) == ("alder", Purpose.DIRECT))
    assert row.usd == pytest.approx(math.fsum(answer.cost_usd or 0.0 for answer in answers))
    assert row.sums.completion_tokens == sum(answer.completion_tokens or 0 for answer in answers)
    assert (row.sums.calls, row.sums.answers, row.sums.unpriced, row.lower_bound) == (
        len(traces), len(answers), 0, False,
    )  # fmt: skip


def test_cached_prompt_tokens_are_reported_where_known(report: Report) -> None:
    alder_rows = [row for row in report.cost.rows if row.name == "alder"]
    assert all(sums.cached_tokens == 90 * sums.answers for sums in (row.sums for row in alder_rows))
    assert all(row.sums.prompt_tokens_with_cache_count == row.sums.prompt_tokens for row in alder_rows)
    assert {row.sums.known_cached_tokens for row in report.cost.rows if row.name != "alder"} == {None}


def test_an_unknown_price_makes_the_total_a_lower_bound(report: Report) -> None:
    unpriced = [row for row in report.cost.rows if row.name == "cedar"]
    assert [row.usd for row in unpriced] == [None, None]
    assert all(row.sums.unpriced == row.sums.answers > 0 for row in unpriced)
    total = report.cost.total
    assert total.lower_bound
    assert total.sums.unpriced == sum(row.sums.unpriced for row in unpriced)
    assert total.usd == pytest.approx(math.fsum(row.usd for row in report.cost.rows if row.usd is not None))
    assert total.sums.calls == sum(row.sums.calls for row in report.cost.rows)


def reasoning_counts(name: str, **figures: Any) -> CallCounts:
    """Ten calls for 0.50 dollars each, with 100 prompt tokens and 200 completion tokens a call."""
    sums = CallSums(calls=10, answers=10, prompt_tokens=1000, completion_tokens=2000, reasoning_tokens=1500)
    return CallCounts(AnswerVersion(name), "direct", 0.5, sums._replace(**figures))


def build_priced_report(db: Database, price: Price | None, *counts: CallCounts) -> CostReport:
    source = load_source(db, "population")
    models = [model.model_copy(update={"price": price}) for model in known(source.config).models]
    config = known(source.config).model_copy(update={"models": models})
    return build_cost_report(replace(source, config=config, call_counts=counts))


def test_reasoning_costs_its_share_of_the_recorded_cost(population: tuple[Database, Audit]) -> None:
    # 1000 prompt tokens at 2 and 2000 completion tokens at 4 are 10 000; 1500 tokens of reasoning at 4 are 60% of it.
    price = Price(input=2.0, output=4.0)
    counts = reasoning_counts("alder", answers_with_reasoning_count=10)
    other = reasoning_counts("birch", reasoning_tokens=0)
    report = build_priced_report(population[0], price, counts, other)
    assert [row.sums.known_reasoning_tokens for row in report.rows] == [1500, None]
    assert [row.reasoning_usd for row in report.rows] == [pytest.approx(0.6 * 5.0), None]
    assert report.total.sums.reasoning_tokens == 1500
    assert report.total.reasoning_usd == pytest.approx(3.0)
    half_price = [counts._replace(cost_usd=0.25)]  # as in a batch
    assert build_priced_report(population[0], price, *half_price).total.reasoning_usd == pytest.approx(1.5)


def test_reasoning_at_an_unknown_price_has_no_cost_and_none_at_all_costs_nothing(
    population: tuple[Database, Audit],
) -> None:
    counts = reasoning_counts("alder", answers_with_reasoning_count=10)
    assert build_priced_report(population[0], None, counts).total.reasoning_usd is None
    unpriced = counts._replace(cost_usd=None)
    assert build_priced_report(population[0], Price(input=1.0, output=1.0), unpriced).total.reasoning_usd is None
    without_reasoning = counts._replace(sums=counts.sums._replace(reasoning_tokens=0))
    [row] = build_priced_report(population[0], None, without_reasoning).rows
    assert (row.sums.known_reasoning_tokens, row.reasoning_usd) == (0, 0.0)


def test_the_estimated_part_of_the_cost_is_that_of_all_calls(population: tuple[Database, Audit]) -> None:
    counts = [reasoning_counts(name)._replace(estimated_usd=usd) for name, usd in (("alder", 0.125), ("birch", 0.25))]
    report = build_priced_report(population[0], None, *counts)
    assert [row.estimated_usd for row in report.rows] == [1.25, 2.5]
    assert report.total.estimated_usd == 3.75


async def test_requests_without_an_answer_are_in_the_cost_and_estimates_are_marked(db: Database) -> None:
    audit = populate(db, name="charged")
    before = build_cost_report(load_source(db, "charged")).total
    sums_before = before.sums
    call = Call("alder", "openai/alder-1", (Message("user", "hi"),), Purpose.DIRECT)
    charged = (
        Attempt(1, datetime.now(UTC), 0.1, Outcome.SERVER_ERROR, 200, prompt_tokens=9, completion_tokens=5,
                cost_usd=0.25, estimated=False),
        Attempt(2, datetime.now(UTC), 0.1, Outcome.TIMEOUT, cost_usd=0.5, estimated=True),
    )  # fmt: skip
    failed = Answer(call.key, Outcome.TIMEOUT, cost_usd=0.75, attempts=charged)
    await ledger.record_answer(db, call, failed, audit_id=audit.id)
    total = build_cost_report(load_source(db, "charged")).total
    sums = total.sums
    assert total.usd == pytest.approx((before.usd or 0.0) + 0.75)
    assert (total.estimated_usd, sums.estimated_attempts) == (0.5, 1)
    assert (sums.attempts, sums.calls) == (sums_before.attempts + 2, sums_before.calls + 1)
    assert (sums.answers, sums.unpriced) == (sums_before.answers, sums_before.unpriced)
    assert sums.completion_tokens == sums_before.completion_tokens + 5
    assert load_audit_status(db, audits.get_audit(db, "charged"))["cost_usd"] == pytest.approx(total.usd)


@pytest.mark.parametrize(("stage", "is_reported"), [(audits.FINISHED, True), ("review", False)])
def test_savings_are_of_stages_with_fewer_calls_of_finished_audits(db: Database, stage: str, is_reported: bool) -> None:
    audit = populate(db, models=3, countries=5, topics=5, samples=3, judges=1)
    config = AuditConfig.model_validate_json(known(audit.config))
    assert build_savings_rows(load_source(db, audit.name)) == []
    panel = config.panel.model_copy(update={"judges_per_trace": 1})
    direct = config.direct.model_copy(update={"target_width": 0.1})  # which saved no sample
    probes = config.probes.model_copy(update={"direct": direct})
    partial_config = config.model_copy(update={"panel": panel, "probes": probes}).model_dump_json()
    audits.save_audit(
        db, name=audit.name, config=partial_config, config_hash=audit.config_hash,
        survey=audits.load_audit_survey(db, audit), environment={},
    )  # fmt: skip
    audits.set_stage(db, audit.id, stage)
    savings = build_savings_rows(load_source(db, audit.name))
    assert len(savings) == is_reported
    n_verdicts = len(results.load_verdicts(db, audit.id))
    means = ["probes.direct.target_width = 0.1", "panel.judges_per_trace = 1"]
    for row in savings:
        assert (row.stage, row.made, row.means) == ("review", n_verdicts, means)
        assert row.full == pytest.approx(2 * row.made, abs=1)
