"""Checks of single values that a type cannot express; each raises a ValueError that says how to fix the value."""

from __future__ import annotations

import math
import re
from datetime import date
from typing import Any, TypeVar
from urllib.parse import urlsplit

from auditor.config.metadata_hosts import is_metadata_host

T = TypeVar("T")
EXAMPLE_URL = "http://localhost:8000/v1"


def check_base_url(url: str) -> str:
    """Return the URL of a server if requests can be sent to it.

    Raises:
        ValueError: no http or https, no host, a port out of range, a user name or password, a space or a control
            character, or a metadata service. The message does not show the URL, which may hold a password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(f"the URL's host or port is not valid. How to fix: Write it like {EXAMPLE_URL}.") from None
    if any(not char.isprintable() or char.isspace() for char in url):
        raise ValueError("the URL contains a space or an invisible character. How to fix: Remove it.")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"the URL does not begin with http:// or https://. How to fix: Write it like {EXAMPLE_URL}.")
    if "@" in parts.netloc:
        raise ValueError("the URL contains a user name or a password. How to fix: Remove it, and use api_key.")
    if not host or port == 0 or not _is_host(host, parts.netloc):
        raise ValueError(f"the URL has no valid host. How to fix: Write it like {EXAMPLE_URL}.")
    if is_metadata_host(host):
        raise ValueError(
            "the URL leads to a link-local address or a cloud's metadata service, which hands out a machine's "
            f"credentials. How to fix: Write the address of the server, like {EXAMPLE_URL}."
        )
    return url


def _is_host(host: str, netloc: str) -> bool:
    """Whether a host is an IPv6 address in brackets, or a name whose length and labels DNS allows."""
    if netloc.startswith("["):
        from ipaddress import AddressValueError, IPv6Address

        try:
            IPv6Address(host)
        except AddressValueError:
            return False
        return netloc.partition("]")[2][:1] in ("", ":")
    # DNS allows 253 characters in a name, and 63 in each of its labels.
    return len(host) <= 253 and all(0 < len(label) <= 63 for label in host.rstrip(".").split("."))


def check_unique(texts: T) -> T:
    """The same value; raises ValueError if it is a list in which a text is repeated."""
    if not isinstance(texts, list):
        return texts
    repeated = [text for text in dict.fromkeys(texts) if texts.count(text) > 1]
    if repeated:
        raise ValueError(f"{', '.join(repeated)} is repeated. How to fix: Name each once.")
    return texts


def check_json_serializable(params: dict[str, Any]) -> dict[str, Any]:
    """Return a model's parameters if JSON can hold them, since they are sent to the provider as JSON.

    Raises:
        ValueError: they hold a date, a time, an infinite number or nan.
    """
    problem = _find_non_json(params)
    if problem is not None:
        raise ValueError(f"{problem} cannot be sent as JSON. How to fix: Use a string or a finite number.")
    return params


PARAMETERS, RELEASED = "parameters", "released"
"""Attributes of a model that have a meaning: the number of its parameters, and the date of its release."""
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def check_attributes(attributes: Any) -> Any:
    """Return a model's attributes with `parameters` as a number and all others as texts.

    Raises:
        ValueError: a value is a list, a table or empty, `parameters` is no number above 0, or `released` no date.
    """
    if not isinstance(attributes, dict):
        return attributes
    checked: dict[str, float | str] = {}
    for key, value in attributes.items():
        text = value.isoformat() if isinstance(value, date) else str(value).strip()
        if not isinstance(value, (str, int, float, date)) or not text:
            raise ValueError(f"'{key}' is not a label. How to fix: Write it like tuning = \"instruct\".")
        if key == PARAMETERS:
            checked[key] = _parse_parameters(text)
        elif key == RELEASED and not re.fullmatch(r"\d{4}(-\d{2}(-\d{2})?)?", text):
            raise ValueError("'released' is not a date. How to fix: Write it like released = 2025-03-01.")
        else:
            checked[key] = text
    return checked


def _parse_parameters(text: str) -> float:
    """The number of parameters, such as 7e9 or "7B"; ValueError if it is none above 0."""
    match = re.fullmatch(r"([0-9.]+(?:e\+?[0-9]+)?)\s*([KMBT]?)", text, re.IGNORECASE)
    try:
        number = float(match[1]) * _UNITS[match[2].upper()] if match else 0.0
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise ValueError(
            "'parameters' is not a number above 0. How to fix: Write it like parameters = 7e9, or parameters = \"7B\"."
        )
    return number


def _find_non_json(value: Any) -> str | None:
    """Description of the first nested value that JSON cannot hold; None if there is none."""
    if isinstance(value, dict):
        return next((problem for child in value.values() if (problem := _find_non_json(child))), None)
    if isinstance(value, list):
        return next((problem for child in value if (problem := _find_non_json(child))), None)
    if isinstance(value, float) and not math.isfinite(value):
        return "an infinite number" if math.isinf(value) else "nan"
    return None if value is None or isinstance(value, (str, int, float)) else "a date or a time"
