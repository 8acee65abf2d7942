"""A key and a host that it may be sent to, as a line of trust has it."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit


class CredentialBinding(NamedTuple):
    """A key, by its variable's name, and a host that it may be sent to.

    Attributes:
        host: with its port; without one, it is any port there.
        scheme: `http` or `https`; None is https, and http too where the host is this machine.
    """

    key: str
    host: str
    scheme: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.key}@{self.host}"
            if self._is_default_scheme(self.scheme)
            else f"{self.key}@{self.scheme}://{self.host}"
        )

    def covers(self, other: CredentialBinding) -> bool:
        """Whether a user who allows this also allows the other."""
        if not self.covers_host(other):
            return False
        if self.scheme is None:
            return other._is_default_scheme(other.scheme)
        return self.scheme == (other.scheme or "https")

    def covers_host(self, other: CredentialBinding) -> bool:
        """As `covers`, whatever the scheme."""
        return self.key == other.key and self.host in (other.host, _strip_port(other.host))

    def _is_default_scheme(self, scheme: str | None) -> bool:
        """Whether a line without a scheme means this one too."""
        return scheme in (None, "https") or (scheme == "http" and is_loopback(self.host))


def binding_for_url(key: str, url: str) -> CredentialBinding:
    """The binding of a key to the server of a URL."""
    return CredentialBinding(key, host_of(url), urlsplit(url).scheme.lower())


def parse_binding(line: str) -> CredentialBinding | None:
    """The binding in a line of trust; None if it is not `KEY@HOST` or `KEY@SCHEME://HOST`."""
    key, at, address = line.partition("@")
    scheme, _, host = address.lower().rpartition("://")
    return CredentialBinding(key, host.rstrip("/"), scheme or None) if key and at and host else None


def host_of(url: str) -> str:
    """The host of a URL, with its port, without a user."""
    return urlsplit(url).netloc.rsplit("@", 1)[-1].lower()


def _strip_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def is_loopback(host: str) -> bool:
    """Whether a host, with or without a port, is this machine itself."""
    name = (host if host.count(":") > 1 and not host.startswith("[") else _strip_port(host)).strip("[]")
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
