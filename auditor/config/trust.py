"""Which key may go to which host: a config can come from anybody, but a key goes only where its owner allows it.

A key without `api_base` goes to its provider's own servers. With `api_base`, its owner must have allowed the key for
that host, by a line such as `MY_KEY@10.0.0.5:8000` in the user's trust file (`auditor trust CONFIG` writes it) or in
AUDITOR_TRUST. A line without a scheme allows https, and for this machine also http; `MY_KEY@http://10.0.0.5:8000`
allows http.

The same holds for secrets that a config can use without naming a key: credentials of this machine that sign requests
(`AWS_CREDENTIALS@…`, `GOOGLE_CREDENTIALS@…`), the password of a PostgreSQL server that the config's `storage` names
(`PGPASSWORD@…`), and the work sent to a Ray cluster that its `run.ray_address` names (`RAY_ADDRESS@…`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from auditor.config import ENV_PREFIX, AuditConfig, ModelSection
from auditor.config.credential_bindings import CredentialBinding, binding_for_url, extract_host, parse_binding
from auditor.config.model_section import REPLAY_PREFIX
from auditor.config.signed_providers import SIGNED_PROVIDERS, extract_provider, find_signed_provider
from auditor.config.supported_providers import PROVIDERS_WITHOUT_ADDRESS, unsupported_reason
from auditor.config.value_checks import check_base_url
from auditor.errors import ConfigError
from auditor.input_files import read_text

TRUST_VARIABLE = "AUDITOR_TRUST"
STORAGE_KEY, CLUSTER_KEY = "PGPASSWORD", "RAY_ADDRESS"
"""Names in the trust file for the password of a database server, and for work that is sent to a Ray cluster."""
COLLECTOR_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""Environment variable with the collector's URL, for a config with telemetry but without an endpoint."""


def required_bindings(config: AuditConfig, storage_servers: Iterable[str] = ()) -> list[CredentialBinding]:
    """Bindings that the user must allow: keys, credentials, passwords and work that go to servers the config names.

    Args:
        storage_servers: database servers on other machines that the config names.
    """
    model_bindings = [
        binding for model in config.models_by_name.values() if (binding := _model_binding(model)) is not None
    ]
    storage_bindings = [CredentialBinding(STORAGE_KEY, server) for server in storage_servers]
    return list(
        dict.fromkeys([*model_bindings, *_telemetry_bindings(config), *_cluster_bindings(config), *storage_bindings])
    )


def describe_destinations(config: AuditConfig) -> str:
    """Describe in a sentence where an audit's requests and telemetry go."""
    host_by_model = {
        model.name: extract_host(model.api_base) if model.api_base else model.model.split("/", 1)[0]
        for model in config.models_by_name.values()
    }
    destination_phrases = [
        f"{destination} ({', '.join(name for name, host in host_by_model.items() if host == destination)})"
        for destination in dict.fromkeys(host_by_model.values())
    ]
    telemetry_phrase = (
        f" Telemetry goes to: {extract_host(url)}{_telemetry_texts_phrase(config)}."
        if (url := resolve_collector_url(config))
        else ""
    )
    if config.is_simulated:
        has_recorded = any(model.model.startswith(REPLAY_PREFIX) for model in config.models_by_name.values())
        kinds = "simulated or recorded" if has_recorded else "simulated"
        return f"All models are {kinds}: no request leaves this process.{telemetry_phrase}"
    return f"Requests go to: {'; '.join(destination_phrases)}.{telemetry_phrase}"


def require_trust(config: AuditConfig) -> None:
    """Require that the user allows all hosts that get secrets; for `storage` see `require_trusted_storage`.

    Raises:
        ConfigError: a key would go to a host that is not allowed; the message names both. Or a model's provider is
            not supported.
    """
    trusted = load_trusted_bindings()
    require_supported_providers(config)
    for model in config.models_by_name.values():
        if (binding := _model_binding(model)) is not None:
            signed_provider = find_signed_provider(model.model, model.api_key)
            use_phrase = (
                f"use {signed_provider.description} at" if signed_provider else f"send the key {binding.key} to"
            )
            _require_binding(binding, trusted, f"model '{model.name}' would {use_phrase}")
    for binding in _telemetry_bindings(config):
        _require_binding(binding, trusted, f"telemetry would send the key {binding.key} to")
    for binding in _cluster_bindings(config):
        _require_binding(binding, trusted, "run.ray_address would send the audit's work to")


def require_trusted_storage(servers: Iterable[str]) -> None:
    """Require that the user allows the database servers that a config names, which get the user's password.

    Args:
        servers: servers that the config's `storage` names, if that database is to be opened.

    Raises:
        ConfigError: a server is not allowed.
    """
    trusted = load_trusted_bindings()
    for server in servers:
        binding = CredentialBinding(STORAGE_KEY, server)
        _require_binding(
            binding,
            trusted,
            "the configuration's storage would send your database password (PGPASSWORD, ~/.pgpass) to",
        )


def _require_binding(binding: CredentialBinding, trusted: list[CredentialBinding], action: str) -> None:
    """Raise ConfigError, with a message that starts with `action`, if no trusted binding covers this one."""
    if any(trusted_binding.covers(binding) for trusted_binding in trusted):
        return
    destination = (
        binding.host if str(binding) == f"{binding.key}@{binding.host}" else f"{binding.scheme}://{binding.host}"
    )
    message = f"{action} {destination}, which you have not allowed."
    if any(trusted_binding.scheme is None and trusted_binding.covers_host(binding) for trusted_binding in trusted):
        message += f" Your trust file allows this host over https only; {binding.scheme} is not encrypted."
    raise ConfigError(
        message, f"To allow this, run `auditor trust CONFIG`, or add this line to {TRUST_VARIABLE}: {binding}"
    )


def load_trusted_bindings() -> list[CredentialBinding]:
    """Load the bindings that the user's trust file and AUDITOR_TRUST allow.

    Raises:
        ConfigError: a line is not of the form `KEY@HOST`.
    """
    path = trust_file_path()
    lines = read_text(path, ConfigError).splitlines() if path.is_file() else []
    entries = [*(line.split("#", 1)[0] for line in lines), *os.environ.get(TRUST_VARIABLE, "").split(",")]
    return [_parse_trust_line(entry.strip()) for entry in entries if entry.strip()]


def add_trusted_bindings(bindings: Iterable[CredentialBinding]) -> list[CredentialBinding]:
    """Append bindings to the user's trust file; return those that were not allowed before."""
    trusted = load_trusted_bindings()
    new_bindings = [
        binding for binding in bindings if not any(trusted_binding.covers(binding) for trusted_binding in trusted)
    ]
    if new_bindings:
        path = trust_file_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        text = read_text(path, ConfigError) if path.is_file() else ""
        with path.open("a", encoding="utf-8") as file:
            file.write("\n" if text and not text.endswith("\n") else "")  # the last line may lack its line feed
            file.writelines(f"{binding}\n" for binding in new_bindings)
        path.chmod(0o600)
    return new_bindings


def trust_file_path() -> Path:
    """Path of the user's trust file."""
    import platformdirs

    return Path(platformdirs.user_config_dir("auditor", appauthor=False)) / "trust.txt"


def require_supported_providers(config: AuditConfig) -> None:
    """Require that the providers of all models are supported.

    Raises:
        ConfigError: a provider is not supported, or needs an address that is not set.
    """
    for model in config.models_by_name.values():
        _require_supported_provider(model)


def _require_supported_provider(model: ModelSection) -> None:
    """Raise ConfigError if the provider of a model is not supported, or needs an address that is not set."""
    provider = extract_provider(model.model)
    if provider in PROVIDERS_WITHOUT_ADDRESS and model.api_base is None:
        raise ConfigError(
            f"model '{model.name}': the provider '{provider}' has no address of its own, and `api_base` is not set.",
            "Write ai21_chat/MODEL." if provider == "ai21" else "Set it, for example to http://localhost:8000/v1.",
        )
    if (reason := unsupported_reason(provider)) is not None:
        raise ConfigError(
            f"model '{model.name}': {reason}",
            (f"Use an OpenAI-compatible endpoint: openai/MODEL with api_base. Or use {', '.join(SIGNED_PROVIDERS)}."),
        )


def _model_binding(model: ModelSection) -> CredentialBinding | None:
    """Binding of the key or credentials that a model sends; None if it sends no secret to a configured server."""
    signed_provider = find_signed_provider(model.model, model.api_key)
    if signed_provider is not None:
        return (
            binding_for_url(signed_provider.credentials, model.api_base)
            if model.api_base
            else CredentialBinding(signed_provider.credentials, signed_provider.host)
        )
    if model.api_key is None or model.api_base is None:
        return None
    return binding_for_url(model.api_key.removeprefix(ENV_PREFIX), model.api_base)


def _telemetry_bindings(config: AuditConfig) -> list[CredentialBinding]:
    """Bindings of the keys in the headers that go to the telemetry collector."""
    url, section = resolve_collector_url(config), config.telemetry
    if url is None or section is None:
        return []
    return [binding_for_url(value.removeprefix(ENV_PREFIX), url) for value in section.headers.values()]


def _cluster_bindings(config: AuditConfig) -> list[CredentialBinding]:
    """Binding of the Ray cluster that the config names; none if the user's own RAY_ADDRESS names the same one."""
    address = config.run.ray_address
    if config.run.engine != "ray" or not address or address == os.environ.get(CLUSTER_KEY):
        return []
    scheme, _, host = address.lower().rpartition("://")
    return [CredentialBinding(CLUSTER_KEY, host, scheme or None)]


def _telemetry_texts_phrase(config: AuditConfig) -> str:
    """Part of a sentence: that telemetry holds texts; empty if it does not."""
    return ", with questions and answers" if config.telemetry and config.telemetry.texts else ""


def resolve_collector_url(config: AuditConfig) -> str | None:
    """Base URL of the collector that gets an audit's telemetry; None without telemetry.

    Raises:
        ConfigError: neither the config nor the environment names a collector, or the URL is not valid.
    """
    if config.telemetry is None:
        return None
    url = config.telemetry.endpoint or os.environ.get(COLLECTOR_VARIABLE)
    if not url:
        raise ConfigError(
            "the key 'telemetry.endpoint', the address of the monitoring server, is missing.",
            f"Add it, or set the environment variable {COLLECTOR_VARIABLE}.",
        )
    try:
        return check_base_url(url).rstrip("/")
    except ValueError as error:
        message, _, advice = str(error).partition(" How to fix: ")
        raise ConfigError(f"the environment variable {COLLECTOR_VARIABLE}: {message}", advice) from None


def _parse_trust_line(line: str) -> CredentialBinding:
    """Parse a line of the trust file or of AUDITOR_TRUST; raises ConfigError if it is malformed."""
    if (binding := parse_binding(line)) is None:
        raise ConfigError(
            f"'{line}' in {TRUST_VARIABLE} or {trust_file_path()} is not of the form KEY@HOST.",
            "Correct or remove it.",
        )
    return binding
