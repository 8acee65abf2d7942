"""Choose what sends an audit's requests: this process, or Ray workers on this machine or on the hosts of a cluster."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from auditor.config import AuditConfig, ModelSection
from auditor.config.trust import require_trust
from auditor.errors import ConfigError
from auditor.run.api_keys import require_keys

if TYPE_CHECKING:
    from auditor.models.dispatch import Dispatcher, LocalDispatcher

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
        from auditor.run.ray_engine import open_ray_dispatcher  # loads httpx (0.5 s)

        async with open_ray_dispatcher(config, notify) as ray_dispatcher:
            yield ray_dispatcher
        return
    from auditor.models.dispatch import LocalDispatcher  # loads httpx (0.5 s)

    if config.run.processes is not None:
        notify(f"run.processes has no effect any more: one process sends all requests. {MORE_PROCESSES_HINT}")
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
