"""Ray clusters on this machine with token authentication, whose nodes tests can kill."""

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
TIMEOUT_S = 180.0
ADDRESS = r"--address='([^']+)'"
RAY = (sys.executable, "-m", "ray.scripts.scripts")
HOST_ENVIRONMENT = {
    KEY_VARIABLE: KEY,
    "AUDITOR_TRUST": f"{KEY_VARIABLE}@127.0.0.1",
    "PGPASSWORD": PASSWORD,
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": TOKEN,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_period_ms": "1000",  # a dead node is noticed in seconds and not in half a minute
}
NODE_OPTIONS = ("--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats", "--block")


def environment(**changes: str) -> dict[str, str]:
    """Environment of a host: the keys, without the user's Ray settings."""
    return {k: v for k, v in os.environ.items() if not k.startswith("RAY_")} | HOST_ENVIRONMENT | changes


def descendants(pid: int) -> list[int]:
    """Process ids of a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended meanwhile
            children.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    pids = [pid]
    for parent_pid in pids:
        pids += children.get(parent_pid, [])
    return pids


@dataclass
class Node:
    """A running node."""

    process: subprocess.Popen[str]
    log: Path

    def kill(self) -> None:
        """Kill the node and all its processes at once, as in a power failure."""
        family = descendants(self.process.pid)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # all are stopped before one dies, so that none reacts
            for pid in family:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        self.process.wait(TIMEOUT_S)

    def wait_for_output(self, pattern: str) -> str:
        """Wait until the log matches a pattern; returns its first group."""
        deadline = time.monotonic() + TIMEOUT_S
        while (match := re.search(pattern, self.log.read_text())) is None:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)
        return match[1]


@contextmanager
def node(folder: Path, name: str, *words: str, **changes: str) -> Iterator[Node]:
    """Start a node, and kill it at the end."""
    log = folder / f"{name}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*RAY, "start", *NODE_OPTIONS, *words],
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
    """Start a cluster's head node."""
    head_options = ("--head", "--port=0", "--include-dashboard=false", f"--temp-dir={folder / name}")
    with node(folder, name, *head_options, *words, **changes) as head_node:
        yield head_node


@dataclass
class Clusters:
    """The clusters that the tests of Ray share.

    Attributes:
        address: of a cluster of two nodes that asks for a token.
        second: its second node.
        open: address of a cluster without authentication.
        folder: contains all files of Ray.
    """

    address: str
    second: Node
    open: str
    folder: Path


@contextmanager
def clusters() -> Iterator[Clusters]:
    """Start both clusters."""
    folder = Path(tempfile.mkdtemp(prefix="aud-ray-"))  # short: a socket's path may have at most 107 characters
    try:
        with ExitStack() as stack:
            locked = stack.enter_context(head(folder, "locked"))
            unlocked = stack.enter_context(head(folder, "open", RAY_AUTH_MODE="disabled"))
            address = locked.wait_for_output(ADDRESS)
            second = stack.enter_context(node(folder, "second", f"--address={address}"))
            shared_clusters = Clusters(address, second, unlocked.wait_for_output(ADDRESS), folder)
            second.wait_for_output("(Ray runtime started)")
            yield shared_clusters
    finally:
        shutil.rmtree(folder, ignore_errors=True)
