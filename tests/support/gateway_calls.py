"""Calls to a model at a scripted server, sent by a gateway."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from auditor.config import LimitsSection, ModelSection
from auditor.domain import Answer, Call
from auditor.models.gateway import Gateway
from tests.support.audit_configs import KEY_VARIABLE
from tests.support.closing import closing
from tests.support.fake_server import FakeServer


def model_section(server: FakeServer, model: str = "openai/x", **settings: Any) -> ModelSection:
    """The entry of the model `m` at a scripted server; `settings` replace its keys."""
    has_own_path = model.startswith(("anthropic/", "gemini/"))
    api_base = server.url.removesuffix("/v1") if has_own_path else server.url
    keys = {"name": "m", "model": model, "api_base": api_base, "api_key": f"os.environ/{KEY_VARIABLE}"}
    return ModelSection.model_validate(keys | settings)


def open_gateway(*models: ModelSection, **settings: Any) -> AbstractAsyncContextManager[Gateway]:
    """A gateway of models, which is closed in the end; `settings` are its limits and its further arguments."""
    limits = {name: settings.pop(name) for name in LimitsSection.model_fields.keys() & settings.keys()}
    return closing(Gateway(models, LimitsSection.model_validate(limits), **settings))


async def ask(model: ModelSection, *calls: Call, at_once: bool = False, **settings: Any) -> list[Answer]:
    """The answers to calls, sent one after the other or all at once by such a gateway."""
    async with open_gateway(model, **{"max_attempts": 3} | settings) as gateway:
        if at_once:
            return await asyncio.gather(*map(gateway.complete, calls))
        return [await gateway.complete(call) for call in calls]
