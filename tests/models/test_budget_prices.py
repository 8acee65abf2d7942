"""Prices that a budget needs: those of a model's `base_model`, and how a message names the key to add."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.config import LimitsSection, ModelSection, Price
from auditor.domain import Call, Message, Purpose
from auditor.errors import ConfigError
from auditor.models.budget import charge_estimate, require_prices
from auditor.models.litellm_client import TokenPrice, listed_token_price
from auditor.models.model_prices import token_price

BUDGET = LimitsSection(budget_usd=1.0)
DEPLOYMENT = ModelSection(name="d", model="azure/our-deployment", api_base="https://ours.openai.azure.com")
SERVER = ModelSection(name="s", model="openai/local", api_base="http://localhost:8000/v1")


def test_the_listed_price_of_the_base_model_holds_for_a_deployment_of_any_name() -> None:
    assert token_price(DEPLOYMENT) is None
    with_base_model = DEPLOYMENT.model_copy(update={"base_model": "azure/gpt-4o"})
    listed_price = listed_token_price("azure/gpt-4o")
    assert listed_price is not None
    assert token_price(with_base_model) == listed_price
    require_prices([with_base_model], BUDGET)


def test_the_configs_price_comes_before_that_of_the_base_model() -> None:
    priced = DEPLOYMENT.model_copy(update={"base_model": "azure/gpt-4o", "price": Price(input=1e6, output=2e6)})
    assert token_price(priced) == TokenPrice(1.0, 2.0, 1.0)


def test_the_base_model_says_the_family_unless_the_config_does() -> None:
    with_base_model = DEPLOYMENT.model_copy(update={"base_model": "azure/gpt-4o"})
    assert (DEPLOYMENT.resolved_family, with_base_model.resolved_family) == ("our-deployment", "openai")
    assert with_base_model.model_copy(update={"family": "ours"}).resolved_family == "ours"


def test_the_listed_limit_of_the_base_model_bounds_a_call_without_one() -> None:
    call = Call("d", "azure/our-deployment", (Message("user", "hi there"),), Purpose.DIRECT)
    with_base_model = replace(call, base_model="openai/gpt-4.1")
    assert charge_estimate(with_base_model, TokenPrice(0.0, 1.0, 0.0)).usd == 32_768
    assert with_base_model.key == call.key


@pytest.mark.parametrize(
    ("models", "advice"),
    [
        ([SERVER], "For 's', add price = { input = …, output = … } in US dollars per million tokens"),
        ([DEPLOYMENT], "For 'd', add the model behind the Azure deployment, such as base_model = \"azure/gpt-4o\"."),
        ([DEPLOYMENT], 'base_model = "azure/gpt-4o". Or add price = { input'),
        ([DEPLOYMENT, SERVER], "For 's', add price"),
        (
            [DEPLOYMENT.model_copy(update={"base_model": "azure/gpt-unheard"})],
            "Correct base_model of 'd': 'azure/gpt-unheard' has no listed price. Or add price",
        ),
    ],
)
def test_a_budget_without_a_price_names_the_key_to_add(models: list[ModelSection], advice: str) -> None:
    with pytest.raises(ConfigError) as refused:
        require_prices(models, BUDGET)
    assert advice in refused.value.how_to_fix
    assert refused.value.how_to_fix.endswith("Or remove the budget.")


def test_without_a_budget_no_price_is_needed() -> None:
    require_prices([DEPLOYMENT, SERVER], LimitsSection())
