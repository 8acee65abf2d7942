"""Connect to a Ray cluster that requires a token, and start workers on its hosts; the only module that imports Ray."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from auditor import bootstrap
from auditor.errors import AuditorError, UsageError
from auditor.extras import load_extra
from auditor.lazy_imports import import_when_used

if not TYPE_CHECKING:
    ray = import_when_used("ray")
    failures = import_when_used("ray.exceptions")
else:
    import ray
    import ray.exceptions as failures

ADDRESS_VARIABLE = "RAY_ADDRESS"
AUTH_MODE_VARIABLE, TOKEN_VARIABLES = "RAY_AUTH_MODE", ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
NAMESPACE = "auditor"
LOG_SKIP_VARIABLE = "RAY_DEDUP_LOGS_SKIP_REGEX"
DEATH_LOG_PATTERN = "A worker died or was killed|has been marked dead|killed due to|Raylet is terminated"
"""What Ray prints on the driver's terminal when a worker or its node dies; `log_to_driver` has no effect on that."""
RAY_LOG_FOLDER = "/tmp/ray/session_latest/logs"
"""Ray's default folder for logs."""
PING_SCRIPT = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.argv[1])"
"""Connects to a cluster; run in a process of its own, since Ray reads its authentication settings once per process."""
TOKEN_HINT = (
    "Start all of its nodes with RAY_AUTH_MODE=token and one token (`ray get-auth-token --generate`): docs/scale.md"
)


class WorkerDied(Exception):
    """A worker or its host died; whether its open requests were completed is unknown. Ray starts the worker again."""


class RayWorker:
    """A worker on a host of the cluster: a Ray actor, which Ray starts again, on any host, when it dies."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def call_method(self, method: str, *args: object) -> Any:
        """Call a method of the worker, and return its result.

        Raises:
            WorkerDied: the worker or its host died.
            AuditorError: Ray cannot start the worker, or has stopped on this machine.
        """
        try:
            return await getattr(self._actor, method).remote(*args)
        except failures.RayTaskError:
            raise  # the method raised it: a bug, and the worker is alive
        except failures.ActorDiedError as error:  # for good: Ray does not start it again
            raise await asyncio.to_thread(_describe_final_death, error) from None
        except failures.RayError as error:
            raise WorkerDied(type(error).__name__) from None

    def restart(self) -> None:
        """Kill the worker; Ray starts it again."""
        ray.kill(self._actor, no_restart=False)

    def terminate(self) -> None:
        """Kill the worker for good, if it is alive."""
        ray.kill(self._actor)


def _describe_final_death(error: Exception) -> AuditorError:
    """The error for a worker that Ray does not start again."""
    node_id = ray.get_runtime_context().get_node_id()
    if not any(node["Alive"] and node["NodeID"] == node_id for node in ray.nodes()):
        return AuditorError(
            "Ray has stopped on this machine.",
            f"Its logs have the cause (default: {RAY_LOG_FOLDER}). To resume, run the same command again. Recorded "
            "answers are kept.",
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return AuditorError(
        f"Ray cannot start a worker: {lines[-1] if lines else type(error).__name__}",
        "Install the same versions of auditor, Python and Ray on every host.",
    )


def start_worker(actor_class: type[Any], worker_config: object, *, n_gpus: float) -> RayWorker:
    """Request a worker on a host with a free core and enough GPUs; workers are spread over the hosts.

    Returns at once; the worker starts when a host is free.

    Args:
        actor_class: the worker's class, importable on every host.
        worker_config: argument of its constructor. Ray stores it, so it must hold no secret.
        n_gpus: number of GPUs reserved for the worker; may be a fraction.
    """
    options = {
        "num_cpus": 1,
        "num_gpus": n_gpus,
        "scheduling_strategy": "SPREAD",
        # Ray starts a dead worker again, but never repeats a request: the driver does, and records that it did.
        "max_restarts": -1,
        "max_task_retries": 0,
        "enable_task_events": False,  # Ray would keep a record of each message in memory
    }
    return RayWorker(ray.remote(actor_class).options(**options).remote(worker_config))


def has_address(address: str | None) -> bool:
    """Whether a run uses a running cluster: by this address, or by RAY_ADDRESS if None."""
    return bool(address or os.environ.get(ADDRESS_VARIABLE))


def count_hosts() -> int:
    """Number of nodes of the cluster that are alive and have a core."""
    return sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)


@contextmanager
def connect_to_cluster(address: str | None, max_local_workers: int) -> Iterator[str]:
    """Connect to a cluster within the context; yields its address, or "this machine".

    Args:
        address: `HOST:PORT` of the cluster's head node; RAY_ADDRESS if None. Without either, a cluster of this machine
            alone is started, and stopped at the end.
        max_local_workers: number of workers that a cluster of this machine alone has room for.

    Raises:
        UsageError: Ray is not installed, there is no such cluster, it requires no token, or it rejects this machine's.
    """
    bootstrap.prepare_environment()
    os.environ[AUTH_MODE_VARIABLE] = "token"
    _suppress_death_logs()
    ray = load_extra("ray", "ray")
    named_address = address or os.environ.get(ADDRESS_VARIABLE)
    if named_address:
        _require_token_auth(named_address)
    # Ray starts as many processes in advance as a cluster has cores.
    local_options = {} if named_address else {"include_dashboard": False, "num_cpus": max_local_workers}
    try:
        ray.init(
            address=named_address or "local",
            namespace=NAMESPACE,
            log_to_driver=False,
            configure_logging=False,
            **local_options,
        )
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(" .")
        raise UsageError(
            f"the Ray cluster at {named_address or 'this machine'} cannot be used: {reason}.",
            "This machine must be one of its nodes, and have its token (RAY_AUTH_TOKEN, or ~/.ray/auth_token).",
        ) from None
    try:
        yield named_address or "this machine"
    finally:
        ray.shutdown()


def describe_cluster(address: str | None) -> str:
    """Describe the cluster that a run would use, without connecting to it.

    Raises:
        UsageError: Ray is not installed, no cluster answers, or the cluster requires no token.
    """
    _suppress_death_logs()
    load_extra("ray", "ray")
    named_address = address or os.environ.get(ADDRESS_VARIABLE)
    if named_address is None:
        return "a cluster on this machine will be started"
    _require_token_auth(named_address)
    return f"{named_address}, which requires a token"


def _suppress_death_logs() -> None:
    """Hide Ray's long lines about dead workers; its log files keep them, and `WorkerSlot` reports deaths in short.

    Ray reads the setting when it is imported. A pattern that the user has set stays.
    """
    user_pattern = os.environ.get(LOG_SKIP_VARIABLE)
    if not user_pattern or DEATH_LOG_PATTERN not in user_pattern:
        os.environ[LOG_SKIP_VARIABLE] = f"(?:{user_pattern})|{DEATH_LOG_PATTERN}" if user_pattern else DEATH_LOG_PATTERN


def _require_token_auth(address: str) -> None:
    """Check that a cluster requires a token: anybody who can connect can run any code on all of its hosts.

    Raises:
        UsageError: it requires none, no cluster answers, or the address is malformed.
    """
    if "://" in address or ":" not in address:
        raise UsageError(f"'{address}' is not the address of a Ray cluster's head.", "Write it as HOST:PORT.")
    # Connect without a token: a cluster that lets that in lets everybody in.
    environment = {name: value for name, value in os.environ.items() if name not in TOKEN_VARIABLES} | {
        AUTH_MODE_VARIABLE: "disabled"
    }
    ping = subprocess.run(
        [sys.executable, "-P", "-c", PING_SCRIPT, address], env=environment, capture_output=True, text=True, check=False
    )
    if ping.returncode == 0:
        raise UsageError(f"the Ray cluster at {address} accepts connections without a token.", TOKEN_HINT)
    if "AuthenticationError" not in ping.stderr:
        raise UsageError(f"no Ray cluster responds at {address}.", "Run `ray status` on its head node.")
