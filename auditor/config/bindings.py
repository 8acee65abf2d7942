"""A key and a host that it may be sent to, and what a database URL would be sent."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

from auditor.errors import ConfigError

STORAGE_KEY = "PGPASSWORD"
"""Name in a line of trust for the password of a database server."""
STORAGE_PARAMETERS = frozenset(
    (
        *("host", "hostaddr", "port", "user", "dbname", "database", "password", "options", "application_name"),
        *(
            "sslmode",
            "sslrootcert",
            "sslcert",
            "sslkey",
            "sslcrl",
            "channel_binding",
            "require_auth",
            "connect_timeout",
        ),
        *("target_session_attrs", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
        *("tcp_user_timeout", "client_encoding", "gssencmode", "krbsrvname", "context"),
    )
)
"""Parameters of a connection that a config may set: none names a server past `host` and `hostaddr`."""
UNENCRYPTED = ("disable", "allow", "prefer")
"""Values of `sslmode` with which a server may be sent plain text."""


class Binding(NamedTuple):
    """A key, by its variable's name, and a host that it may be sent to.

    Attributes:
        host: with its port; without one, it is any port there.
        scheme: `http` or `https`; None is https, and http too where the host is this machine.
    """

    key: str
    host: str
    scheme: str | None = None

    def __str__(self) -> str:
        return f"{self.key}@{self.host}" if self._is_implied(self.scheme) else f"{self.key}@{self.scheme}://{self.host}"

    def covers(self, other: Binding) -> bool:
        """Whether a user who allows this also allows the other."""
        if not self.covers_host(other):
            return False
        if self.scheme is None:
            return other._is_implied(other.scheme)
        return self.scheme == (other.scheme or "https")

    def covers_host(self, other: Binding) -> bool:
        """As `covers`, whatever the scheme."""
        return self.key == other.key and self.host in (other.host, _without_port(other.host))

    def _is_implied(self, scheme: str | None) -> bool:
        """Whether a line without a scheme means this one too."""
        return scheme in (None, "https") or (scheme == "http" and _is_loopback(self.host))


def binding_to(key: str, url: str) -> Binding:
    """The binding of a key to the server of a URL."""
    return Binding(key, host_of(url), urlsplit(url).scheme.lower())


def parse_binding(line: str) -> Binding | None:
    """The binding in a line of trust; None if it is not `KEY@HOST` or `KEY@SCHEME://HOST`."""
    key, at, address = line.partition("@")
    scheme, _, host = address.lower().rpartition("://")
    return Binding(key, host.rstrip("/"), scheme or None) if key and at and host else None


def host_of(url: str) -> str:
    """The host of a URL, with its port, without a user."""
    return urlsplit(url).netloc.rsplit("@", 1)[-1].lower()


def storage_bindings(url: str) -> list[Binding]:
    """The servers on other machines that a database URL names.

    Raises:
        ConfigError: the URL sets a parameter that no config may.
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    try:
        parsed = make_url(url)
        if parsed.get_backend_name() != "postgresql":
            return []
        _, settings = parsed.get_dialect()().create_connect_args(parsed)
    except (ArgumentError, NoSuchModuleError, ImportError):
        return []  # it cannot be opened either, and whoever opens it says why
    if unknown := sorted(settings.keys() - STORAGE_PARAMETERS):
        raise ConfigError(
            f"storage: a config may not set the parameter '{unknown[0]}' of the database URL.",
            "Leave it out, or give the URL with --storage or AUDITOR_STORAGE.",
        )
    ports = str(settings.get("port") or "").split(",")
    names = [name for key in ("host", "hostaddr") for name in str(settings.get(key) or "").split(",")]
    remote = [(name, ports[min(i, len(ports) - 1)]) for i, name in enumerate(names) if _is_remote(name)]
    if remote and settings.get("sslmode") in UNENCRYPTED:
        raise ConfigError(
            f"storage: a config may not set sslmode={settings['sslmode']} for {remote[0][0]}, which allows plain text.",
            "Leave it out, or give the URL with --storage or AUDITOR_STORAGE.",
        )
    hosts = [f"[{name}]" if ":" in name else name for name, _ in remote]
    return [
        Binding(STORAGE_KEY, f"{host}:{port}".rstrip(":").lower())
        for host, (_, port) in zip(hosts, remote, strict=True)
    ]


def _is_remote(name: str) -> bool:
    """Whether a PostgreSQL host is on another machine: neither empty, nor a Unix socket, nor the loopback interface."""
    return bool(name) and not name.startswith(("/", "@")) and not _is_loopback(name)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _is_loopback(host: str) -> bool:
    """Whether a host, with or without a port, is this machine itself."""
    name = (host if host.count(":") > 1 and not host.startswith("[") else _without_port(host)).strip("[]")
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
