"""Metadata services are recognized in every spelling that a resolver accepts."""

from __future__ import annotations

import pytest

from auditor.config.credential_hosts import is_metadata_host
from auditor.config.value_checks import check_base_url


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("169.254.169.254", True), ("[fe80::1]", True), ("fd00:ec2::254", True), ("Metadata.Google.Internal.", True),
        ("0xa9fea9fe", True), ("2852039166", True), ("0251.0376.0251.0376", True), ("169.254.43518", True),
        ("0xA9.254.0251.0xfe", True), ("169.254.169.254.", True), ("[::ffff:169.254.169.254]", True),
        ("::ffff:a9fe:a9fe", True), ("64:ff9b::a9fe:a9fe", True), ("2002:a9fe:a9fe::1", True),
        ("::169.254.169.254", True), ("fe80::1%eth0", True), ("\uff11\uff16\uff19.254.169.254", True),
        ("169\u3002254.169.254", True), ("169%2e254.169.254", True), ("100.100.100.200", True),
        ("fd00:a9fe:a9fe::1", True), ("100.96.0.96", True), ("[::ffff:0:a9fe:a9fe]", True),
        ("168.63.129.16", True), ("192.0.0.192", True), ("fd20:ce::254", True), ("metadata.tencentyun.com", True),
        ("127.0.0.1", False), ("10.0.0.3", False), ("api.openai.com", False), ("::1", False), ("2130706433", False),
        ("[::ffff:127.0.0.1]", False), ("metadata.example.org", False), ("fd00::1", False), ("h", False),
    ],
)  # fmt: skip
def test_metadata_hosts_are_recognized(host: str, expected: bool) -> None:
    assert is_metadata_host(host) is expected


@pytest.mark.parametrize("host", ["169.254.169.254", "0xa9fea9fe", "[::ffff:169.254.169.254]", "metadata"])
def test_a_config_cannot_name_one(host: str) -> None:
    with pytest.raises(ValueError, match="hands out a machine's credentials"):
        check_base_url(f"http://{host}/v1")
