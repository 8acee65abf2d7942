"""To which servers keys may go: the trust file, headers that hold secrets, and the check of an audit's keys."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from auditor.config import AuditConfig, resolve_secret
from auditor.config.credential_hosts import (
    CredentialBinding,
    binding_for_url,
    encode_host,
    extract_host,
    parse_binding,
)
from auditor.config.model_section import ENV_PREFIX, ModelSection
from auditor.config.providers import PROVIDERS, REPLAY, unsupported_reason
from auditor.config.value_checks import check_base_url
from auditor.errors import ConfigError
from auditor.input_files import read_text
from auditor.redaction import MIN_SECRET_CHARS, register_secrets

SECRET_NAME = re.compile(r"key|token|secret|auth|cookie|passw|passphrase|pwd|jwt|bearer|credential", re.IGNORECASE)
"""Words in the names of headers that hold a secret."""
SECRET_VALUE = re.compile(
    r"(?:^|[\s:=,;\"'])(?:(?:bearer|basic|token)\s+\S{8}"
    r"|(?:sk|pk|rk|gsk|hf|r8|fw|co|tgp|xai|csk|pplx|nvapi|glpat|gh[opsu]|github_pat|xox[abprs]|dop_v1|lsv2|npm|wandb_v1"
    r"|whsec)[-_]\S{8}"
    r"|A[KS]IA[0-9A-Z]{12}|AIza\S{8}|dapi[0-9a-f]{16}|ya29\.\S{8}|eyJ\S{8})",
    re.IGNORECASE,
)
"""How the keys of common providers begin, and those of this form that are sent as credentials."""
SECRET_PARAM = re.compile(
    r"(?:(?:api|access|auth|bearer|client|private|secret|subscription)[_-]?)*(?:key|token|secret|password)|authorization",
    re.IGNORECASE,
)
"""Names of parameters, and of fields in the query of an address, that hold a secret; not `max_token`, for example."""
KEY_SHAPE = re.compile(
    r"(?:^|[^\w-])(?:(?:(?:sk|xai|csk|pplx|nvapi|glpat|xox[abprs])-|(?:pk|rk|gsk|hf|r8|fw|tgp|gh[opsu]|github_pat|npm)_)"
    r"(?=[\w-]{0,80}[0-9])(?=[\w-]{0,80}[0-9A-Za-z]{16})[\w-]{20}"
    r"|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{35}|dapi[0-9a-f]{32}|ya29\.[\w-]{20}|eyJ[\w-]{10,500}\.eyJ[\w-]{10})"
)
"""Keys of common providers in any text: longer than in `SECRET_VALUE`, since texts have words such as sk-learn, too."""
REFERENCE = re.compile(r"os\.environ/\w+")


def secret_header_variables(model: ModelSection) -> dict[str, str]:
    """Environment variables whose values a model's headers hold, by the name of the header."""
    return {
        name: value.removeprefix(ENV_PREFIX)
        for _, name, value in _iter_headers(model)
        if isinstance(value, str) and REFERENCE.fullmatch(value)
    }


def refuse_literal_secrets(model: ModelSection) -> None:
    """Refuse a secret in a header, another parameter or the address, since the configuration is stored and shared.

    Raises:
        ConfigError: one of them holds a secret, or a header a malformed reference; the message does not show it.
    """
    # A parameter beside these tables is refused by its name (`request_params.check_params`).
    tables = {
        name: value
        for name, value in model.params.items()
        if isinstance(value, (Mapping, list)) and not name.lower().endswith("headers")
    }
    address = urlsplit(model.api_base or "")
    query = dict(parse_qsl(address.query))
    for place, fields in (("params", tables), ("the query of api_base", query)):
        if (
            secret := next((path for path, _ in _iter_texts(fields) if SECRET_PARAM.fullmatch(path[-1])), None)
        ) is not None:
            raise _literal_secret_error(model, ".".join(secret), place)
    for table, name, value in _iter_headers(model):
        text = value if isinstance(value, str) else ""
        is_reference = table == "extra_headers" and REFERENCE.fullmatch(text) is not None
        if not is_reference and (SECRET_NAME.search(name) or SECRET_VALUE.search(text) or text.startswith(ENV_PREFIX)):
            raise ConfigError(
                f"model '{model.name}': the header '{name}' in params.{table} holds a secret.",
                f'Write the name of an environment variable instead: extra_headers = {{ "{name}" = "{ENV_PREFIX}NAME" '
                "}. Set that variable to the whole value of the header, and run `auditor trust CONFIG` if the model "
                "has an api_base.",
            )
    behind_host = {"api_base": address._replace(scheme="", netloc="").geturl()}
    for place, fields in (("params", model.params), ("the model", behind_host)):
        if (secret := next((path for path, text in _iter_texts(fields) if _holds_key(text)), None)) is not None:
            raise _literal_secret_error(model, ".".join(secret), place)


def _holds_key(text: str) -> bool:
    """Whether a text has a key of a common provider, also with characters written as in an address, such as %2D."""
    return any(KEY_SHAPE.search(form) for form in {text, unquote(text), unquote(unquote(text))})


def _literal_secret_error(model: ModelSection, setting: str, place: str) -> ConfigError:
    """Build the error for a secret in a setting, which it does not show."""
    return ConfigError(
        f"model '{model.name}': '{setting}' in {place} holds a secret.",
        f'Remove it. Name the variable that holds it in api_key = "{ENV_PREFIX}NAME" or, if the server expects '
        f'it in another header, in params = {{ extra_headers = {{ "HEADER" = "{ENV_PREFIX}NAME" }} }}.',
    )


def _iter_texts(node: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path of names and the value of each text in parameters, at any depth."""
    if isinstance(node, Mapping):
        for name, child in node.items():
            yield from _iter_texts(child, (*path, str(name)))
    elif isinstance(node, list):
        for child in node:
            yield from _iter_texts(child, path)
    elif isinstance(node, str):
        yield path, node


def _iter_headers(model: ModelSection) -> Iterator[tuple[str, str, object]]:
    """Yield the parameter, the name and the value of each header in a model's `params`."""
    for table, headers in model.params.items():
        if table.lower().endswith("headers") and isinstance(headers, Mapping):
            for name, value in headers.items():
                yield table, name, value


TRUST_VARIABLE = "AUDITOR_TRUST"
STORAGE_KEY, CLUSTER_KEY, TEXTS_KEY = "PGPASSWORD", "RAY_ADDRESS", "TELEMETRY_TEXTS"
"""Names in the trust file for the password of a database server, for work that is sent to a Ray cluster, and for texts
that are sent to a collector of telemetry."""
COLLECTOR_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""Environment variable with the collector's URL, for a config with telemetry but without an endpoint."""


def required_bindings(config: AuditConfig, storage_servers: Iterable[str] = ()) -> list[CredentialBinding]:
    """Bindings that the user must allow: keys, credentials, passwords and work that go to servers the config names.

    Args:
        storage_servers: database servers on other machines that the config names.
    """
    bindings = [binding for model in config.models_by_name.values() for binding in model_bindings(model)]
    storage_bindings = [CredentialBinding(STORAGE_KEY, encode_host(server)) for server in storage_servers]
    return list(dict.fromkeys([*bindings, *_telemetry_bindings(config), *_cluster_bindings(config), *storage_bindings]))


def describe_destinations(config: AuditConfig) -> str:
    """Describe in a sentence where an audit's requests and telemetry go."""
    host_by_model = {
        model.name: extract_host(model.api_base) if model.api_base else model.provider.prefix
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
        has_recorded = any(model.provider is REPLAY for model in config.models_by_name.values())
        kinds = "simulated or recorded" if has_recorded else "simulated"
        return f"All models are {kinds}: no request leaves this process.{telemetry_phrase}"
    return f"Requests go to: {'; '.join(destination_phrases)}.{telemetry_phrase}"


def require_trust(config: AuditConfig) -> None:
    """Require that the user allows all hosts that get secrets; for `storage` see `require_trusted_storage`.

    Raises:
        ConfigError: a key would go to a host that is not allowed; the message names both. Or a model's provider is
            not supported, or one of its headers holds a secret.
    """
    trusted = load_trusted_bindings()
    require_supported_providers(config)
    for model in config.models_by_name.values():
        refuse_literal_secrets(model)
        credentials = model.used_credentials
        for binding in model_bindings(model):
            use_phrase = (
                f"use {credentials.description} at"
                if credentials is not None and binding.key == credentials.name
                else f"send the key {binding.key} to"
            )
            _require_binding(binding, trusted, f"model '{model.name}' would {use_phrase}")
    for binding in _telemetry_bindings(config):
        content = "the audit's questions and answers" if binding.key == TEXTS_KEY else f"the key {binding.key}"
        _require_binding(binding, trusted, f"telemetry would send {content} to")
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
        binding = CredentialBinding(STORAGE_KEY, encode_host(server))
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


def list_new_bindings(bindings: Iterable[CredentialBinding]) -> list[CredentialBinding]:
    """Those bindings that the user does not allow yet."""
    trusted = load_trusted_bindings()
    return [binding for binding in bindings if not any(entry.covers(binding) for entry in trusted)]


def add_trusted_bindings(bindings: Iterable[CredentialBinding]) -> list[CredentialBinding]:
    """Append bindings to the user's trust file; return those that were not allowed before."""
    new_bindings = list_new_bindings(bindings)
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
    provider = model.provider
    if provider.address_advice and model.api_base is None:
        raise ConfigError(
            f"model '{model.name}': the provider '{provider.prefix}' has no address of its own, and `api_base` is not "
            "set.",
            provider.address_advice,
        )
    if (reason := unsupported_reason(provider)) is not None:
        signed = ", ".join(sorted(row.prefix for row in PROVIDERS if row.is_signed))
        raise ConfigError(
            f"model '{model.name}': {reason}",
            f"Use an OpenAI-compatible endpoint: openai/MODEL with api_base. Or use {signed}.",
        )


def model_bindings(model: ModelSection) -> list[CredentialBinding]:
    """Bindings of the keys, or credentials, that a model sends; none for keys that go to its provider's own servers."""
    credentials = model.used_credentials
    keys = [key.removeprefix(ENV_PREFIX) for key in model.api_keys] if credentials is None else [credentials.name]
    names = [*keys, *secret_header_variables(model).values()]
    if model.api_base is not None:
        return [binding_for_url(name, model.api_base) for name in names]
    return [] if credentials is None else [CredentialBinding(name, credentials.host) for name in names]


def _telemetry_bindings(config: AuditConfig) -> list[CredentialBinding]:
    """Bindings of the keys in the headers that go to the telemetry collector, and of the texts, if they go there.

    Texts need none for a collector that the user's environment names too.
    """
    url, section = resolve_collector_url(config), config.telemetry
    if url is None or section is None:
        return []
    needs_texts = section.texts and section.endpoint and section.endpoint != os.environ.get(COLLECTOR_VARIABLE)
    keys = [value.removeprefix(ENV_PREFIX) for value in section.headers.values()]
    return [binding_for_url(key, url) for key in [*keys, *([TEXTS_KEY] if needs_texts else [])]]


def _cluster_bindings(config: AuditConfig) -> list[CredentialBinding]:
    """Binding of the Ray cluster that the config names; none if the user's own RAY_ADDRESS names the same one."""
    address = config.run.ray_address
    if config.run.engine != "ray" or not address or address == os.environ.get(CLUSTER_KEY):
        return []
    scheme, _, host = address.lower().rpartition("://")
    return [CredentialBinding(CLUSTER_KEY, encode_host(host), scheme or None)]


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
