"""Checks of single values that a type cannot say; each raises ValueError with its advice."""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import urlsplit

EXAMPLE_URL = "http://localhost:8000/v1"


def check_base_url(url: str) -> str:
    """The URL of a server, if a request can go there.

    Raises:
        ValueError: no http or https, no host, a port out of range, a user name or password, a space or a control
            character. The message does not show the URL, which may hold a password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(f"its host or port cannot be read. How to fix: Write it as {EXAMPLE_URL}.") from None
    if any(not char.isprintable() or char.isspace() for char in url):
        raise ValueError("has a space or a character that cannot be seen. How to fix: Remove it.")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"does not begin with http:// or https://. How to fix: Write it as {EXAMPLE_URL}.")
    if "@" in parts.netloc:
        raise ValueError("has a user name or a password. How to fix: Remove it, and name a key in api_key.")
    if not host or port == 0 or not _is_host(host, parts.netloc):
        raise ValueError(f"has no host that a request could go to. How to fix: Write it as {EXAMPLE_URL}.")
    return url


def _is_host(host: str, netloc: str) -> bool:
    """Whether it is an IPv6 address in brackets, or a name that DNS can take."""
    if netloc.startswith("["):
        from ipaddress import AddressValueError, IPv6Address

        try:
            IPv6Address(host)
        except AddressValueError:
            return False
        return netloc.partition("]")[2][:1] in ("", ":")
    return len(host) <= 253 and all(0 < len(label) <= 63 for label in host.rstrip(".").split("."))


def check_json_serializable(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters that JSON can hold, as they go to a provider.

    Raises:
        ValueError: a date, or a number that is infinite or none.
    """
    wrong = _find_non_json(params)
    if wrong is not None:
        raise ValueError(f"has {wrong}, which JSON cannot hold. How to fix: Write it as a text or a finite number.")
    return params


def _find_non_json(value: Any) -> str | None:
    if isinstance(value, dict):
        return next((wrong for v in value.values() if (wrong := _find_non_json(v))), None)
    if isinstance(value, list):
        return next((wrong for v in value if (wrong := _find_non_json(v))), None)
    if isinstance(value, float) and not math.isfinite(value):
        return "an infinite number" if math.isinf(value) else "nan"
    return None if value is None or isinstance(value, (str, int, float)) else "a date or a time"
