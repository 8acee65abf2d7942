"""Configurations for tests: a few scripted models over a few cells."""

from __future__ import annotations

from typing import Any

from auditor.config import AuditConfig

KEY = "sk-canary-0123456789"
KEY_VARIABLE = "SCRIPTED_KEY"
THREE_SAMPLES: dict[str, Any] = {"direct": {"samples": 3}}
"""The key `probes` for audits that need several samples of a cell, or many requests; `config` asks for one."""
FOUR_CELLS: dict[str, Any] = {
    "source": "wvs7-sample", "countries": ["Germany", "Nigeria"], "topics": ["homosexuality", "divorce"],
}  # fmt: skip
"""The key `survey` for audits that need no more than two countries and two topics; `config` has nine cells."""


def config(url: str, models: int = 3, **changes: Any) -> AuditConfig:
    """An audit of scripted models; `changes` replace top-level keys."""
    data: dict[str, Any] = {
        "name": "scripted",
        "survey": {
            "source": "wvs7-sample",
            "countries": ["Germany", "Japan", "Nigeria"],
            "topics": ["homosexuality", "divorce", "abortion"],
        },
        "embedding": {"model": "none"},
        "models": [
            {
                "name": f"model-{letter}",
                "model": f"openai/scripted-{letter}",
                "api_base": url,
                "api_key": f"os.environ/{KEY_VARIABLE}",
            }
            for letter in "abcdefgh"[:models]
        ],
        "probes": {"direct": {"samples": 1}},
        "seed": 7,
    }
    return AuditConfig.model_validate(data | changes)


def with_models(audit: AuditConfig, **changes: Any) -> AuditConfig:
    return audit.model_copy(update={"models": [model.model_copy(update=changes) for model in audit.models]})


def scripted_tables(url: str, *names: str, table: str = "models") -> str:
    """The `[[models]]` of a configuration file with scripted models of these names."""
    key = f"os.environ/{KEY_VARIABLE}"
    return "".join(
        f'[[{table}]]\nname = "{name}"\nmodel = "openai/{name}"\napi_base = "{url}"\napi_key = "{key}"\n'
        for name in names
    )


def semantic_audit(url: str, models: int = 2, **settings: Any) -> AuditConfig:
    """An audit of scripted models with settings of the probe `semantic` alone."""
    data = config(url, models).model_dump(mode="json", exclude={"survey", "judges"}, exclude_unset=True)
    return AuditConfig.model_validate(data | {"probes": {"semantic": settings}})


def with_schema_version(audit: AuditConfig, version: int) -> AuditConfig:
    direct = audit.probes.direct and audit.probes.direct.model_copy(update={"schema_version": version})
    return audit.model_copy(update={"probes": audit.probes.model_copy(update={"direct": direct})})
