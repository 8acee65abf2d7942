"""Which model of the user's is set beside which published one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.config.providers.table import PROVIDERS, provider_of
from auditor.errors import UsageError
from auditor.replications.presets import Paper

SERVER_KEYS = ("api_base", "api_key", "capabilities", "timeout_s", "rate_limit_scope", "stream")
"""Settings of a model that say which server answers for it, and how that is asked."""


def split_named_models(paper: Paper, pairs: Sequence[tuple[str, str]]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Separate the values of --as that name a model on the spot, such as `repaired=hosted_vllm/org/tuned`.

    Returns:
        The models by published name, under which they are audited; and the other pairs, for `match_models`.

    Raises:
        UsageError: a published model has two of them.
    """
    published = list_published_models(paper)
    named: dict[str, str] = {}
    others = []
    for left, right in pairs:
        if left not in published or right in published or "/" not in right:
            others.append((left, right))
        elif named.setdefault(left, right) != right:
            raise UsageError(f"--as: two models are beside '{left}': '{named[left]}' and '{right}'.", "Leave one out.")
    return named, others


def build_named_models(named: Mapping[str, str], sections: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sections of models that --as names; their server is that of the file's first model of the same provider.

    Args:
        named: the models by published name, under which they are audited.
        sections: of the models in the user's file.

    Raises:
        UsageError: a published name is one of the file's models, or the provider is a server without a known address.
    """
    models = []
    for name, model in named.items():
        if name in {section["name"] for section in sections}:
            raise UsageError(f"--as {name}={model}: the file has another model '{name}'.", "Leave one out.")
        provider = provider_of(model).prefix
        same = [section for section in sections if section["model"].startswith(f"{provider}/")]
        setups = [setup for setup in PROVIDERS if setup.prefix == provider]
        if not same and setups and all(setup.api_base for setup in setups):
            raise UsageError(
                f"--as {name}={model}: the address of the server is not known.",
                f"Add [[models]] with model = '{provider}/…' and its api_base to the file of --models.",
            )
        first = same[0] if same else {}
        server = {key: first[key] for key in SERVER_KEYS if key in first}
        needed = {param for setup in setups for param in setup.params}
        if params := {key: value for key, value in first.get("params", {}).items() if key in needed}:
            server["params"] = params
        models.append({"name": name, "model": model, **server})
    return models


def list_published_models(paper: Paper) -> set[str]:
    """Names of the models that rows of the paper's tables are of."""
    return {row.model for table in paper.tables for row in table.rows if row.model}


def match_models(paper: Paper, own_models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The model of ours that is set beside each published model.

    Args:
        own_models: names of the audited models.
        pairs: a model of ours and a published one, as the user says; one of ours may be beside several. Models of equal
            names are set beside each other, too.

    Raises:
        UsageError: there is no such model of ours or no such published one, or a published model has two of ours.
    """
    published = list_published_models(paper)
    own_by_published: dict[str, str] = {}
    for own_model, published_model in [(name, name) for name in own_models if name in published] + [*pairs]:
        if own_model not in own_models and own_model in published and published_model in own_models:
            raise UsageError(
                f"--as: '{own_model}' is the published model, and '{published_model}' is yours.",
                f"Write it as --as {published_model}={own_model}.",
            )
        _require_known(own_model, set(own_models), "audited")
        _require_known(published_model, published, "published")
        other = own_by_published.setdefault(published_model, own_model)
        if other != own_model:
            raise UsageError(
                f"--as: two models are beside '{published_model}': '{other}' and '{own_model}'.",
                "Leave one out, or rename the model that has the published name.",
            )
    return own_by_published


def _require_known(name: str, known: set[str], whose: str) -> None:
    """Raise UsageError if there is no model of this name."""
    if name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise UsageError(f"--as: there is no {whose} model '{name}'.", f"The {whose} models are: {listed}.")
