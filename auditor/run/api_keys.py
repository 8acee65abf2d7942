"""The keys of a run: all there before anything is asked, and none of them for a stranger."""

from __future__ import annotations

import os
from collections.abc import Iterable

from auditor.config import ENV_PREFIX, AuditConfig, ModelSection, resolve_secret
from auditor.config.trust import require_trust
from auditor.errors import ConfigError
from auditor.redaction import MIN_SECRET_CHARS, register_secrets


def list_secret_variables(config: AuditConfig) -> tuple[str, ...]:
    """Names of all variables that hold a key of the audit."""
    references = [m.api_key for m in [*config.models, *config.judge_models] if m.api_key]
    if config.telemetry is not None:
        references += config.telemetry.headers.values()
    return tuple(dict.fromkeys(reference.removeprefix(ENV_PREFIX) for reference in references))


def remember_secrets(variables: Iterable[str]) -> None:
    """Remove the values of these variables from all texts, as far as they are set here."""
    register_secrets(*(os.environ.get(name) for name in variables))


def short_secrets_warning(config: AuditConfig) -> str | None:
    """Which keys are too short to be removed from texts; None if none is."""
    lengths = {name: len(os.environ.get(name, "").strip()) for name in list_secret_variables(config)}
    short = [name for name, length in lengths.items() if 0 < length < MIN_SECRET_CHARS]
    if not short:
        return None
    return (
        f"Warning: the value of {', '.join(short)} is shorter than {MIN_SECRET_CHARS} characters. auditor does not "
        "remove it from answers that repeat it. How to fix: use a longer key."
    )


def require_keys(config: AuditConfig, models: Iterable[ModelSection] | None = None) -> None:
    """Make sure that every key is set, and goes only where its owner allows.

    Args:
        models: those that are asked from here; all if not given.

    Raises:
        ConfigError: the first that is not, or does not.
    """
    require_trust(config)
    for model in [*config.models, *config.judge_models] if models is None else models:
        if model.api_key is None:
            continue
        try:
            resolve_secret(model.api_key)
        except ConfigError as error:
            raise ConfigError(f"model '{model.name}': {error.message}", error.how_to_fix) from None
