"""The keys of a run: all there before anything is asked, and none of them for a stranger."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.config import AuditConfig, ModelSection, resolve_key
from auditor.config.trust import require_trust
from auditor.errors import ConfigError


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
            resolve_key(model.api_key)
        except ConfigError as error:
            raise ConfigError(f"model '{model.name}': {error.message}", error.mend) from None
