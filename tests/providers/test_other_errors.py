"""Errors beyond the ten situations that providers word in ways of their own: spent accounts, filters that users set."""

from __future__ import annotations

import copy

import pytest

from auditor.domain import Outcome
from tests.providers.dialect import Situation
from tests.providers.dialects import DIALECTS
from tests.providers.situations import SETUP_ERROR, Observation, observe
from tests.support.audit_configs import KEY
from tests.support.fake_server import FakeServer, Reply

XAI_CREDITS = (
    "Your team 16f2151a-40f4-4a80-8ad0-cae00c27e8dd has either used all available credits or reached its monthly "
    "spending limit. To continue making API requests, please purchase more credits or raise your spending limit."
)
FIREWORKS_SUSPENDED = (
    "Account analyst is suspended, possibly due to reaching the monthly spending limit or failure to pay past "
    "invoices. Please go to https://fireworks.ai/account/billing for more information."
)
# Provider, its response, and what the user is shown.
SPENT_ACCOUNTS = {
    # api-docs.deepseek.com/quick_start/error_codes
    "deepseek": ("deepseek",
                 Reply(402, {"error": {"message": "Insufficient Balance", "type": "unknown_error", "param": None}}),
                 "Insufficient Balance"),
    # github.com/continuedev/continue/issues/10373
    "xai-429": ("xai", Reply(429, {"code": "Some resource has been exhausted", "error": XAI_CREDITS}),
                "used all available credits"),
    # github.com/warpdotdev/warp/issues/14867
    "xai-403": ("xai", Reply(403, {"code": "permission-denied", "error": XAI_CREDITS}), "used all available credits"),
    # github.com/FerroxLabs/wayland/issues/545
    "fireworks_ai": ("fireworks_ai",
                     Reply(412,
                           {"error": {"message": FIREWORKS_SUSPENDED, "code": "PRECONDITION_FAILED", "type": "error"}}),
                     "is suspended"),
}  # fmt: skip


async def observe_reply(
    provider: str, reply: Reply, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> Observation:
    """What happens if a provider answers every request with this response."""
    dialect = copy.copy(DIALECTS[provider])
    monkeypatch.setattr(dialect, "rate_limited", lambda _: reply, raising=False)
    assert dialect.key_variable is not None
    monkeypatch.setenv(dialect.key_variable, KEY)
    return await observe(dialect, Situation.RATE_LIMIT, server, KEY)


@pytest.mark.parametrize(("provider", "reply", "words"), SPENT_ACCOUNTS.values(), ids=SPENT_ACCOUNTS)
async def test_a_spent_account_ends_the_run_with_the_providers_words(
    provider_server: FakeServer, monkeypatch: pytest.MonkeyPatch, provider: str, reply: Reply, words: str
) -> None:
    observation = await observe_reply(provider, reply, provider_server, monkeypatch)
    assert observation.outcome == SETUP_ERROR, observation
    assert words in observation.words
    assert "Top up" in observation.words
    assert observation.n_requests == 1


async def test_a_guardrail_of_the_users_own_refuses_one_prompt_and_not_the_model(
    provider_server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # github.com/mistralai/platform-docs-public, studio-api/conversations/moderation
    body = {
        "error": {"message": "Content blocked by guardrail", "status": 403},
        "guardrails": {"results": {"moderation_llm_v2": {"violated": True, "action": "block"}}},
    }
    observation = await observe_reply("mistral", Reply(403, body), provider_server, monkeypatch)
    assert observation.outcome == Outcome.REFUSED, observation
    assert "Content blocked by guardrail" in observation.words
    assert observation.n_requests == 1
