from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from auditor.atomic_files import hash_file
from auditor.models import fetch
from auditor.models.fetch import download
from tests.models.conftest import FileServer

DATA = bytes(range(256)) * 4000  # 1,024,000 bytes, so that a drop at a few hundred thousand is in the middle


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


def test_a_download_is_complete_and_reports_its_progress(file_server: FileServer, tmp_path: Path) -> None:
    file_server.files["/big"] = DATA
    seen: list[tuple[int, int | None]] = []
    download(f"{file_server.url}/big", tmp_path / "big", progress=lambda have, total: seen.append((have, total)))
    assert (tmp_path / "big").read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))
    assert [have for have, _ in seen] == sorted(have for have, _ in seen)


@pytest.mark.usefixtures("no_waiting")
def test_a_dropped_download_resumes_where_it_stopped(file_server: FileServer, tmp_path: Path) -> None:
    file_server.files["/big"], file_server.drops = DATA, [300_000, 200_000]
    download(f"{file_server.url}/big", tmp_path / "big")
    assert (tmp_path / "big").read_bytes() == DATA
    assert file_server.asked_for("/big") == [None, "bytes=300000-", "bytes=500000-"]


def test_a_partial_file_of_an_earlier_process_is_resumed(file_server: FileServer, tmp_path: Path) -> None:
    file_server.files["/big"] = DATA
    (tmp_path / "big").write_bytes(DATA[:777])
    download(f"{file_server.url}/big", tmp_path / "big")
    assert (tmp_path / "big").read_bytes() == DATA
    assert file_server.asked_for("/big") == ["bytes=777-"]


def test_a_server_without_ranges_is_read_from_the_start(file_server: FileServer, tmp_path: Path) -> None:
    file_server.files["/big"], file_server.ranges = DATA, False
    (tmp_path / "big").write_bytes(b"stale")
    download(f"{file_server.url}/big", tmp_path / "big")
    assert (tmp_path / "big").read_bytes() == DATA


def test_a_complete_file_is_not_changed(file_server: FileServer, tmp_path: Path) -> None:
    file_server.files["/big"] = DATA
    (tmp_path / "big").write_bytes(DATA)
    download(f"{file_server.url}/big", tmp_path / "big")
    assert (tmp_path / "big").read_bytes() == DATA


@pytest.mark.usefixtures("no_waiting")
def test_a_server_that_keeps_dropping_is_given_up_and_the_partial_file_stays(
    file_server: FileServer, tmp_path: Path
) -> None:
    file_server.files["/big"], file_server.drops = DATA, [300_000, *[0] * 50]
    with pytest.raises(httpx.TransportError):
        download(f"{file_server.url}/big", tmp_path / "big")
    assert (tmp_path / "big").read_bytes() == DATA[:300_000]
    assert len(file_server.asked_for("/big")) == 1 + fetch.MAX_IDLE_ATTEMPTS


def test_an_unreachable_server_fails_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with pytest.raises(httpx.ConnectError):
        download("http://127.0.0.1:9/big", tmp_path / "big")
    assert waits == []


def test_an_http_error_is_raised(file_server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        download(f"{file_server.url}/none", tmp_path / "none")


def test_a_file_address_is_copied(tmp_path: Path) -> None:
    (tmp_path / "a b").write_bytes(DATA)
    download((tmp_path / "a b").as_uri(), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == DATA


def test_sha256_is_that_of_the_standard(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    # FIPS 180-4, example of "abc".
    assert hash_file(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
