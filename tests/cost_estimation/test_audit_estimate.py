"""Estimates: calls as they will be, money by hand, what is unknown named, and beside what a run did cost."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig, ReasoningSection
from auditor.cost_estimation.audit_estimate import estimate_audit, estimate_past_audit
from auditor.errors import AuditorError
from auditor.models.litellm_client import listed_token_price
from auditor.reports.data.cost import CostForecast, ForecastRange
from auditor.reports.render.plain_text import render_text
from auditor.reports.sections.forecast import build_forecast_document, describe_forecast
from auditor.run import load_planned_survey, run_audit, store_audit
from auditor.storage.database import open_database
from tests.support.audit_configs import FOUR_CELLS, THREE_SAMPLES, config, with_models
from tests.support.fake_server import FakeServer, Reply, answer
from tests.support.known import known

URL = "http://127.0.0.1:1"


def priced(url: str, models: int = 3, **changes: Any) -> AuditConfig:
    data = config(url, models, **{"probes": THREE_SAMPLES} | changes).model_dump(mode="json")
    for model in data["models"][: models - 1]:
        model["price"] = {"input": 2.0, "output": 10.0, "as_of": "2026-07-01"}
    return AuditConfig.model_validate(data)


def forecast_cost(audit: AuditConfig) -> CostForecast:
    survey = load_planned_survey(audit)
    return estimate_audit(audit, survey, list(survey.asked_cells))


def test_calls_and_money_by_hand() -> None:
    forecast = forecast_cost(priced(URL))
    direct, *_, review = forecast.rows
    assert (direct.stage, direct.calls.low, direct.calls.high) == ("direct", 27, 27)
    assert (review.calls.low, review.calls.expected, review.calls.high) == pytest.approx((32.4, 51.3, 108))
    assert direct.usd is not None
    expected = direct.prompt_tokens.expected * 2e-6 + direct.completion_tokens.expected * 10e-6
    assert direct.usd.expected == pytest.approx(expected)
    assert direct.usd.low < direct.usd.expected < direct.usd.high
    assert direct.price_source == "config, 2026-07-01"
    assert direct.completion_tokens.high == 27 * config(URL).direct.max_tokens


def test_thinking_is_estimated_at_half_its_room_and_at_most_at_all_of_it() -> None:
    audits = (priced(URL), with_models(priced(URL), reasoning=ReasoningSection(max_tokens=2000)))
    direct, thinking = (forecast_cost(audit).rows[0] for audit in audits)
    tokens = thinking.completion_tokens
    assert tokens.low == direct.completion_tokens.low
    assert tokens.expected == pytest.approx(direct.completion_tokens.expected + 27 * 1000)
    assert tokens.high == direct.completion_tokens.high + 27 * 2000
    assert "1000 tokens of thinking (assumed)" in thinking.basis


def test_an_unknown_price_is_reported_and_left_out_of_the_sum() -> None:
    forecast = forecast_cost(priced(URL))
    assert forecast.unknown_prices == ["model-c"]
    assert forecast.usd is not None
    assert forecast.usd.expected == pytest.approx(sum(r.usd.expected for r in forecast.rows if r.usd is not None))
    text = render_text(build_forecast_document(forecast))
    assert "for the models with a known price" in text
    assert "Unknown price: model-c." in text
    assert forecast_cost(config(URL)).usd is None


def test_a_listed_price_names_the_list_and_an_embedded_model_costs_nothing() -> None:
    models = [{"name": "gpt", "model": "openai/gpt-4o"}, {"name": "here", "model": "embedded/smollm2-135m"}]
    forecast = forecast_cost(AuditConfig.model_validate(config(URL).model_dump(mode="json") | {"models": models}))
    by_name = {row.name: row for row in forecast.rows if row.stage == "direct"}
    assert by_name["gpt"].price_source.startswith("list of litellm 1.")
    assert known(by_name["gpt"].usd).expected > 0
    assert known(by_name["here"].usd).high == 0


def test_the_high_end_has_the_fee_for_prompts_that_are_written_to_a_cache() -> None:
    price = known(listed_token_price("openai/gpt-5.6"))
    models = [{"name": "gpt", "model": "openai/gpt-5.6"}, {"name": "other", "model": "openai/gpt-4o"}]
    row = forecast_cost(
        AuditConfig.model_validate(config(URL).model_dump(mode="json") | {"models": models, "judges": []})
    ).rows[0]
    usd = known(row.usd)
    assert price.cache_write_fee_usd > 0
    assert usd.expected == pytest.approx(
        price.request_cost(1, 0, 0) * row.prompt_tokens.expected + price.completion_usd * row.completion_tokens.expected
    )
    assert usd.high == pytest.approx(
        price.request_cost(1, 0, 0, 1) * row.prompt_tokens.high + price.completion_usd * row.completion_tokens.high
    )


def test_other_settings_languages_and_words_cost_in_proportion() -> None:
    once = forecast_cost(priced(URL))
    twice = forecast_cost(priced(URL, probes={"direct": {"samples": 6}}))
    longer = forecast_cost(priced(URL, probes={"direct": {"samples": 3, "max_words": 240}}))
    both = forecast_cost(priced(URL, language=["en", "native"]))
    assert twice.rows[0].calls.expected == 2 * once.rows[0].calls.expected
    assert longer.rows[0].completion_tokens.expected > 1.5 * once.rows[0].completion_tokens.expected
    assert both.rows[0].calls.expected == 27 + 18  # Nigeria is asked in English only


def test_an_adaptive_panel_may_ask_less_and_never_more() -> None:
    plain = [r for r in forecast_cost(priced(URL, 5)).rows if r.stage == "review"]
    lazy = [r for r in forecast_cost(priced(URL, 5, panel={"adaptive": True})).rows if r.stage == "review"]
    for one, other in zip(plain, lazy, strict=True):
        assert other.calls.low < one.calls.low
        assert other.calls.high == one.calls.high


def test_what_depends_on_answers_is_estimated_between_its_ends() -> None:
    probe = {"samples": 5, "min_samples": 2, "tolerance": 0.05}
    direct, *_, review = forecast_cost(priced(URL, probes={"direct": probe})).rows
    assert (direct.calls.low, direct.calls.expected, direct.calls.high) == pytest.approx((18, 31.5, 45))
    assert review.calls.high == pytest.approx(9 * 2 * 2 * 2)  # two samples of each cell, two authors, asked again
    full_forecast = forecast_cost(priced(URL, survey={"source": "wvs7-sample"}))
    narrow = forecast_cost(
        priced(URL, survey={"source": "wvs7-sample"}, probes={"direct": {"samples": 3, "target_width": 0.3}})
    )
    for one, other in zip(full_forecast.rows, narrow.rows, strict=True):
        if one.stage == "preflight":
            assert other.calls == one.calls
            continue
        assert other.calls.low < other.calls.expected < one.calls.high == other.calls.high
    assert narrow.rows[0].calls.low == pytest.approx(3 * 64)


def preflight_calls(forecast: CostForecast) -> dict[str, tuple[float, float, float]]:
    """Additional calls that find out what each model accepts: low, expected, high."""
    return {
        row.name: (row.calls.low, row.calls.expected, row.calls.high)
        for row in forecast.rows
        if row.stage == "preflight"
    }


def test_preflight_counts_what_it_adds_to_planned_calls_until_all_is_known(server: FakeServer, storage: str) -> None:
    judges = [{"name": "judge", "model": "openai/judge", "api_base": server.url}]
    judges += [{"name": "here", "model": "embedded/smollm2-135m"}]
    audit = priced(server.url, 2, judges=judges)
    assert preflight_calls(forecast_cost(audit)) == {"model-a": (0, 0, 3), "model-b": (0, 0, 3), "judge": (1, 1, 4)}
    as_text = priced(server.url, 2, probes={"direct": {"samples": 3, "mode": "text"}})
    assert preflight_calls(forecast_cost(as_text)) == {"model-a": (1, 1, 4), "model-b": (1, 1, 4)}

    audit = priced(server.url, 2, judges=judges[:1], survey=FOUR_CELLS, probes={"direct": {"samples": 1}})
    run_audit(audit, storage=storage)
    survey = load_planned_survey(audit)
    with open_database(storage) as db:
        forecast = estimate_audit(audit, survey, list(survey.asked_cells), db)
    assert preflight_calls(forecast) == dict.fromkeys(("model-a", "model-b", "judge"), (0, 0, 0))


def test_incomplete_panels_are_asked_their_share() -> None:
    plain = [r for r in forecast_cost(priced(URL, 5)).rows if r.stage == "review"]
    part = [r for r in forecast_cost(priced(URL, 5, panel={"judges_per_trace": 1})).rows if r.stage == "review"]
    for one, other in zip(plain, part, strict=True):
        assert other.calls.expected == pytest.approx(one.calls.expected / 4)
    lazy = forecast_cost(priced(URL, 5, panel={"judges_per_trace": 3, "adaptive": True})).rows
    least, expected = (27 * 5 * share * judges_per_trace for share, judges_per_trace in ((0.6, 2), (0.95, 2.5)))
    assert sum(r.calls.low for r in lazy if r.stage == "review") == pytest.approx(least)
    assert sum(r.calls.expected for r in lazy if r.stage == "review") == pytest.approx(expected)


def test_every_other_probe_is_estimated_or_named() -> None:
    topics = forecast_cost(priced(URL, probes={"logic": {"items": "topics", "samples": 0}}))
    assert [r.calls.expected for r in topics.rows] == [12, 12, 12]  # 3 pairs, both orders, negated
    chances = [
        r for r in forecast_cost(priced(URL, probes={"logprob": {"method": "choice"}})).rows if r.stage == "logprob"
    ]
    assert [r.calls.expected for r in chances] == [9 * 2 * 5 * 2] * 3  # sentences, pairs of ends, both orders
    letters = {"items": "topics", "answer": "probability", "samples": 10, "sampled_pairs": 1, "sample_answer": "cot"}
    rows = [
        row for row in forecast_cost(priced(URL, probes={"logic": letters})).rows if row.name == topics.rows[0].name
    ]
    assert [row.calls.expected for row in rows] == [topics.rows[0].calls.expected, 10]
    assert rows[1].completion_tokens.expected > 10 * rows[0].completion_tokens.expected / rows[0].calls.expected
    traces = forecast_cost(priced(URL, probes={"direct": {"samples": 1}, "logic": {"items": "traces"}}))
    assert any("'logic' compares traces" in text for text in traces.not_estimated)


def test_calls_of_the_semantic_probe_to_other_models_are_counted(tmp_path: Path) -> None:
    """Four questions with no other wording; the judge is a model, and never judges itself."""
    file = tmp_path / "questions.csv"
    file.write_text("question_id,question\n" + "".join(f"q{i},Is it right to do {i}?\n" for i in range(4)))
    probe = {
        "questions": str(file), "paraphrases": 5, "paraphraser": "model-a", "attempts": 3, "worst": 3,
        "consistency": {"judge": "model-b", "samples": 5}, "contradiction": "model-b",
    }  # fmt: skip
    encoder = {"model": "all-MiniLM-L6-v2"}
    forecast = forecast_cost(priced(URL, judges=[], embedding=encoder, probes={"semantic": probe}))
    calls = {(r.name, r.stage): (r.calls.low, r.calls.expected, r.calls.high) for r in forecast.rows}
    assert calls["model-a", "paraphrase"] == (4, 8, 12)
    assert calls["model-c", "moral"] == (40, 40, 40)  # 4 questions, 5 wordings and 5 samples
    assert calls["model-c", "rule"] == pytest.approx((12, 19, 20))
    assert calls["model-b", "consistency"] == pytest.approx((2 * 4 * 2, 2 * 4 * 3.75, 2 * 4 * 4))
    assert calls["model-b", "contradiction"] == pytest.approx((2 * 1.8, 2 * 2.85, 2 * 3))
    assert forecast.not_estimated == []
    pairs = {"consistency": {"judge": "model-b", "pairs": "all"}}
    every = priced(URL, judges=[], embedding=encoder, probes={"semantic": probe | pairs})
    assert {r.calls.high for r in forecast_cost(every).rows if r.stage == "consistency"} == {2 * 4 * 10}


def test_a_budget_that_may_end_the_run_is_reported() -> None:
    forecast = forecast_cost(priced(URL, 2, limits={"budget_usd": 0.0001}))
    text = render_text(build_forecast_document(forecast), width=200)
    assert "will end the run" in text or "is expected to end the run" in text


def test_the_estimate_is_compared_with_what_the_run_cost(server: FakeServer, storage: str) -> None:
    probes = {"direct": {"samples": 5}, "review": {"traces": 1}}
    audit = priced(server.url, 2, survey=FOUR_CELLS, probes=probes)
    run_audit(audit, storage=storage)
    with open_database(storage, create=False) as db:
        forecast = estimate_past_audit(db, audit.name)
        survey = load_planned_survey(audit)
        second_forecast = estimate_audit(audit, survey, list(survey.asked_cells), db)
    asked = {(r.name, r.stage): r for r in forecast.rows}
    direct, review = asked["model-a", "direct"], asked["model-a", "review"]
    assert direct.actual is not None
    assert review.actual is not None
    assert direct.actual.sums.answers == direct.calls.expected == 20
    assert review.calls.low <= review.actual.sums.answers <= review.calls.high
    assert direct.actual.usd == pytest.approx(20 * (100 * 2e-6 + 20 * 10e-6))
    assert known(asked["model-b", "direct"].actual).sums.unpriced == 20
    assert build_forecast_document(forecast).kind == "Estimate and outcome"
    # the storage knows them now: nothing direct is asked again, and answers have a known length
    assert second_forecast.recorded == 40
    assert second_forecast.rows[0].basis == "20 recorded answers"
    assert second_forecast.rows[0].completion_tokens.expected == 20 * 20
    assert second_forecast.remaining == ForecastRange.from_bounds(0)
    assert describe_forecast(second_forecast).endswith("None is left to send: all answers are recorded.")


def test_an_audit_without_an_answer_has_no_other_answers(storage: str) -> None:
    audit = priced(URL)
    store_audit(audit, storage=storage)
    survey = load_planned_survey(audit)
    with open_database(storage, create=False) as db:
        forecast = estimate_audit(audit, survey, list(survey.asked_cells), db)
    assert forecast.remaining == forecast.calls
    assert "left to send" not in describe_forecast(forecast)


def test_the_calls_left_of_an_interrupted_audit_are_those_without_an_answer(server: FakeServer, storage: str) -> None:
    audit = priced(server.url, 2, survey=FOUR_CELLS, probes={"direct": {"samples": 1}})
    survey = load_planned_survey(audit)

    server.script = lambda request: (
        answer(request) if request.is_direct_question else Reply(400, {"error": {"message": "no"}})
    )
    with suppress(AuditorError):
        run_audit(audit, storage=storage)
    with open_database(storage, create=False) as db:
        forecast = estimate_audit(audit, survey, list(survey.asked_cells), db)
    reviews = [row.calls for row in forecast.rows if row.stage == "review"]
    assert known(forecast.remaining).low == sum(calls.low for calls in reviews) > 0
    assert " are left to send; the other answers are recorded." in describe_forecast(forecast)
    other_settings = audit.model_copy(update={"seed": 1})
    with open_database(storage, create=False) as db:
        assert estimate_audit(other_settings, survey, list(survey.asked_cells), db).remaining is None
