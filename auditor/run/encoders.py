"""The text encoders that a config needs: checked before a run, and loaded before its first request."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from auditor.config import AuditConfig
from auditor.config.installed_probes import load_built_in
from auditor.domain import Answer, Call

if TYPE_CHECKING:
    from auditor.agents.run_context import ModelClient, TextEncoder

NO_ENCODER = "none"
"""Name in the config that stands for no encoder."""


def probe_encoder_loaders(config: AuditConfig) -> dict[str, Callable[[], TextEncoder]]:
    """Functions that load the text encoders of probes once, by the probe's name, of probes that encode texts.

    Raises:
        AuditorError: an encoder cannot be used.
    """
    loaders = {}
    for name in config.probes.stages:
        if (encoder := load_built_in(name).find_encoder(config)) is not None:
            encoder.check()
            loaders[name] = encoder.load
    return loaders


def direct_encoder_loader(config: AuditConfig) -> Callable[[], TextEncoder] | None:
    """A function that loads the text encoder that compares direct answers; None if no answers are compared.

    None is needed without the direct probe, with fewer than two samples per cell, or with the model "none". Whether
    the encoder can be used is checked at once.

    Raises:
        AuditorError: it cannot be used.
    """
    if config.embedding.model == NO_ENCODER or config.probes.direct is None or config.direct.samples < 2:
        return None
    from auditor.models.embeddings import check_encoder, load_encoder  # loads httpx (0.2 s)

    check_encoder(config.embedding.model)
    return functools.cache(lambda: load_encoder(config.embedding.model))


class EncoderFirstClient:
    """Passes calls on once the encoders are loaded that will compare the answers: none is paid for in vain.

    They are loaded when the first call comes, so that a run without calls loads none.
    """

    def __init__(self, client: ModelClient, loaders: Sequence[Callable[[], TextEncoder]]) -> None:
        """Wrap a client.

        Args:
            client: sends the calls.
            loaders: each loads an encoder, and returns the same one when it is called again.
        """
        self._client, self._loaders = client, loaders
        self._loading: asyncio.Task[None] | None = None

    async def complete(self, call: Call) -> Answer:
        """Load the encoders before the first call, and pass the call on.

        Raises:
            ModelSetupError: an encoder cannot be loaded; nothing is sent.
        """
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._load))
        await asyncio.shield(self._loading)
        return await self._client.complete(call)

    def _load(self) -> None:
        """Load all encoders."""
        for load in self._loaders:
            load()
