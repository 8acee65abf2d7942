"""Addresses of cloud metadata services, which hand out a machine's own credentials: no request is sent to them."""

from __future__ import annotations

import functools
import ipaddress
import socket
import unicodedata
from urllib.parse import unquote

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
EMBEDDING_PREFIXES = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48")))
"""IPv6 networks whose addresses end with an IPv4 address: compatible, and translated by NAT64."""


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
