"""Which key may go to which host: a config can come from anybody, but a key goes only where its owner said.

A key without `api_base` goes to its provider's own servers. With one, its owner must have bound the key to that host:
`auditor trust CONFIG` writes it to a file of the user's own, or AUDITOR_TRUST says it, as in `MY_KEY@10.0.0.5:8000`.
Credentials of this machine, which some providers' requests carry without any key in the config, are always bound so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from auditor.config import ENV_PREFIX, AuditConfig, ModelSection
from auditor.config.signing import SIGNED, UNBOUND, provider_of, signed_by
from auditor.config.values import check_base_url
from auditor.errors import ConfigError
from auditor.input_files import read_text

VARIABLE = "AUDITOR_TRUST"
COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""Where telemetry goes if a config asks for it and names no endpoint of its own."""


class Binding(NamedTuple):
    """A key, by its variable's name, and a host that it may be sent to; a host without a port is any port there."""

    key: str
    host: str

    def __str__(self) -> str:
        return f"{self.key}@{self.host}"

    def covers(self, other: Binding) -> bool:
        """Whether who trusts this trusts the other."""
        return self.key == other.key and self.host in (other.host, other.host.rsplit(":", 1)[0])


def bindings_of(config: AuditConfig) -> list[Binding]:
    """Every key that the audit sends to a server which the config names, and credentials of this machine, in order."""
    found = [b for m in _models(config) if (b := _binding(m)) is not None]
    return list(dict.fromkeys([*found, *_telemetry(config)]))


def destinations(config: AuditConfig) -> str:
    """Where an audit's requests go, in a sentence."""
    asked = {m.name: _host(m.api_base) if m.api_base else m.model.split("/", 1)[0] for m in _models(config)}
    places = [
        f"{place} ({', '.join(n for n, p in asked.items() if p == place)})" for place in dict.fromkeys(asked.values())
    ]
    told = f" Telemetry goes to: {_host(to)}{_texts(config)}." if (to := collector(config)) else ""
    return f"Requests go to: {'; '.join(places)}.{told}"


def require_trust(config: AuditConfig) -> None:
    """Make sure that no key goes to a host that its owner did not name, and no credentials of this machine are used.

    Raises:
        ConfigError: a key would, or they would; the message names both. Or the provider cannot be held to that.
    """
    trusted = trusted_bindings()
    for model in _models(config):
        _require_bound(model)
        binding = _binding(model)
        if binding is not None and not any(known.covers(binding) for known in trusted):
            signed = signed_by(model.model, model.api_key)
            what = f"use {signed.words}, at" if signed else f"send the key {binding.key} to"
            raise ConfigError(
                f"model '{model.name}' would {what} {binding.host}, which you have not allowed.",
                f"If that server may have it: auditor trust CONFIG, or {VARIABLE}={binding}",
            )
    for binding in _telemetry(config):
        if not any(known.covers(binding) for known in trusted):
            raise ConfigError(
                f"telemetry would send the key {binding.key} to {binding.host}, which you have not allowed.",
                f"If that server may have it: auditor trust CONFIG, or {VARIABLE}={binding}",
            )


def trusted_bindings() -> list[Binding]:
    """What the user's own file and AUDITOR_TRUST allow.

    Raises:
        ConfigError: a line of them is no `KEY@HOST`.
    """
    path = trust_file()
    lines = read_text(path, ConfigError).splitlines() if path.is_file() else []
    words = [*(line.split("#", 1)[0] for line in lines), *os.environ.get(VARIABLE, "").split(",")]
    return [_read(word.strip()) for word in words if word.strip()]


def trust(bindings: Iterable[Binding]) -> list[Binding]:
    """Write bindings to the user's own file; returns those that were not there."""
    known = trusted_bindings()
    fresh = [b for b in bindings if not any(k.covers(b) for k in known)]
    if fresh:
        path = trust_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{b}\n" for b in fresh)
        path.chmod(0o600)
    return fresh


def trust_file() -> Path:
    """The user's own file of bindings."""
    import platformdirs

    return Path(platformdirs.user_config_dir("auditor", appauthor=False)) / "trust.txt"


def _models(config: AuditConfig) -> list[ModelSection]:
    return list({m.name: m for m in [*config.models, *config.judge_models]}.values())


def _require_bound(model: ModelSection) -> None:
    if provider_of(model.model) in UNBOUND:
        raise ConfigError(
            f"model '{model.name}': '{provider_of(model.model)}' finds credentials and servers by itself, past what "
            "keeps keys and answers within bounds here.",
            f"Reach the model by {', '.join(SIGNED)}, or by an endpoint of OpenAI's form: openai/... with api_base.",
        )


def _binding(model: ModelSection) -> Binding | None:
    signed = signed_by(model.model, model.api_key)
    if signed is not None:
        return Binding(signed.credentials, _host(model.api_base) if model.api_base else signed.host)
    if model.api_key is None or model.api_base is None:
        return None
    return Binding(model.api_key.removeprefix(ENV_PREFIX), _host(model.api_base))


def _telemetry(config: AuditConfig) -> list[Binding]:
    """The keys that go to a collector."""
    to, section = collector(config), config.telemetry
    if to is None or section is None:
        return []
    return [Binding(value.removeprefix(ENV_PREFIX), _host(to)) for value in section.headers.values()]


def _texts(config: AuditConfig) -> str:
    return ", with questions and answers" if config.telemetry and config.telemetry.texts else ""


def collector(config: AuditConfig) -> str | None:
    """Base URL of the collector that an audit tells of its calls; None where it tells none.

    Raises:
        ConfigError: neither the config nor the environment names one.
    """
    if config.telemetry is None:
        return None
    found = config.telemetry.endpoint or os.environ.get(COLLECTOR)
    if not found:
        raise ConfigError(
            "telemetry: no collector is named.", f"Set endpoint there, or {COLLECTOR} in the environment."
        )
    try:
        return check_base_url(found).rstrip("/")
    except ValueError as error:
        message, _, advice = str(error).partition(" How to fix: ")
        raise ConfigError(f"telemetry: {COLLECTOR} in the environment: {message}", advice) from None


def _host(url: str) -> str:
    return urlsplit(url).netloc.rsplit("@", 1)[-1].lower()


def _read(word: str) -> Binding:
    key, at, host = word.partition("@")
    if not (key and at and host):
        raise ConfigError(f"'{word}' in {VARIABLE} or {trust_file()} is no KEY@HOST.", "Mend or remove it.")
    return Binding(key, host.lower())
