"""The path of a request: the links between the graph and the providers, in one function that builds and closes them."""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from auditor.config import AuditConfig, ModelSection
from auditor.domain import Survey
from auditor.run.capability_store import DatabaseCapabilityStore
from auditor.run.encoders import EncoderFirstClient
from auditor.run.engines import open_dispatcher
from auditor.run.simulation import create_simulated_dispatcher
from auditor.run.telemetry import TracedClient, open_telemetry_sink
from auditor.storage import costs, limit_changes

if TYPE_CHECKING:
    from auditor.agents.recording import CallRecorder
    from auditor.agents.run_context import ModelCapabilities, ModelClient, TextEncoder
    from auditor.models.dispatch import Dispatcher
    from auditor.models.gateway import Gateway


class RequestPath(NamedTuple):
    """What the graph's nodes use of the path: the outermost link, and what is known of the models' servers."""

    client: ModelClient
    capabilities: ModelCapabilities


@asynccontextmanager
async def open_request_path(
    config: AuditConfig,
    survey: Survey,
    recorder: CallRecorder,
    stop_event: threading.Event,
    notify: Callable[[str], None],
    *,
    rediscover: bool = False,
    encoder_loaders: Sequence[Callable[[], TextEncoder]] = (),
) -> AsyncIterator[RequestPath]:
    """Yield the path of an audit's requests, and close its links at the end.

    A call goes from the last link that is built here to the first; a link that is not configured is not there:

        recording -> replay -> encoders -> tracing -> batches -> gateway -> dispatcher -> litellm

    Simulated models answer in the dispatcher's place.

    Args:
        config: the audit's configuration.
        survey: the survey, or the task, that the audit asks about.
        recorder: records calls in the ledger of the run.
        stop_event: once set, no further request is sent.
        notify: receives notices for the user.
        rediscover: whether to find out again what the models' servers accept.
        encoder_loaders: load the encoders that will compare the answers, before the first request.

    Raises:
        ImportFileError: a file of recorded answers cannot be used.
        ConfigError: a key is not set, or a price that the budget needs is not known.
        UsageError: there is no usable cluster, or a package is not installed.
        ModelSetupError: an embedded model cannot be started.
    """
    from auditor.agents.recording import RecordingClient  # loads numpy (0.1 s)
    from auditor.run.batches.batching_client import BatchingClient  # loads httpx (0.5 s)
    from auditor.run.replay import ReplayClient, load_records  # loads the survey readers (0.1 s)

    records = load_records(config, survey)
    models = {name: model for name, model in config.models_by_name.items() if name not in records}
    async with AsyncExitStack() as links:
        # Opened first, so that a mistake in its settings shows before a model or a cluster is started.
        sink = await links.enter_async_context(open_telemetry_sink(config, recorder, notify))

        dispatcher: Dispatcher = (
            create_simulated_dispatcher(config, survey)
            if config.is_simulated
            else await links.enter_async_context(open_dispatcher(config, models.values(), notify))
        )
        gateway = _create_gateway(config, models.values(), dispatcher, recorder, stop_event, notify, rediscover)
        client: ModelClient = gateway
        if config.batch is not None:
            client = BatchingClient(gateway, config, recorder, stop_event, notify)
            links.push_async_callback(client.close)
        if config.telemetry is not None and sink is not None:
            client = TracedClient(client, sink, config.name, config.telemetry)
        if encoder_loaders and not config.is_simulated:
            client = EncoderFirstClient(client, encoder_loaders)
        if records:
            client = ReplayClient(client, records)
        client = RecordingClient(client, recorder)

        yield RequestPath(client, gateway)


def _create_gateway(
    config: AuditConfig,
    models: Collection[ModelSection],
    dispatcher: Dispatcher,
    recorder: CallRecorder,
    stop_event: threading.Event,
    notify: Callable[[str], None],
    rediscover: bool,
) -> Gateway:
    """Create the gateway, whose costs, limits and capabilities are read from and written to the audit's database."""
    from auditor.agents.structure_instruction import describe_structure
    from auditor.models.gateway import Gateway  # loads httpx (0.3 s)

    return Gateway(
        models,
        config.limits,
        spent_usd=costs.sum_audit_cost(recorder.db, recorder.audit_id).usd or 0.0,
        largest_usd=costs.find_largest_costs(recorder.db, recorder.audit_id),
        seed=config.seed,
        stop_event=stop_event,
        on_limit_change=functools.partial(
            limit_changes.record_limit_change, recorder.db, recorder.run_id, recorder.audit_id
        ),
        dispatcher=dispatcher,
        notify=notify,
        capability_store=DatabaseCapabilityStore(recorder.db, recorder.audit_id, rediscover=rediscover),
        describe_structure=describe_structure,
    )
