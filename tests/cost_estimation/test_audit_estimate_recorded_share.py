"""Answers that other audits of the database have are not counted as calls of a new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.config import AuditConfig, Price
from auditor.cost_estimation.audit_estimate import estimate_audit
from auditor.reports.data.cost import CostForecast
from auditor.reports.render.plain_text import render_text
from auditor.reports.sections.forecast import build_forecast_document, describe_forecast
from auditor.run import load_planned_survey, run_audit
from auditor.storage.database import open_database
from auditor.storage.sqlite_file import copy_database
from tests.support.audit_configs import config, with_models
from tests.support.fake_server import FakeServer
from tests.support.known import known

pytestmark = pytest.mark.usefixtures("first")


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


@pytest.fixture(scope="module")
def recorded(server: FakeServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of an audit that was run, with all reviews."""
    path = tmp_path_factory.mktemp("recorded") / "audits.db"
    run_audit(config(server.url), storage=f"sqlite:///{path}")
    return path


@pytest.fixture
def first(server: FakeServer, recorded: Path, storage: str) -> AuditConfig:
    """That audit, whose database is copied."""
    copy_database(recorded, Path(storage.removeprefix("sqlite:///")))
    return config(server.url)


def forecast(audit: AuditConfig, storage: str) -> CostForecast:
    survey = load_planned_survey(audit)
    with open_database(storage, create=False) as db:
        return estimate_audit(audit, survey, list(survey.asked_cells), db)


def test_an_audit_with_another_name_has_nothing_left_to_send(server: FakeServer, storage: str) -> None:
    second = config(server.url, name="second")
    estimate = forecast(second, storage)
    assert estimate.calls.expected > 50
    assert estimate.remaining is not None
    n_preflight = sum(row.calls.high for row in estimate.rows if row.stage == "preflight")
    assert (estimate.remaining.expected, estimate.is_remaining_sampled) == (0, True)
    assert estimate.remaining.high <= n_preflight
    assert "None seems to be left to send: by a sample of the calls, other audits" in describe_forecast(estimate)
    n_requests = len(server.requests)
    run_audit(second, storage=storage)
    assert len(server.requests) == n_requests


def test_a_larger_audit_has_about_its_further_cells_left(server: FakeServer, first: AuditConfig, storage: str) -> None:
    assert first.survey is not None
    countries = ["Germany", "Japan", "Nigeria", "Australia", "Canada", "Turkey"]
    survey = first.survey.model_dump() | {"countries": countries}
    estimate = forecast(config(server.url, name="larger", survey=survey), storage)
    assert 0.3 * estimate.calls.expected < known(estimate.remaining).expected < 0.7 * estimate.calls.expected
    assert " seem to be left to send: by a sample" in describe_forecast(estimate)


def test_answers_that_other_audits_paid_for_are_no_reason_to_expect_the_budget_to_end(
    server: FakeServer, first: AuditConfig, storage: str
) -> None:
    price = Price(input=10.0, output=100.0)
    more = config(server.url, name="more", judges=[], probes={"direct": first.direct.model_dump() | {"samples": 2}})
    priced = with_models(more, price=price)
    estimate = forecast(priced, storage)
    assert estimate.usd is not None
    assert estimate.remaining_usd is not None
    assert estimate.remaining_usd.expected == pytest.approx(estimate.usd.expected / 2, rel=0.3)
    document = build_forecast_document(estimate.model_copy(update={"budget_usd": estimate.remaining_usd.high}))
    assert "budget" not in render_text(document, width=200)


def test_an_audit_of_more_samples_has_the_others_left(server: FakeServer, first: AuditConfig, storage: str) -> None:
    probes = {"direct": first.direct.model_dump() | {"samples": 2 * first.direct.samples}}
    estimate = forecast(config(server.url, name="more", probes=probes, judges=[]), storage)
    assert 0.3 * estimate.calls.expected < known(estimate.remaining).expected < 0.7 * estimate.calls.expected


def test_reviews_of_another_kind_are_left_to_send(server: FakeServer, storage: str) -> None:
    estimate = forecast(
        config(server.url, name="other", probes={"direct": {"samples": 1}, "review": {"max_words": 20}}), storage
    )
    reviews = sum(row.calls.expected for row in estimate.rows if row.stage == "review")
    assert known(estimate.remaining).expected == pytest.approx(reviews)


def test_other_questions_have_no_answer(server: FakeServer, storage: str) -> None:
    estimate = forecast(config(server.url, name="other", seed=8), storage)
    assert (estimate.remaining, estimate.is_remaining_sampled) == (None, False)


def test_an_audit_that_was_run_is_counted_exactly(first: AuditConfig, storage: str) -> None:
    estimate = forecast(first, storage)
    assert (known(estimate.remaining).high, estimate.is_remaining_sampled) == (0, False)
