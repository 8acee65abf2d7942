"""What sends an audit's requests: this process, or Ray workers; how many, and what each may know."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from importlib import metadata
from typing import TYPE_CHECKING

from auditor.config import EMBEDDED, REPLAY, AuditConfig, ModelSection
from auditor.config.trust import list_secret_variables, require_keys, require_trust
from auditor.domain import LogprobMeasure
from auditor.errors import ConfigError
from auditor.run import ray_cluster
from auditor.run.ray_pool import RayDispatcher, WorkerSlot
from auditor.run.ray_worker import WorkerActor, WorkerConfig

if TYPE_CHECKING:
    from auditor.domain import Call
    from auditor.models.dispatch import Dispatcher, LocalDispatcher


MAX_DEFAULT_LOCAL_WORKERS = 4
"""With more workers on one machine, the run's own process, which records all answers, would be the bottleneck."""


@asynccontextmanager
async def open_ray_dispatcher(config: AuditConfig, notify: Callable[[str], None]) -> AsyncIterator[RayDispatcher]:
    """Yield a dispatcher whose workers are in a running cluster, or in one that is started on this machine.

    Raises:
        UsageError: there is no usable cluster.
        AuditorError: a worker cannot work on its host.
    """
    with ray_cluster.connect_to_cluster(config.run.ray_address, _max_local_workers(config)) as cluster_name:
        dispatcher = RayDispatcher(dedicated_model_selector(config), slot_factory(config), notify)
        try:
            is_running_cluster = ray_cluster.has_address(config.run.ray_address)
            place = f"in the cluster at {cluster_name}" if is_running_cluster else "on this machine"
            notify(f"Ray workers {place} send the requests.")
            if _network_models(config):
                notify(f"The first worker has started on: {', '.join(await dispatcher.wait_for_first_worker())}.")
            yield dispatcher
        finally:
            await dispatcher.close()


def _network_models(config: AuditConfig) -> tuple[str, ...]:
    """Names of the models that any host can reach: neither embedded nor replayed."""
    return tuple(name for name, model in config.models_by_name.items() if model.provider not in (EMBEDDED, REPLAY))


def _max_local_workers(config: AuditConfig) -> int:
    """Workers that a cluster of this machine alone has room for: those of the network, and one for each weights."""
    n_dedicated = sum(
        model.provider is EMBEDDED or model.weights is not None for model in config.models_by_name.values()
    )
    return (config.run.workers or _default_local_workers()) + n_dedicated


def _default_local_workers() -> int:
    """Workers on this machine alone: its cores without the one that this process uses."""
    return min(max(1, (os.cpu_count() or 1) - 1), MAX_DEFAULT_LOCAL_WORKERS)


def dedicated_model_selector(config: AuditConfig) -> Callable[[Call], str | None]:
    """A function that maps a call to the model whose own worker must answer it, or to None if any worker can.

    Embedded models, and log-probabilities of continuations, need a worker that has loaded the model's weights.
    """
    embedded = {name for name, model in config.models_by_name.items() if model.provider is EMBEDDED}
    return lambda call: call.name if call.measure is LogprobMeasure.CONTINUATION or call.name in embedded else None


def slot_factory(config: AuditConfig) -> Callable[[str | None, Callable[[], None]], list[WorkerSlot]]:
    """A factory of worker slots, as `RayDispatcher` takes it.

    It creates several slots for all models over the network, and one slot for a model whose weights are loaded.
    """

    def create_slots(dedicated_model: str | None, on_change: Callable[[], None]) -> list[WorkerSlot]:
        """Create the slots for one model with weights, or for all network models (None); no worker starts yet."""
        model_names = _network_models(config) if dedicated_model is None else (dedicated_model,)
        worker_config = make_worker_config(config, model_names)
        n_gpus = 0.0 if dedicated_model is None else config.run.gpus
        return [
            WorkerSlot(lambda: ray_cluster.start_worker(WorkerActor, worker_config, n_gpus=n_gpus), on_change)
            for _ in range(_count_workers(config) if dedicated_model is None else 1)
        ]

    return create_slots


def make_worker_config(config: AuditConfig, model_names: tuple[str, ...]) -> WorkerConfig:
    """The configuration of the workers for some models, without the database's URL and the cluster's address.

    This process records answers and sends telemetry, and a worker does not connect to the cluster.
    """
    run = config.run.model_copy(update={"ray_address": None})
    worker_audit_config = config.model_copy(update={"storage": None, "telemetry": None, "run": run})
    return WorkerConfig(worker_audit_config, model_names, list_secret_variables(config), metadata.version("auditor"))


def _count_workers(config: AuditConfig) -> int:
    """Number of workers for the models over the network: as configured; else one for each host or local core."""
    if config.run.workers is not None:
        return config.run.workers
    if ray_cluster.has_address(config.run.ray_address):
        return ray_cluster.count_hosts() or 1
    return _default_local_workers()


LOAD_CHECK_INTERVAL_S, BUSY_CPU_SHARE, MIN_BUSY_REQUESTS = 10.0, 0.8, 1000
"""A process that sends this many requests and uses this share of a core's time within this many seconds is busy."""
MORE_PROCESSES_HINT = "To send requests from the other cores too, add `--engine ray` (pip install 'auditor[ray]')."


def require_engine(config: AuditConfig) -> None:
    """Check keys and trust before a run, without connecting; Ray workers check their host's keys themselves.

    Raises:
        ConfigError: a key is not set, would go to a server without the user's trust, or batches are used with Ray.
    """
    if config.run.engine == "local":
        require_keys(config)
        return
    if config.batch is not None:  # --engine ray of a command overrides a config that is valid by itself
        raise ConfigError(
            "batches are sent only with the engine local.",
            "Remove the section [batch] from the configuration, or run with --engine local.",
        )
    require_trust(config)


@asynccontextmanager
async def open_dispatcher(
    config: AuditConfig, models: Collection[ModelSection], notify: Callable[[str], None]
) -> AsyncIterator[Dispatcher]:
    """Yield what sends requests, as `run.engine` says, and close it at the end.

    Args:
        config: the audit's configuration.
        models: all models that may be called.
        notify: receives notices for the user.

    Raises:
        ConfigError: an API key is not in the environment.
        UsageError: there is no usable cluster.
        AuditorError: an embedded model cannot be started, or a worker cannot work on its host.
    """
    if config.run.engine == "ray":
        async with open_ray_dispatcher(config, notify) as ray_dispatcher:
            yield ray_dispatcher
        return
    from auditor.models.dispatch import LocalDispatcher  # loads httpx (0.5 s)

    local_dispatcher = LocalDispatcher(models)
    hint_task = asyncio.create_task(_suggest_ray_when_busy(local_dispatcher, notify))
    try:
        yield local_dispatcher
    finally:
        hint_task.cancel()
        await local_dispatcher.close()


async def _suggest_ray_when_busy(dispatcher: LocalDispatcher, notify: Callable[[str], None]) -> None:
    """Notify the user once if this thread is too busy with requests to send them in time, and other cores are free."""
    if (os.cpu_count() or 1) < 2:
        return
    while True:
        start_s, start_cpu_s, n_requests_before = time.monotonic(), time.thread_time(), dispatcher.n_requests
        await asyncio.sleep(LOAD_CHECK_INTERVAL_S)
        cpu_share = (time.thread_time() - start_cpu_s) / (time.monotonic() - start_s)
        if cpu_share >= BUSY_CPU_SHARE and dispatcher.n_requests - n_requests_before >= MIN_BUSY_REQUESTS:
            notify(f"The core of this process is busy, and calls wait for it. {MORE_PROCESSES_HINT}")
            return
