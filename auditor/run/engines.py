"""Where an audit's requests go out from: this process, or workers on the hosts of a Ray cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import metadata
from typing import TYPE_CHECKING

from auditor.config import EMBEDDED_PREFIX, REPLAY_PREFIX, AuditConfig, ModelSection
from auditor.config.trust import require_trust
from auditor.domain import LogprobMeasure
from auditor.errors import ConfigError
from auditor.run.api_keys import list_secret_variables, require_keys
from auditor.storage.database import Database
from auditor.storage.engine import require_shareable_url

if TYPE_CHECKING:
    from auditor.domain import Call
    from auditor.models.dispatch import Dispatcher
    from auditor.run.ray_pool import WorkerSlot


def require_engine(config: AuditConfig, url: str) -> None:
    """Make sure that what sends the requests can do so, as far as a look tells; workers look at their keys themselves.

    Raises:
        ConfigError: a key is not set here, or would go where its owner has not allowed, or the engine has no batches.
        UsageError: workers on other hosts could not write to the database.
    """
    if config.run.engine == "local":
        require_keys(config)
        return
    if config.batch is not None:  # the config itself is refused; the command's --engine comes later
        raise ConfigError("batches go out from one process.", "Leave out the table batch, or run with --engine local.")
    require_trust(config)
    require_shareable_url(url)


@asynccontextmanager
async def open_dispatcher(
    config: AuditConfig, audit_id: int, db: Database, notify: Callable[[str], None]
) -> AsyncIterator[Dispatcher | None]:
    """Whoever sends an audit's requests, and records what comes of them; None is this process, which records itself.

    Raises:
        UsageError: there is no cluster that could be used.
        AuditorError: a worker cannot work on its host.
    """
    if config.run.engine == "local":
        yield None
        return
    from auditor.run import ray_cluster
    from auditor.run.ray_pool import RayDispatcher

    with ray_cluster.connect_to_cluster(config.run.ray_address) as where:
        crew = RayDispatcher(dedicated_model_selector(config), slot_factory(config, audit_id, db), notify)
        try:
            notify(f"Requests go out from workers in the Ray cluster at {where}.")
            if _network_models(config):
                notify(f"The first to come is on: {', '.join(await crew.wait_for_first_worker())}.")
            yield crew
        finally:
            await crew.close()


def _models_by_name(config: AuditConfig) -> dict[str, ModelSection]:
    return {m.name: m for m in [*config.models, *config.judge_models]}


def _network_models(config: AuditConfig) -> tuple[str, ...]:
    """Names of the models that any host can ask."""
    return tuple(
        name for name, m in _models_by_name(config).items() if not m.model.startswith((EMBEDDED_PREFIX, REPLAY_PREFIX))
    )


def dedicated_model_selector(config: AuditConfig) -> Callable[[Call], str | None]:
    """Which model must be asked where its weights are, by a worker of its own."""
    embedded = {name for name, m in _models_by_name(config).items() if m.model.startswith(EMBEDDED_PREFIX)}
    return lambda call: call.name if call.measure is LogprobMeasure.CONTINUATION or call.name in embedded else None


def slot_factory(
    config: AuditConfig, audit_id: int, db: Database
) -> Callable[[str | None, Callable[[], None]], list[WorkerSlot]]:
    """Makes the places for workers of a kind: several for what is asked over the network, one for a model of a host."""
    from auditor.run import ray_cluster
    from auditor.run.ray_pool import WorkerSlot
    from auditor.run.ray_worker import WorkerActor, WorkerConfig

    # Telemetry is sent by this process, and a worker connects to no cluster.
    theirs = config.model_copy(update={"telemetry": None, "run": config.run.model_copy(update={"ray_address": None})})

    def make(place: str | None, changed: Callable[[], None]) -> list[WorkerSlot]:
        asked = _network_models(config) if place is None else (place,)
        orders = WorkerConfig(
            theirs, asked, list_secret_variables(config), db.url, audit_id, metadata.version("auditor")
        )
        number = (config.run.workers or ray_cluster.count_hosts() or 1) if place is None else 1
        gpus = 0.0 if place is None else config.run.gpus
        return [
            WorkerSlot(lambda: ray_cluster.start_worker(WorkerActor, n_gpus=gpus), orders, changed)
            for _ in range(number)
        ]

    return make
