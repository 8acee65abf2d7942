"""Secrets in the HTTP headers that a model's `params` add: named by environment variables, never literal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from auditor.config.model_section import ENV_PREFIX, ModelSection
from auditor.errors import ConfigError

SECRET_NAME = re.compile(r"key|token|secret|auth|cookie|password|credential", re.IGNORECASE)
"""Words in the names of headers that hold a secret."""
SECRET_VALUE = re.compile(
    r"(?:^|[\s:=,;\"'])(?:(?:bearer|basic)\s+\S{8}"
    r"|(?:sk|pk|rk|gsk|hf|r8|fw|co|tgp|xai|csk|pplx|nvapi|glpat|gh[opsu]|github_pat|xox[abprs]|dop_v1|lsv2|whsec)[-_]\S{8}"
    r"|A[KS]IA[0-9A-Z]{12}|AIza\S{8}|ya29\.\S{8}|eyJ\S{8})",
    re.IGNORECASE,
)
"""How the keys of common providers begin, and those of this form that are sent as credentials."""
REFERENCE = re.compile(r"os\.environ/\w+")


def secret_header_variables(model: ModelSection) -> dict[str, str]:
    """Environment variables whose values a model's headers hold, by the name of the header."""
    return {
        name: value.removeprefix(ENV_PREFIX)
        for _, name, value in _iter_headers(model)
        if isinstance(value, str) and REFERENCE.fullmatch(value)
    }


def refuse_literal_secrets(model: ModelSection) -> None:
    """Refuse a header whose value is a secret itself, since the configuration is stored and shared.

    Raises:
        ConfigError: a header holds a secret, or a malformed reference; the message does not show it.
    """
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


def _iter_headers(model: ModelSection) -> Iterator[tuple[str, str, object]]:
    """Yield the parameter, the name and the value of each header in a model's `params`."""
    for table, headers in model.params.items():
        if table.lower().endswith("headers") and isinstance(headers, Mapping):
            for name, value in headers.items():
                yield table, name, value
