"""Which key may go to which host: a config can come from anybody, but a key goes only where its owner allows it.

A key without `api_base` goes to its provider's own servers. With one, its owner must have bound the key to that host:
`auditor trust CONFIG` writes a line such as `MY_KEY@10.0.0.5:8000` to a file of the user, or AUDITOR_TRUST holds it. A
line without a scheme means https, and for this machine itself also http; `MY_KEY@http://10.0.0.5:8000` allows http.

The same holds for what needs no key in the config: credentials of this machine that sign requests
(`AWS_CREDENTIALS@…`, `GOOGLE_CREDENTIALS@…`), the password of a PostgreSQL server that the config's `storage` names
(`PGPASSWORD@…`), and a Ray cluster that its `run.ray_address` names (`RAY_ADDRESS@…`), to whose hosts the work goes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from auditor.config import ENV_PREFIX, AuditConfig, ModelSection
from auditor.config.credential_bindings import CredentialBinding, binding_for_url, host_of, parse_binding
from auditor.config.signed_providers import SIGNED_PROVIDERS, find_signed_provider, provider_of
from auditor.config.supported_providers import unsupported_reason
from auditor.config.value_checks import check_base_url
from auditor.errors import ConfigError
from auditor.input_files import read_text

TRUST_VARIABLE = "AUDITOR_TRUST"
STORAGE_KEY, CLUSTER_KEY = "PGPASSWORD", "RAY_ADDRESS"
"""Names in lines of trust for the password of a database server, and for what is sent to a Ray cluster."""
COLLECTOR_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""Where telemetry goes if a config asks for it and names no endpoint of its own."""


def required_bindings(config: AuditConfig, storage_servers: Iterable[str] = ()) -> list[CredentialBinding]:
    """All that the audit sends to servers which the config names: keys, credentials, passwords, work for a cluster.

    Args:
        storage_servers: database servers on other machines that the config names.
    """
    found = [b for m in _all_models(config) if (b := _model_binding(m)) is not None]
    storage = [CredentialBinding(STORAGE_KEY, server) for server in storage_servers]
    return list(dict.fromkeys([*found, *_telemetry_bindings(config), *_cluster_bindings(config), *storage]))


def describe_destinations(config: AuditConfig) -> str:
    """Where an audit's requests go, in a sentence."""
    asked = {m.name: host_of(m.api_base) if m.api_base else m.model.split("/", 1)[0] for m in _all_models(config)}
    places = [
        f"{place} ({', '.join(n for n, p in asked.items() if p == place)})" for place in dict.fromkeys(asked.values())
    ]
    told = (
        f" Telemetry goes to: {host_of(to)}{_telemetry_texts_phrase(config)}." if (to := collector_url(config)) else ""
    )
    return f"Requests go to: {'; '.join(places)}.{told}"


def require_trust(config: AuditConfig) -> None:
    """Make sure that nothing goes to a host that its owner did not allow; for `storage` see `require_trusted_storage`.

    Raises:
        ConfigError: a key would; the message names both. Or a model's provider cannot be held to that.
    """
    trusted = load_trusted_bindings()
    for model in _all_models(config):
        _require_supported_provider(model)
        if (binding := _model_binding(model)) is not None:
            signed = find_signed_provider(model.model, model.api_key)
            what = f"use {signed.description}, at" if signed else f"send the key {binding.key} to"
            _require_binding(binding, trusted, f"model '{model.name}' would {what}")
    for binding in _telemetry_bindings(config):
        _require_binding(binding, trusted, f"telemetry would send the key {binding.key} to")
    for binding in _cluster_bindings(config):
        _require_binding(binding, trusted, "run.ray_address would send the audit's work to")


def require_trusted_storage(servers: Iterable[str]) -> None:
    """Make sure that no password goes to a database server which a config names and its owner did not allow.

    Args:
        servers: those that the config's `storage` names, when it is the one to open.

    Raises:
        ConfigError: one would.
    """
    trusted = load_trusted_bindings()
    for server in servers:
        binding = CredentialBinding(STORAGE_KEY, server)
        _require_binding(
            binding, trusted, "the config's storage would send your database password (PGPASSWORD, ~/.pgpass) to"
        )


def _require_binding(binding: CredentialBinding, trusted: list[CredentialBinding], action: str) -> None:
    if any(known.covers(binding) for known in trusted):
        return
    place = binding.host if str(binding) == f"{binding.key}@{binding.host}" else f"{binding.scheme}://{binding.host}"
    message = f"{action} {place}, which you have not allowed."
    if any(known.scheme is None and known.covers_host(binding) for known in trusted):
        message += f" The line you have for it allows https alone; {binding.scheme} is not encrypted."
    raise ConfigError(
        message, f"If that server may have it: auditor trust CONFIG, or add this line to {TRUST_VARIABLE}: {binding}"
    )


def load_trusted_bindings() -> list[CredentialBinding]:
    """What the user's own file and AUDITOR_TRUST allow.

    Raises:
        ConfigError: a line of them is no `KEY@HOST`.
    """
    path = trust_file_path()
    lines = read_text(path, ConfigError).splitlines() if path.is_file() else []
    words = [*(line.split("#", 1)[0] for line in lines), *os.environ.get(TRUST_VARIABLE, "").split(",")]
    return [_parse_trust_line(word.strip()) for word in words if word.strip()]


def add_trusted_bindings(bindings: Iterable[CredentialBinding]) -> list[CredentialBinding]:
    """Write bindings to the user's own file; returns those that were not there."""
    known = load_trusted_bindings()
    fresh = [b for b in bindings if not any(k.covers(b) for k in known)]
    if fresh:
        path = trust_file_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        text = read_text(path, ConfigError) if path.is_file() else ""
        with path.open("a", encoding="utf-8") as file:
            file.write("\n" if text and not text.endswith("\n") else "")  # an editor may have left the last line open
            file.writelines(f"{b}\n" for b in fresh)
        path.chmod(0o600)
    return fresh


def trust_file_path() -> Path:
    """The user's own file of bindings."""
    import platformdirs

    return Path(platformdirs.user_config_dir("auditor", appauthor=False)) / "trust.txt"


def _all_models(config: AuditConfig) -> list[ModelSection]:
    return list({m.name: m for m in [*config.models, *config.judge_models]}.values())


def _require_supported_provider(model: ModelSection) -> None:
    if (reason := unsupported_reason(provider_of(model.model))) is not None:
        raise ConfigError(
            f"model '{model.name}': {reason}",
            (
                "Use an endpoint that speaks OpenAI's protocol: openai/MODEL with api_base. "
                f"Or use {', '.join(SIGNED_PROVIDERS)}."
            ),
        )


def _model_binding(model: ModelSection) -> CredentialBinding | None:
    signed = find_signed_provider(model.model, model.api_key)
    if signed is not None:
        return (
            binding_for_url(signed.credentials, model.api_base)
            if model.api_base
            else CredentialBinding(signed.credentials, signed.host)
        )
    if model.api_key is None or model.api_base is None:
        return None
    return binding_for_url(model.api_key.removeprefix(ENV_PREFIX), model.api_base)


def _telemetry_bindings(config: AuditConfig) -> list[CredentialBinding]:
    """The keys that go to a collector."""
    to, section = collector_url(config), config.telemetry
    if to is None or section is None:
        return []
    return [binding_for_url(value.removeprefix(ENV_PREFIX), to) for value in section.headers.values()]


def _cluster_bindings(config: AuditConfig) -> list[CredentialBinding]:
    """The cluster that the config names; one that the user's own RAY_ADDRESS names too needs no line."""
    address = config.run.ray_address
    if config.run.engine != "ray" or not address or address == os.environ.get(CLUSTER_KEY):
        return []
    scheme, _, host = address.lower().rpartition("://")
    return [CredentialBinding(CLUSTER_KEY, host, scheme or None)]


def _telemetry_texts_phrase(config: AuditConfig) -> str:
    return ", with questions and answers" if config.telemetry and config.telemetry.texts else ""


def collector_url(config: AuditConfig) -> str | None:
    """Base URL of the collector that an audit tells of its calls; None where it tells none.

    Raises:
        ConfigError: neither the config nor the environment names one.
    """
    if config.telemetry is None:
        return None
    found = config.telemetry.endpoint or os.environ.get(COLLECTOR_VARIABLE)
    if not found:
        raise ConfigError(
            "telemetry: no collector is named.", f"Set endpoint there, or {COLLECTOR_VARIABLE} in the environment."
        )
    try:
        return check_base_url(found).rstrip("/")
    except ValueError as error:
        message, _, advice = str(error).partition(" How to fix: ")
        raise ConfigError(f"telemetry: {COLLECTOR_VARIABLE} in the environment: {message}", advice) from None


def _parse_trust_line(line: str) -> CredentialBinding:
    if (binding := parse_binding(line)) is None:
        raise ConfigError(f"'{line}' in {TRUST_VARIABLE} or {trust_file_path()} is no KEY@HOST.", "Mend or remove it.")
    return binding
