"""The configuration that `auditor init` writes: embedded models, or models of one provider."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any

from auditor.config.providers.record import ADDRESS_PLACEHOLDER, Provider
from auditor.config.providers.table import PROVIDER_BY_NAME, PROVIDER_BY_PREFIX, provider_of
from auditor.config.value_examples import format_value
from auditor.errors import UsageError, did_you_mean

_MODELS_HEADING = "# Any model that litellm supports"
_PEERS_LINE = 'judges = "peers"'
_LOCAL_PRICE_LINE = "price = { input = 0, output = 0 }            # a local server costs nothing"
_UNPRICED_LIMITS_LINE = (
    "limits = { max_attempts = 6, deadline_s = 120 }      # add budget_usd once each model has a price, see below"
)


def read_starter() -> str:
    """The configuration with embedded models, which runs as it is."""
    return (resources.files("auditor.cli") / "starter.toml").read_text(encoding="utf-8")


def find_provider(name: str) -> Provider:
    """Return the provider of that name, or of litellm's prefix; raises UsageError if there is none."""
    provider = PROVIDER_BY_NAME.get(name) or PROVIDER_BY_PREFIX.get(name)
    if provider is None or not provider.name:
        names = ", ".join(PROVIDER_BY_NAME)
        raise UsageError(
            f"'{name}' is not a known provider.", did_you_mean(name, PROVIDER_BY_NAME, f"Choose one of: {names}.")
        )
    return provider


def list_set_keys() -> list[tuple[Provider, str]]:
    """Providers whose key is in the environment, each with the name of its variable; values are not read."""
    return [
        (provider, provider.key_variable)
        for provider in PROVIDER_BY_NAME.values()
        if provider.key_variable is not None and os.environ.get(provider.key_variable)
    ]


def list_unset_variables(providers: Sequence[Provider]) -> list[str]:
    """Names of the environment variables that these providers need and that are not set."""
    names = [name for provider in providers for name in (provider.key_variable, *provider.environment) if name]
    return [name for name in dict.fromkeys(names) if not os.environ.get(name)]


def build_provider_config(
    models: Sequence[str],
    judges: Sequence[str],
    provider: Provider,
    judge_provider: Provider,
    api_base: str | None,
) -> str:
    """Write a configuration with models of one provider, and judges of the same or another one.

    Args:
        models: names of the audited models, with or without litellm's prefix.
        judges: names of the judges; empty for models that judge each other, or for no review of a single model.
        provider: of the models.
        judge_provider: of the judges.
        api_base: address of the models' server; None for the provider's usual one.

    Raises:
        UsageError: no model is named, the provider needs an address, or a value cannot be used.
    """
    if not models:
        raise UsageError("no model is named.", f"Add it, as in --model {provider.example_model}")
    tables = [("models", _model_table(name, provider, api_base)) for name in models]
    # The judges have the same server, unless they are another provider's.
    judge_base = api_base if judge_provider is provider else None
    tables += [("judges", _model_table(name, judge_provider, judge_base)) for name in judges]
    _number_equal_names([table for _, table in tables])
    needs_price = [table for _, table in tables if not _has_price(table)]
    text = _replace_models(read_starter(), "\n".join(_format_tables(tables, needs_price)))
    if judges:
        text = text.replace(_PEERS_LINE, "# The judges are the tables [[judges]] below.")
    elif len(models) < 2:
        text = text.replace(_PEERS_LINE, "judges = []")
    if needs_price:
        text = re.sub(r"^limits = .*$", _UNPRICED_LIMITS_LINE, text, flags=re.MULTILINE)
    _check_config(text)
    return text


def _model_table(model: str, provider: Provider, api_base: str | None) -> dict[str, Any]:
    """One model's table in the configuration; raises UsageError if the provider needs an address."""
    if provider.needs_address and api_base is None:
        raise UsageError(
            f"{provider.title} needs the address of your own deployment, which its web console shows.",
            f"Add it: --api-base {(provider.api_base or '').replace(ADDRESS_PLACEHOLDER, 'my-resource')}",
        )
    table: dict[str, Any] = {"name": model.rsplit("/", 1)[-1], "model": provider.model_id(model)}
    if provider.key_variable is not None:
        table["api_key"] = f"os.environ/{provider.key_variable}"
    if (address := api_base or provider.api_base) is not None:
        table["api_base"] = address
    if provider.params:
        table["params"] = dict(provider.params)
    if provider.is_local:
        table["price"] = {"input": 0, "output": 0}
    return table


def _number_equal_names(tables: Sequence[dict[str, Any]]) -> None:
    """Append a number to the name of each model whose name an earlier, different model has."""
    model_by_name: dict[str, str] = {}
    for table in tables:
        name, number = table["name"], 2
        while model_by_name.get(table["name"], table["model"]) != table["model"]:
            table["name"], number = f"{name}-{number}", number + 1
        model_by_name[table["name"]] = table["model"]


def _has_price(table: dict[str, Any]) -> bool:
    """Whether a budget can hold for the model: its price is listed, or it is free."""
    from auditor.models.litellm_client import listed_token_price  # loads litellm (1 s)

    return "price" in table or ("api_base" not in table and listed_token_price(table["model"]) is not None)


def _format_tables(
    tables: Sequence[tuple[str, dict[str, Any]]], needs_price: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """Yield the lines of the tables, with a comment where a price has to be added."""
    for kind, table in tables:
        yield f"[[{kind}]]"
        for key, entry in table.items():
            yield _LOCAL_PRICE_LINE if key == "price" else f"{key} = {format_value(entry)}"
        if table in needs_price:
            if example := provider_of(table["model"]).base_model_example:
                yield f'# base_model = "{example}"      # the model that this deployment serves, for its price'
            yield "# price = { input = 2.5, output = 10.0 }      # US dollars per million tokens"
        yield ""


def _replace_models(starter: str, tables_text: str) -> str:
    """The starter with other models; what comes before and after them stays."""
    before, after = starter.split(_MODELS_HEADING, 1)[0], starter.split("[probes]", 1)[1]
    remark = "# API keys are read from environment variables. To replace a model or a judge, change these lines."
    return f"{before}{remark}\n{tables_text}\n[probes]{after}"


def _check_config(text: str) -> None:
    """Raise UsageError if the configuration cannot be used, as with a space in a model's name."""
    import pydantic

    from auditor.config import AuditConfig
    from auditor.config.validation_messages import explain_validation_error

    document = tomllib.loads(text)
    try:
        AuditConfig.model_validate(document)
    except pydantic.ValidationError as error:
        raise UsageError(explain_validation_error(error, document, AuditConfig)) from None
