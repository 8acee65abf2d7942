"""Hosts that credentials may be sent to, as lines of the trust file hold them, and hosts that hand some out.

Cloud metadata services hand out a machine's own credentials: no request may go there.
"""

from __future__ import annotations

import functools
import ipaddress
import socket
import unicodedata
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA_HOSTS = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "metadata.azure.internal",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.tencentyun.com",
        "api.metadata.cloud.ibm.com",
        "rancher-metadata",
    }
)
"""Hosts of cloud metadata services."""
METADATA_ADDRESSES = frozenset(
    map(
        ipaddress.ip_address,
        (
            "168.63.129.16",  # Azure's host agent
            "100.100.100.200",  # Alibaba Cloud
            "192.0.0.192",  # Oracle Cloud
            "fd00:ec2::254",  # AWS
            "fd00:ec2::23",  # AWS, credentials of pods
            "fd20:ce::254",  # Google Cloud
            "fd00:42::42",  # Scaleway
            "fd00:a9fe:a9fe::1",  # Akamai (Linode)
            "100.96.0.96",  # Volcano Engine
        ),
    )
)
"""Addresses of metadata services that are not link-local, as those of most clouds are (169.254.169.254)."""
EMBEDDING_PREFIXES = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")))
"""IPv6 networks whose addresses end with an IPv4 address: compatible, and translated by SIIT or NAT64."""


@functools.cache
def is_metadata_host(host: str) -> bool:
    """Whether a host is a link-local address or a cloud's metadata service, in any spelling that a resolver accepts."""
    name = _normalize_host(host)
    if name in METADATA_HOSTS:
        return True
    address = parse_address(name)
    return address is not None and is_metadata_address(address)


def is_metadata_address(address: IPAddress) -> bool:
    """Whether an address is link-local or a metadata service's, also if it is an IPv4 address within an IPv6 one."""
    if address.is_link_local or address in METADATA_ADDRESSES:
        return True
    inner = embedded_address(address)
    return inner is not None and is_metadata_address(inner)


def _normalize_host(host: str) -> str:
    """A host as a resolver reads it: full-width characters and escapes are replaced, brackets and zones removed."""
    text = unicodedata.normalize("NFKC", unquote(host)).replace("\N{IDEOGRAPHIC FULL STOP}", ".")
    return text.strip("[]").partition("%")[0].rstrip(".").lower()


def parse_address(name: str) -> IPAddress | None:
    """Parse an address, also one that resolvers accept in another notation, such as 0xa9fea9fe; None for a name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name))
    except (OSError, ValueError):
        return None


def embedded_address(address: IPAddress) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to; None if it leads to none, or is an IPv4 address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if any(address in network for network in EMBEDDING_PREFIXES):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


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


@functools.lru_cache
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
