"""Ray nodes on this machine, with a folder of their own, that ask for a token; some die."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.postgres_server import PASSWORD

TOKEN = "7a0c1e5d9b3f4a6c8e2d0b1f3a5c7e9d"
WAIT_S = 180.0
ADDRESS = r"--address='([^']+)'"
RAY = (sys.executable, "-m", "ray.scripts.scripts")
ON_EVERY_HOST = {
    KEY_VARIABLE: KEY,
    "AUDITOR_TRUST": f"{KEY_VARIABLE}@127.0.0.1",
    "PGPASSWORD": PASSWORD,
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": TOKEN,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_period_ms": "1000",  # a dead node is noticed in seconds and not in half a minute
}
SMALL = ("--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats", "--block")


def environment(**changes: str) -> dict[str, str]:
    """Of a host: the keys, and none of the user's own settings of Ray."""
    return {k: v for k, v in os.environ.items() if not k.startswith("RAY_")} | ON_EVERY_HOST | changes


def descendants(pid: int) -> list[int]:
    """A process and all that it and they have started."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            children.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    pids = [pid]
    for parent_pid in pids:
        pids += children.get(parent_pid, [])
    return pids


@dataclass
class Node:
    """A node that runs."""

    process: subprocess.Popen[str]
    log: Path

    def kill(self) -> None:
        """End it at once with all that runs on it, as when a machine loses its power."""
        family = descendants(self.process.pid)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # all are still before one dies, so that none sees it
            for pid in family:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        self.process.wait(WAIT_S)

    def said(self, pattern: str) -> str:
        """What it prints, once it does."""
        deadline = time.monotonic() + WAIT_S
        while (match := re.search(pattern, self.log.read_text())) is None:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)
        return match[1]


@contextmanager
def node(folder: Path, name: str, *words: str, **changes: str) -> Iterator[Node]:
    """Start one, and end it."""
    log = folder / f"{name}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*RAY, "start", *SMALL, *words],
            env=environment(**changes),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
            start_new_session=True,
        )
    running_node = Node(process, log)
    try:
        yield running_node
    finally:
        running_node.kill()


@contextmanager
def head(folder: Path, name: str, *words: str, **changes: str) -> Iterator[Node]:
    """Start a cluster's first node."""
    head_options = ("--head", "--port=0", "--include-dashboard=false", f"--temp-dir={folder / name}")
    with node(folder, name, *head_options, *words, **changes) as head_node:
        yield head_node


@dataclass
class Clusters:
    """What the tests of Ray share.

    Attributes:
        address: of a cluster of two nodes that asks for a token.
        second: its second node.
        open: address of a cluster that lets everybody in.
        folder: holds all that Ray writes.
    """

    address: str
    second: Node
    open: str
    folder: Path


@contextmanager
def clusters() -> Iterator[Clusters]:
    """Both clusters, started side by side."""
    folder = Path(tempfile.mkdtemp(prefix="aud-ray-"))  # short, since a socket's path may have 107 characters
    try:
        with ExitStack() as stack:
            locked = stack.enter_context(head(folder, "locked"))
            unlocked = stack.enter_context(head(folder, "open", RAY_AUTH_MODE="disabled"))
            address = locked.said(ADDRESS)
            second = stack.enter_context(node(folder, "second", f"--address={address}"))
            shared_clusters = Clusters(address, second, unlocked.said(ADDRESS), folder)
            second.said("(Ray runtime started)")
            yield shared_clusters
    finally:
        shutil.rmtree(folder, ignore_errors=True)
