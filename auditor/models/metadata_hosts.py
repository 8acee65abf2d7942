"""Addresses of cloud metadata services, which hand out a machine's own credentials: no request is sent to them."""

from __future__ import annotations

import functools
import ipaddress

METADATA_HOSTS = frozenset({"metadata.google.internal", "metadata", "instance-data"})
"""Hosts of cloud metadata services."""


@functools.cache
def is_metadata_host(host: str) -> bool:
    """Whether a host is a link-local address or a cloud's metadata service, which hands out a machine's credentials."""
    if host.lower().rstrip(".") in METADATA_HOSTS:
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    # The IPv6 address of AWS's metadata service is not link-local.
    return address.is_link_local or address == ipaddress.ip_address("fd00:ec2::254")
