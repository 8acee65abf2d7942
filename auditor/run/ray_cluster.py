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

ADDRESS_VARIABLE = "RAY_ADDRESS"
AUTH_MODE_VARIABLE, TOKEN_VARIABLES = "RAY_AUTH_MODE", ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
NAMESPACE = "auditor"
LOG_SKIP_VARIABLE = "RAY_DEDUP_LOGS_SKIP_REGEX"
DEATH_LOG_PATTERN = "A worker died or was killed|has been marked dead|killed due to"
"""What Ray prints on the driver's terminal when a worker or its node dies; `log_to_driver` has no effect on that."""
PING_SCRIPT = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.argv[1])"
"""Asks a cluster for its name; in a process of its own, since Ray reads once in each whether it has a token to show."""
TOKEN_HINT = (
    "Start all of its nodes with RAY_AUTH_MODE=token and one token (`ray get-auth-token --generate`): docs/scale.md"
)


class WorkerDied(Exception):
    """A worker died, or its host did; what it was doing may be done or not."""


class RayWorker:
    """A worker on a host of the cluster: an actor of Ray's."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def call_method(self, method: str, *args: object) -> Any:
        """What a method of the worker returns.

        Raises:
            Gone: the worker is no more.
        """
        import ray.exceptions as failures

        try:
            return await getattr(self._actor, method).remote(*args)
        except failures.RayTaskError:
            raise  # the worker lives; our own program is wrong
        except failures.RayError as error:
            raise WorkerDied(type(error).__name__) from None

    def terminate(self) -> None:
        """End the worker, if it still lives."""
        import ray

        ray.kill(self._actor)


def start_worker(actor_class: type[Any], *, n_gpus: float) -> RayWorker:
    """A worker on some host that has a core free and so many GPUs, spread over the cluster; it may be a while coming.

    Args:
        kind: its class; every host has it by the same name.
        gpus: that nobody else may use.
    """
    import ray

    options = {"num_cpus": 1, "num_gpus": n_gpus, "scheduling_strategy": "SPREAD", "max_restarts": 0}
    return RayWorker(ray.remote(actor_class).options(**options).remote())


def count_hosts() -> int:
    """Nodes of the cluster that are alive and have a core."""
    import ray

    return sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)


@contextmanager
def connect_to_cluster(address: str | None) -> Iterator[str]:
    """A connection to a cluster, ended at the end; yields where that is.

    Args:
        address: `HOST:PORT` of its head; RAY_ADDRESS if not given, and without that one of this machine's own, which
            ends with the connection.

    Raises:
        UsageError: Ray is not installed, there is no such cluster, it asks for no token, or it does not take ours.
    """
    bootstrap.prepare_environment()
    os.environ[AUTH_MODE_VARIABLE] = "token"
    _suppress_death_logs()
    ray = load_extra("ray", "ray")
    found = address or os.environ.get(ADDRESS_VARIABLE)
    if found:
        _require_token_auth(found)
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


def describe_cluster(address: str | None) -> str:
    """What a run would connect to, without connecting.

    Raises:
        UsageError: Ray is not installed, nobody answers, or everybody may enter.
    """
    _suppress_death_logs()
    load_extra("ray", "ray")
    found = address or os.environ.get(ADDRESS_VARIABLE)
    if found is None:
        return "one of this machine alone will be started"
    _require_token_auth(found)
    return f"{found} asks for a token"


def _suppress_death_logs() -> None:
    """Keep Ray's long lines about dead workers off the terminal; its log files keep them, and `Post` says it in short.

    Ray reads the setting when it is imported. A user's own pattern stays.
    """
    theirs = os.environ.get(LOG_SKIP_VARIABLE)
    if not theirs or DEATH_LOG_PATTERN not in theirs:
        os.environ[LOG_SKIP_VARIABLE] = f"(?:{theirs})|{DEATH_LOG_PATTERN}" if theirs else DEATH_LOG_PATTERN


def _require_token_auth(address: str) -> None:
    """Make sure that a cluster lets nobody in without a token: who gets into one runs what he likes on all its hosts.

    Raises:
        UsageError: it does, or nobody answers there.
    """
    if "://" in address or ":" not in address:
        raise UsageError(f"'{address}' is no address of a Ray cluster's head.", "Give it as HOST:PORT.")
    environment = {name: value for name, value in os.environ.items() if name not in TOKEN_VARIABLES} | {
        AUTH_MODE_VARIABLE: "disabled"
    }
    knocked = subprocess.run(
        [sys.executable, "-P", "-c", PING_SCRIPT, address], env=environment, capture_output=True, text=True, check=False
    )
    if knocked.returncode == 0:
        raise UsageError(f"the Ray cluster at {address} lets everybody in, without a token.", TOKEN_HINT)
    if "AuthenticationError" not in knocked.stderr:
        raise UsageError(f"no Ray cluster answers at {address}.", "Look at `ray status` on its head.")
