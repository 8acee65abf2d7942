"""Choose what sends an audit's requests: processes of this machine, or workers on the hosts of a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import metadata
from typing import TYPE_CHECKING

from auditor.config import EMBEDDED_PREFIX, REPLAY_PREFIX, AuditConfig, ModelSection
from auditor.config.trust import require_trust
from auditor.domain import LogprobMeasure
from auditor.errors import ConfigError
from auditor.run import ray_cluster
from auditor.run.api_keys import list_secret_variables, require_keys
from auditor.run.ray_pool import RayDispatcher, WorkerSlot
from auditor.run.ray_worker import WorkerActor, WorkerConfig
from auditor.storage.engine import require_shareable_url

if TYPE_CHECKING:
    from auditor.domain import Call
    from auditor.models.dispatch import Dispatcher


def require_engine(config: AuditConfig, url: str) -> None:
    """Check keys, trust and storage before a run, without connecting; workers check their host's keys themselves.

    Args:
        config: the audit's configuration.
        url: database URL.

    Raises:
        ConfigError: a key is not set, would go to a server without the user's trust, or batches are used with Ray.
        UsageError: workers on other hosts could not write to the database.
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
    require_shareable_url(url)


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
    async with AsyncExitStack() as resources:
        if config.run.engine == "ray":
            cluster_name = resources.enter_context(ray_cluster.connect_to_cluster(config.run.ray_address))
            ray_dispatcher = RayDispatcher(dedicated_model_selector(config), slot_factory(config), notify)
            resources.push_async_callback(ray_dispatcher.close)
            notify(f"Workers in the Ray cluster at {cluster_name} send the requests.")
            if _network_models(config):
                notify(f"The first worker has started on: {', '.join(await ray_dispatcher.wait_for_first_worker())}.")
            yield ray_dispatcher
        else:
            local_dispatcher = _create_local_dispatcher(config, models)
            resources.push_async_callback(local_dispatcher.close)
            yield local_dispatcher


def _create_local_dispatcher(config: AuditConfig, models: Collection[ModelSection]) -> Dispatcher:
    """Create the dispatcher of this machine, with helper processes if it may have any."""
    from auditor.models.dispatch import LocalDispatcher  # these modules load httpx (0.5 s)
    from auditor.models.multiprocess_dispatch import MultiprocessDispatcher, max_helpers

    # `run.processes` counts this process too; the helpers are the others.
    n_helpers = max_helpers(os.cpu_count()) if config.run.processes is None else config.run.processes - 1
    return MultiprocessDispatcher(models, n_helpers) if n_helpers else LocalDispatcher(models)


def _network_models(config: AuditConfig) -> tuple[str, ...]:
    """Names of the models that any host can reach: neither embedded nor replayed."""
    return tuple(
        name
        for name, model in config.models_by_name.items()
        if not model.model.startswith((EMBEDDED_PREFIX, REPLAY_PREFIX))
    )


def dedicated_model_selector(config: AuditConfig) -> Callable[[Call], str | None]:
    """A function that maps a call to the model whose own worker must answer it, or to None if any worker can.

    Embedded models, and log-probabilities of continuations, need a worker that has loaded the model's weights.
    """
    embedded = {name for name, model in config.models_by_name.items() if model.model.startswith(EMBEDDED_PREFIX)}
    return lambda call: call.name if call.measure is LogprobMeasure.CONTINUATION or call.name in embedded else None


def slot_factory(config: AuditConfig) -> Callable[[str | None, Callable[[], None]], list[WorkerSlot]]:
    """A factory of worker slots, as `RayDispatcher` takes it.

    It creates several slots for all models over the network, and one slot for a model whose weights are loaded.
    """
    # This process records answers and sends telemetry, and a worker does not connect to the cluster.
    worker_audit_config = config.model_copy(
        update={"storage": None, "telemetry": None, "run": config.run.model_copy(update={"ray_address": None})}
    )

    def create_slots(dedicated_model: str | None, on_change: Callable[[], None]) -> list[WorkerSlot]:
        """Create the slots for one model with weights, or for all network models (None); no worker starts yet."""
        model_names = _network_models(config) if dedicated_model is None else (dedicated_model,)
        worker_config = WorkerConfig(
            worker_audit_config, model_names, list_secret_variables(config), metadata.version("auditor")
        )
        n_workers = (config.run.workers or ray_cluster.count_hosts() or 1) if dedicated_model is None else 1
        n_gpus = 0.0 if dedicated_model is None else config.run.gpus
        return [
            WorkerSlot(lambda: ray_cluster.start_worker(WorkerActor, n_gpus=n_gpus), worker_config, on_change)
            for _ in range(n_workers)
        ]

    return create_slots
