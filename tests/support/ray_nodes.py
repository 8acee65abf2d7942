"""Ray clusters on this machine with token authentication, whose nodes tests can kill.

As root, each of two nodes is a host: it has its own network namespace, with an address and a cable that can be cut.
Without root, both nodes are on the loopback address.
"""

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
from tests.support.patience import PATIENCE_S

TOKEN = "7a0c1e5d9b3f4a6c8e2d0b1f3a5c7e9d"
ADDRESS = r"--address='([^']+)'"
RAY = (sys.executable, "-m", "ray.scripts.scripts")
NETWORK_NAME, SUBNET = f"aud{os.getpid()}", f"10.{os.getpid() // 256 % 256}.{os.getpid() % 256}"
"""The hosts' network: other test processes of this machine have their own."""
GATEWAY = f"{SUBNET}.1"
"""Address of this machine's end of the network."""
TRUSTED_SERVERS = f"{KEY_VARIABLE}@127.0.0.1,{KEY_VARIABLE}@http://{GATEWAY}"
HOST_ENVIRONMENT = {
    KEY_VARIABLE: KEY,
    "AUDITOR_TRUST": TRUSTED_SERVERS,
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": TOKEN,
    "RAY_USAGE_STATS_ENABLED": "0",
    # A host whose cable is cut is noticed after 15 s and not after a minute.
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
}
STARTED = "Ray runtime started"
START_AGAIN = f'for _ in 1 2 3; do "$@"; grep -q "{STARTED}" "$0" && exit; done'
"""Ray gives a node up that is not registered after 30 s, as on a busy machine, and that limit cannot be set."""
NODE_OPTIONS = ("--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats", "--block")


def environment(**changes: str) -> dict[str, str]:
    """Environment of a host: the keys, without the user's Ray settings."""
    return {k: v for k, v in os.environ.items() if not k.startswith("RAY_")} | HOST_ENVIRONMENT | changes


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended meanwhile
            children.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    pids = [pid]
    for parent_pid in pids:
        pids += children.get(parent_pid, [])
    return pids


@dataclass(frozen=True)
class Host:
    """A host of a cluster.

    Attributes:
        address: of the host.
        namespace: its network namespace; None if it is this machine itself.
    """

    address: str = "127.0.0.1"
    namespace: str | None = None

    def command(self, *words: str) -> list[str]:
        """A command line that runs on the host."""
        return [*(("ip", "netns", "exec", self.namespace) if self.namespace else ()), *words]

    def cut_cable(self) -> None:
        """Separate the host from the others, which are not told."""
        if self.namespace:
            subprocess.run(["ip", "link", "set", self.namespace, "down"], check=True)

    def reconnect(self) -> None:
        if self.namespace:
            subprocess.run(["ip", "link", "set", self.namespace, "up"], check=True)


@contextmanager
def hosts_of_network(count: int) -> Iterator[tuple[str, list[Host]]]:
    """Yield the address by which hosts reach this machine, and so many hosts: namespaces if that is possible."""
    bridge = NETWORK_NAME
    hosts = [Host(f"{SUBNET}.{number}", f"{NETWORK_NAME}-{number}") for number in range(2, count + 2)]
    try:
        try:
            _run_ip(f"link add {bridge} type bridge", f"addr add {GATEWAY}/24 dev {bridge}", f"link set {bridge} up")
            for host in hosts:
                _run_ip(
                    f"netns add {host.namespace}",
                    f"link add {host.namespace} type veth peer name eth0 netns {host.namespace}",
                    f"link set {host.namespace} master {bridge} up",
                    f"-n {host.namespace} link set lo up",
                    f"-n {host.namespace} addr add {host.address}/24 dev eth0",
                    f"-n {host.namespace} link set eth0 up",
                    f"-n {host.namespace} route add default via {GATEWAY}",
                )
        except (OSError, subprocess.CalledProcessError):
            yield "127.0.0.1", [Host()] * count
            return
        yield GATEWAY, hosts
    finally:
        for host in hosts:
            _run_ip(f"netns del {host.namespace}", check=False)
        _run_ip(f"link del {bridge}", check=False)


def _run_ip(*commands: str, check: bool = True) -> None:
    """Run commands of `ip`, which configures networks."""
    for command in commands:
        with ExitStack() as stack:
            if not check:
                stack.enter_context(suppress(OSError))
            subprocess.run(["ip", *command.split()], check=check, capture_output=True)


@dataclass
class Node:
    """A running node.

    Attributes:
        process: `ray start`.
        log: what it prints.
        host: where it runs.
    """

    process: subprocess.Popen[str]
    log: Path
    host: Host

    def kill(self) -> None:
        """Kill the node and all its processes at once, as in a power failure."""
        self.host.cut_cable()
        family = descendants(self.process.pid)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # all are stopped before one dies, so that none reacts
            for pid in family:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        self.process.wait(PATIENCE_S)

    def wait_for_output(self, pattern: str) -> str:
        """Wait until the log matches a pattern; returns its first group."""
        deadline = time.monotonic() + PATIENCE_S
        while (match := re.search(pattern, self.log.read_text())) is None:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)
        return match[1]


@contextmanager
def node(folder: Path, name: str, host: Host, *words: str, **changes: str) -> Iterator[Node]:
    """Start a node, and kill it at the end."""
    log = folder / f"{name}.log"
    start = (*RAY, "start", f"--node-ip-address={host.address}")
    with log.open("w") as output:
        process = subprocess.Popen(
            host.command("sh", "-c", START_AGAIN, str(log), *start, *NODE_OPTIONS, *words),
            env=environment(**changes), stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True,
            start_new_session=True,
        )  # fmt: skip
    running_node = Node(process, log, host)
    try:
        yield running_node
    finally:
        running_node.kill()


@contextmanager
def head(folder: Path, name: str, host: Host, *words: str, **changes: str) -> Iterator[Node]:
    """Start a cluster's head node."""
    head_options = ("--head", "--port=0", "--include-dashboard=false", f"--temp-dir={folder / name}")
    with node(folder, name, host, *head_options, *words, **changes) as head_node:
        yield head_node


@dataclass
class Clusters:
    """The cluster that the tests of Ray share.

    Attributes:
        address: of a cluster of two nodes that asks for a token.
        first: its head node.
        second: its second node.
        folder: contains all files of Ray.
        gateway: address by which the hosts reach this machine.
    """

    address: str
    first: Node
    second: Node
    folder: Path
    gateway: str


@contextmanager
def clusters() -> Iterator[Clusters]:
    """Start the cluster."""
    folder = Path(tempfile.mkdtemp(prefix="aud-ray-"))  # short: a socket's path may have at most 107 characters
    try:
        with ExitStack() as stack:
            gateway, hosts = stack.enter_context(hosts_of_network(2))
            locked = stack.enter_context(head(folder, "locked", hosts[0]))
            address = locked.wait_for_output(ADDRESS)
            second = stack.enter_context(node(folder, "second", hosts[1], f"--address={address}"))
            second.wait_for_output(f"({STARTED})")
            yield Clusters(address, locked, second, folder, gateway)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
