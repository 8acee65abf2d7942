"""The one door to Ray: a cluster that lets nobody in without a token, and workers on its hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from auditor import bootstrap
from auditor.errors import UsageError
from auditor.extras import load_extra

ADDRESS = "RAY_ADDRESS"
MODE, TOKENS = "RAY_AUTH_MODE", ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
NAMESPACE = "auditor"
SKIP = "RAY_DEDUP_LOGS_SKIP_REGEX"
DEATHS = "A worker died or was killed|has been marked dead|killed due to"
"""What Ray prints on the driver's terminal when a worker or its node dies; `log_to_driver` has no effect on that."""
KNOCK = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.argv[1])"
"""Asks a cluster for its name; in a process of its own, since Ray reads once in each whether it has a token to show."""
MEND_TOKEN = (
    "Start all of its nodes with RAY_AUTH_MODE=token and one token (`ray get-auth-token --generate`): docs/scale.md"
)


class Gone(Exception):
    """A worker died, or its host did; what it was doing may be done or not."""


class Hired:
    """A worker on a host of the cluster: an actor of Ray's."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def call(self, method: str, *given: object) -> Any:
        """What a method of the worker returns.

        Raises:
            Gone: the worker is no more.
        """
        import ray.exceptions as failures

        try:
            return await getattr(self._actor, method).remote(*given)
        except failures.RayTaskError:
            raise  # the worker lives; our own program is wrong
        except failures.RayError as error:
            raise Gone(type(error).__name__) from None

    def dismiss(self) -> None:
        """End the worker, if it still lives."""
        import ray

        ray.kill(self._actor)


def hire(kind: type[Any], *, gpus: float) -> Hired:
    """A worker on some host that has a core free and so many GPUs, spread over the cluster; it may be a while coming.

    Args:
        kind: its class; every host has it by the same name.
        gpus: that nobody else may use.
    """
    import ray

    options = {"num_cpus": 1, "num_gpus": gpus, "scheduling_strategy": "SPREAD", "max_restarts": 0}
    return Hired(ray.remote(kind).options(**options).remote())


def hosts() -> int:
    """Nodes of the cluster that are alive and have a core."""
    import ray

    return sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)


@contextmanager
def connected(address: str | None) -> Iterator[str]:
    """A connection to a cluster, ended at the end; yields where that is.

    Args:
        address: `HOST:PORT` of its head; RAY_ADDRESS if not given, and without that one of this machine's own, which
            ends with the connection.

    Raises:
        UsageError: Ray is not installed, there is no such cluster, it asks for no token, or it does not take ours.
    """
    bootstrap.prepare()
    os.environ[MODE] = "token"
    _silence_deaths()
    ray = load_extra("ray", "ray")
    found = address or os.environ.get(ADDRESS)
    if found:
        _require_locked(found)
    own = {} if found else {"include_dashboard": False}
    try:
        ray.init(address=found or "local", namespace=NAMESPACE, log_to_driver=False, configure_logging=False, **own)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0].rstrip(" .")
        raise UsageError(
            f"the Ray cluster at {found or 'this machine'} cannot be used: {said}.",
            "This machine must be one of its nodes, and have its token (RAY_AUTH_TOKEN, or ~/.ray/auth_token).",
        ) from None
    try:
        yield found or "this machine"
    finally:
        ray.shutdown()


def look(address: str | None) -> str:
    """What a run would connect to, without connecting.

    Raises:
        UsageError: Ray is not installed, nobody answers, or everybody may enter.
    """
    _silence_deaths()
    load_extra("ray", "ray")
    found = address or os.environ.get(ADDRESS)
    if found is None:
        return "one of this machine alone will be started"
    _require_locked(found)
    return f"{found} asks for a token"


def _silence_deaths() -> None:
    """Keep Ray's long lines about dead workers off the terminal; its log files keep them, and `Post` says it in short.

    Ray reads the setting when it is imported. A user's own pattern stays.
    """
    theirs = os.environ.get(SKIP)
    if not theirs or DEATHS not in theirs:
        os.environ[SKIP] = f"(?:{theirs})|{DEATHS}" if theirs else DEATHS


def _require_locked(address: str) -> None:
    """Make sure that a cluster lets nobody in without a token: who gets into one runs what he likes on all its hosts.

    Raises:
        UsageError: it does, or nobody answers there.
    """
    if "://" in address or ":" not in address:
        raise UsageError(f"'{address}' is no address of a Ray cluster's head.", "Give it as HOST:PORT.")
    environment = {name: value for name, value in os.environ.items() if name not in TOKENS} | {MODE: "disabled"}
    knocked = subprocess.run(
        [sys.executable, "-P", "-c", KNOCK, address], env=environment, capture_output=True, text=True, check=False
    )
    if knocked.returncode == 0:
        raise UsageError(f"the Ray cluster at {address} lets everybody in, without a token.", MEND_TOKEN)
    if "AuthenticationError" not in knocked.stderr:
        raise UsageError(f"no Ray cluster answers at {address}.", "Look at `ray status` on its head.")
