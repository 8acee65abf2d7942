"""Every provider in every situation, as its documented wire format has it, against a hand-written expectation."""

from __future__ import annotations

import copy
import json

import pytest

from auditor.config.providers import provider_of
from auditor.domain import Outcome
from tests.providers.bodies import changed, has_field
from tests.providers.conftest import WRONG_KEY
from tests.providers.dialect import Content, Dialect, Rule, Situation, without_rule
from tests.providers.dialects import DIALECTS
from tests.providers.expectations import Expectation, load_expectations
from tests.providers.openai_body import BASIC_FIELDS
from tests.providers.situations import (
    MAX_ATTEMPTS,
    MAX_RETRY_WAIT_S,
    SETUP_ERROR,
    Observation,
    observe,
    requests_in_turn,
)
from tests.support.audit_configs import KEY
from tests.support.fake_server import FakeServer, Request

MIN_PROVIDERS = 20
MAX_DISCOVERY_REQUESTS = 4
MAX_NOT_APPLICABLE = 40
MIN_RULES = 5
MIN_EXTRA_FIELDS = 3
EXPECTATIONS = {provider: load_expectations(provider) for provider in DIALECTS}
CASES = [
    (provider, situation)
    for provider, expectations in EXPECTATIONS.items()
    for situation, expectation in expectations.items()
    if expectation.not_applicable is None
]
RULES = [(provider, rule) for provider, dialect in DIALECTS.items() for rule in dialect.rules]


def request_of(dialect: Dialect, body: dict[str, object]) -> Request:
    path = "/" + dialect.url.partition("://")[2].partition("/")[2]
    model_path = path.replace("{model}", dialect.model_id(dialect.model))
    return Request(0, model_path, body, {"Host": dialect.url.split("/")[2]}, 0.0, dialect.query)


@pytest.fixture(autouse=True)
def key_of_provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variables that a provider's credentials are in, as right ones."""
    callspec = getattr(request.node, "callspec", None)
    dialect = DIALECTS.get(callspec.params.get("provider", "")) if callspec else None
    if dialect is None:
        return
    if dialect.key_variable is not None:
        monkeypatch.setenv(dialect.key_variable, KEY)
    elif provider_of(dialect.model).is_signed:
        request.getfixturevalue("credentials")
        if callspec is not None and callspec.params.get("situation") is Situation.WRONG_KEY:
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAWRONG")
            monkeypatch.setenv("TEST_GOOGLE_TOKEN", "ya29.wrong-token")


@pytest.mark.parametrize(("provider", "situation"), CASES, ids=[f"{name}-{case.value}" for name, case in CASES])
async def test_each_provider_does_as_expected_in_each_situation(
    provider_server: FakeServer, provider: str, situation: Situation
) -> None:
    key = WRONG_KEY if situation is Situation.WRONG_KEY else KEY
    observation = await observe(DIALECTS[provider], situation, provider_server, key)
    assert_expected(EXPECTATIONS[provider][situation], situation, observation)


@pytest.mark.parametrize("provider", DIALECTS)
async def test_what_was_found_out_is_not_asked_again(provider_server: FakeServer, provider: str) -> None:
    n_discovery = EXPECTATIONS[provider][Situation.DIRECT].discovery_requests
    assert await requests_in_turn(DIALECTS[provider], provider_server, KEY) == [n_discovery + 1, 1, 1]


def assert_expected(expectation: Expectation, situation: Situation, observation: Observation) -> None:
    """Compare what happened with what was expected, most telling first."""
    assert not observation.wrong_addresses
    assert observation.outcome == expectation.outcome, observation
    assert expectation.words in observation.words
    assert expectation.words or expectation.outcome == Outcome.OK or not observation.words, observation.words
    body = observation.answer.attempts[-1].body if observation.answer and observation.answer.attempts else None
    is_from_provider = body is not None and b"litellm" in body.data
    assert is_from_provider or "litellm." not in observation.words.lower()
    assert observation.retry_after_s == expectation.retry_after_s
    n_answering_requests = 0 if observation.answer is None and expectation.outcome != SETUP_ERROR else 1
    is_repeated = situation is Situation.RATE_LIMIT and (expectation.retry_after_s or 0) <= MAX_RETRY_WAIT_S
    if is_repeated and expectation.outcome == Outcome.RATE_LIMITED:
        assert observation.n_requests == observation.n_attempts > MAX_ATTEMPTS, observation
    else:
        n_answering_requests = MAX_ATTEMPTS if is_repeated else n_answering_requests
        assert observation.n_requests == expectation.discovery_requests + n_answering_requests, observation
    if expectation.form is not None:
        assert (observation.form, observation.seen_form) == (expectation.form, expectation.form)
    if expectation.altered is not None:
        assert observation.altered == expectation.altered
    assert observation.n_attempts == observation.n_requests, "an attempt for each request that went out"


@pytest.mark.parametrize("situation", [Situation.WRONG_KEY, Situation.WRONG_MODEL])
@pytest.mark.parametrize("provider", DIALECTS)
async def test_a_dialect_that_takes_any_key_or_model_fails_its_expectation(
    provider_server: FakeServer, provider: str, situation: Situation
) -> None:
    """Authentication and the list of models are rules of a dialect, too: an expectation notices that one is undone."""
    if EXPECTATIONS[provider][situation].not_applicable is not None:
        return
    lenient = copy.copy(DIALECTS[provider])
    lenient.is_authenticated = lambda request: True  # type: ignore[method-assign]
    lenient.model_ids = lambda: frozenset({lenient.model_id(model) for model in (lenient.model, lenient.wrong_model)})  # type: ignore[method-assign]
    key = WRONG_KEY if situation is Situation.WRONG_KEY else KEY
    observation = await observe(lenient, situation, provider_server, key)
    assert observation.outcome != EXPECTATIONS[provider][situation].outcome


@pytest.mark.parametrize(("provider", "rule"), RULES, ids=[f"{name}-{rule.name}" for name, rule in RULES])
def test_each_rule_alone_refuses_its_example(provider: str, rule: Rule) -> None:
    dialect = DIALECTS[provider]
    assert dialect.validate(dialect.valid_body) is None
    body = changed(dialect.valid_body, rule.example)
    refusal = dialect.validate(body)
    assert refusal is not None
    assert refusal.status >= 400
    assert refusal.body == rule.refuse(rule.find(body)).body
    assert without_rule(dialect, rule).validate(body) is None, "another rule refuses it too: this one proves nothing"


@pytest.mark.parametrize("provider", DIALECTS)
def test_each_dialect_has_enough_of_its_own(provider: str) -> None:
    dialect = DIALECTS[provider]
    assert len({rule.name for rule in dialect.rules}) == len(dialect.rules) >= MIN_RULES
    assert "read on 20" in dialect.reference
    request, contents = request_of(dialect, dialect.valid_body), (Content("Yes."), Content("{}", "Reply"))
    bodies = [dialect.completion(content, request).body for content in contents]
    for path in dialect.extra_fields:
        assert any(has_field(body, path) for body in bodies), path
    assert len(set(dialect.extra_fields) - BASIC_FIELDS) >= MIN_EXTRA_FIELDS
    json.dumps(bodies)


@pytest.mark.parametrize("provider", DIALECTS)
def test_each_provider_has_an_expectation_for_each_situation(provider: str) -> None:
    expectations = EXPECTATIONS[provider]
    assert set(expectations) == set(Situation)
    for situation in (Situation.DIRECT, Situation.REVIEW):
        assert expectations[situation].form is not None, situation


def test_discovery_takes_few_requests() -> None:
    for provider, expectations in EXPECTATIONS.items():
        for situation, expectation in expectations.items():
            is_measure = situation is Situation.LOGPROB  # its requests are those of measures that did not work
            assert is_measure or expectation.discovery_requests <= MAX_DISCOVERY_REQUESTS, (provider, situation)


def test_there_are_enough_providers_and_few_gaps() -> None:
    assert len(DIALECTS) >= MIN_PROVIDERS
    gaps = [expectation for table in EXPECTATIONS.values() for expectation in table.values()]
    assert sum(expectation.not_applicable is not None for expectation in gaps) <= MAX_NOT_APPLICABLE
