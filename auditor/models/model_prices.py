"""The price of a model's tokens: the configuration's, or the one that litellm lists."""

from __future__ import annotations

from auditor.config import EMBEDDED, REPLAY, SIMULATED, ModelSection
from auditor.models import litellm_client
from auditor.models.litellm_client import TokenPrice


def token_price(section: ModelSection) -> TokenPrice | None:
    """US dollars per token: the config's or litellm's listed price; None if unknown.

    It is 0 for an embedded, replayed or simulated model. The listed price is that of `base_model` if the config names
    one.
    """
    if section.provider in (EMBEDDED, REPLAY, SIMULATED):
        return TokenPrice(0.0, 0.0, 0.0)
    if (price := section.price) is not None:
        cached_input_usd = price.input if price.cached_input is None else price.cached_input
        # The config's prices are per million tokens.
        return TokenPrice(price.input / 1e6, price.output / 1e6, cached_input_usd / 1e6)
    if section.base_model is not None:
        return litellm_client.listed_token_price(section.base_model)
    # The user's own server may serve any model under a listed name, so its price is not known.
    return None if section.api_base else litellm_client.listed_token_price(section.model)
