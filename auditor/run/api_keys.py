"""API keys of a run: check them before the first request, and send them only to trusted servers."""

from __future__ import annotations

import os
from collections.abc import Iterable

from auditor.config import ENV_PREFIX, AuditConfig, ModelSection, resolve_secret
from auditor.config.trust import require_trust, secret_header_variables
from auditor.errors import ConfigError
from auditor.redaction import MIN_SECRET_CHARS, register_secrets


def list_secret_variables(config: AuditConfig) -> tuple[str, ...]:
    """Names of all environment variables that hold a key of the audit, without duplicates."""
    references = [reference for model in config.models_by_name.values() for reference in _list_references(model)]
    if config.telemetry is not None:
        references += config.telemetry.headers.values()
    return tuple(dict.fromkeys(reference.removeprefix(ENV_PREFIX) for reference in references))


def _list_references(model: ModelSection) -> list[str]:
    """References of a model's keys and of the secrets in its headers."""
    header_references = [f"{ENV_PREFIX}{variable}" for variable in secret_header_variables(model).values()]
    return [*model.api_keys, *header_references]


def remember_secrets(variables: Iterable[str]) -> None:
    """Register the values of these environment variables as secrets, as far as they are set."""
    register_secrets(*(os.environ.get(name) for name in variables))


def short_secrets_warning(config: AuditConfig) -> str | None:
    """A warning that names the keys too short to be redacted; None if there is none."""
    lengths = {name: len(os.environ.get(name, "").strip()) for name in list_secret_variables(config)}
    short_names = [name for name, length in lengths.items() if 0 < length < MIN_SECRET_CHARS]
    if not short_names:
        return None
    return (
        f"Warning: the value of {', '.join(short_names)} is shorter than {MIN_SECRET_CHARS} characters. auditor does "
        "not remove it from answers that repeat it. How to fix: use a longer key."
    )


def require_keys(config: AuditConfig, models: Iterable[ModelSection] | None = None) -> None:
    """Check that every key is set, and that the user trusts the servers that get it.

    Args:
        config: the audit's configuration; its trust is checked as a whole.
        models: models that this process sends requests to; all models and judges if None.

    Raises:
        ConfigError: a key is not set, or the user has not allowed it to go to its server.
    """
    require_trust(config)
    for model in config.models_by_name.values() if models is None else models:
        try:
            for reference in _list_references(model):
                resolve_secret(reference)
        except ConfigError as error:
            raise ConfigError(f"model '{model.name}': {error.message}", error.how_to_fix) from None
