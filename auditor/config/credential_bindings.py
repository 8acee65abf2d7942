"""Bindings of a credential to a host that it may be sent to, as lines of the trust file hold them."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

from auditor.config.metadata_hosts import embedded_address, parse_address

LOCAL_SUFFIXES = (".local", ".localhost", ".lan", ".internal", ".home.arpa")
"""Ends of names that only a local network has."""


class CredentialBinding(NamedTuple):
    """A key and a host that it may be sent to.

    Attributes:
        key: name of the environment variable that holds the key.
        host: host and port; without a port, the binding allows any port.
        scheme: `http` or `https`; None allows https, and also http if the host is this machine.
    """

    key: str
    host: str
    scheme: str | None = None

    def __str__(self) -> str:
        """The binding as a line of the trust file: `KEY@HOST`, with the scheme if it is not the default one."""
        return (
            f"{self.key}@{self.host}"
            if self._is_default_scheme(self.scheme)
            else f"{self.key}@{self.scheme}://{self.host}"
        )

    def covers(self, other: CredentialBinding) -> bool:
        """Whether this binding in the trust file allows the other one."""
        if not self.covers_host(other):
            return False
        if self.scheme is None:
            return other._is_default_scheme(other.scheme)
        return self.scheme == (other.scheme or "https")

    def covers_host(self, other: CredentialBinding) -> bool:
        """As `covers`, but ignoring the scheme."""
        return self.key == other.key and self.host in (other.host, strip_port(other.host))

    def _is_default_scheme(self, scheme: str | None) -> bool:
        """Whether a binding without a scheme allows this scheme."""
        return scheme in (None, "https") or (scheme == "http" and is_loopback(self.host))


def binding_for_url(key: str, url: str) -> CredentialBinding:
    """Bind a key to the server and the scheme of a URL."""
    return CredentialBinding(key, extract_host(url), urlsplit(url).scheme.lower())


def parse_binding(line: str) -> CredentialBinding | None:
    """Parse a line of the trust file; None if it is not `KEY@HOST` or `KEY@SCHEME://HOST`."""
    key, separator, address = line.partition("@")
    scheme, _, host = address.lower().rpartition("://")
    return CredentialBinding(key, encode_host(host.rstrip("/")), scheme or None) if key and separator and host else None


def extract_host(url: str) -> str:
    """Host of a URL as a connection uses it, with its port, without user name and password."""
    return encode_host(urlsplit(url).netloc.rsplit("@", 1)[-1])


def encode_host(host: str) -> str:
    """A host in lower case and in punycode, so that letters of other scripts show: `xn--pi-7kc.openai.com`."""
    if host.isascii():
        return host.lower()
    import idna  # few hosts have other letters

    name, separator, port = host.rpartition(":")
    name, port = (name, f":{port}") if separator and port.isdigit() else (host, "")
    try:
        return idna.encode(name, uts46=True).decode() + port
    except idna.IDNAError:  # no host that can be connected to
        return host.encode("ascii", "backslashreplace").decode().lower()


def strip_port(host: str) -> str:
    """A host without its port, if it has one."""
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() else host


def is_loopback(host: str) -> bool:
    """Whether a host, with or without a port, is this machine (`localhost` or a loopback address)."""
    name = (host if host.count(":") > 1 and not host.startswith("[") else strip_port(host)).strip("[]")
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_private_address(host: str) -> bool:
    """Whether a host is this machine, or an address or a name that only a local network has."""
    name = host.strip("[]")
    if (address := parse_address(name)) is not None:
        return (embedded_address(address) or address).is_private
    return "." not in name or name.endswith(LOCAL_SUFFIXES)


def display_host(url: str) -> str:
    """A URL's host as a connection uses it (punycode), with its other letters in parentheses if it has any."""
    host = extract_host(url)
    written = urlsplit(url).netloc.rsplit("@", 1)[-1].lower()
    return host if host == written else f"{host} (written as {written}, with letters that may look like others)"
