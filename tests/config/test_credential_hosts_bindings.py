"""Tests of credential bindings: a line KEY@HOST of the trust file allows one key for one host."""

from __future__ import annotations

import pytest

from auditor.config.credential_hosts import CredentialBinding, binding_for_url, parse_binding


@pytest.mark.parametrize(
    ("line", "host", "expected"),
    [
        ("K@a.org", "https://a.org:1", True), ("K@a.org", "http://a.org:1", False),
        ("K@a.org:1", "http://a.org:1", False),
        ("K@http://a.org", "http://a.org:1", True), ("K@http://a.org:1/", "http://a.org:1", True),
        ("K@http://a.org", "https://a.org", False), ("K@https://a.org", "https://a.org", True),
        ("K@https://127.0.0.1", "http://127.0.0.1", False), ("K@https://a.org", "a.org", True),
        ("K@127.0.0.1", "http://127.0.0.1:8000", True), ("K@localhost:1", "http://localhost:1", True),
        ("K@[::1]", "http://[::1]:8000", True), ("K@127.0.0.1.evil", "http://127.0.0.1.evil", False),
        ("K@localhost.evil", "http://localhost.evil", False), ("K@10.0.0.1", "http://10.0.0.1", False),
        ("K@HTTP://A.org", "http://a.org", True), ("K@a.org", "ray://a.org", False),
        ("K@a.org", "a.org", True), ("K@a.org", "a.org:8000", True), ("K@a.org:8000", "a.org:8000", True),
        ("K@a.org:8000", "a.org:9", False), ("K@a.org:8000", "a.org", False), ("L@a.org", "a.org", False),
        ("K@a.org", "evil-a.org", False), ("K@a.org", "a.org.evil", False),
    ],
)  # fmt: skip
def test_a_binding_is_of_one_key_and_one_host(line: str, host: str, expected: bool) -> None:
    binding, scheme = parse_binding(line), host.rpartition("://")[0]
    assert binding is not None
    assert binding.covers(binding_for_url("K", host) if scheme else CredentialBinding("K", host)) is expected


@pytest.mark.parametrize(
    "line", ["K@a.org", "K@a.org:8000", "K@http://a.org", "K@http://a.org:8000", "K@127.0.0.1:8000", "K@ray://a.org:1"]
)
def test_a_line_is_written_as_it_is_read(line: str) -> None:
    assert str(parse_binding(line)) == line


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("https://a.org/v1", "K@a.org"), ("http://a.org:8000/v1", "K@http://a.org:8000"),
        ("http://127.0.0.1:8000/v1", "K@127.0.0.1:8000"), ("https://localhost/v1", "K@localhost"),
    ],
)  # fmt: skip
def test_the_line_for_a_server_is_as_short_as_it_can_be(url: str, line: str) -> None:
    assert str(binding_for_url("K", url)) == line
