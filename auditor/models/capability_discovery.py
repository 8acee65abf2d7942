"""Find out what a model's server accepts: the capability to begin with, and the next one after a refusal."""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from auditor.config import EMBEDDED_PREFIX
from auditor.domain import AnswerForm, Call, Capability, CapabilityKey, DeclaredCapabilities, LogprobMeasure
from auditor.models import litellm_client
from auditor.models.capability_store import CapabilityStore
from auditor.models.structured import SCHEMA_BY_NAME, response_format

StructureDescriber = Callable[[str, int, str], str]
"""Describes a structure in words: called with the schema's name, the limit on words of each text, and the language."""
OPTIONAL_PARAMS = ("seed",)
"""Parameters that are left out from the beginning for a provider that litellm lists as not supporting them."""


@functools.cache
def _initial_capability(model: str, server: str | None) -> Capability:
    """The capability that discovery begins with: nothing is left out, except what litellm lists as refused.

    Args:
        model: provider and model name for litellm.
        server: base URL if the config sets one; None for the provider's own.
    """
    if model.startswith(EMBEDDED_PREFIX):
        return Capability(form=AnswerForm.JSON_SCHEMA)  # llama.cpp's server, with a grammar
    supported = litellm_client.supported_params(model)
    provider = model.split("/", 1)[0]
    if "response_format" in supported or litellm_client.speaks_openai(model):
        form = AnswerForm.JSON_SCHEMA
    else:
        form = AnswerForm.TOOL if {"tools", "tool_choice"} <= supported else AnswerForm.TEXT
    # An Azure deployment always has an address of its own; another provider's address is another server's.
    has_listed_keywords = server is None or provider == "azure"
    keywords = litellm_client.UNSUPPORTED_SCHEMA_KEYWORDS.get(provider, set()) if has_listed_keywords else set()
    return Capability(
        form=form,
        dropped_keywords=tuple(sorted(keywords)),
        dropped_params=tuple(name for name in OPTIONAL_PARAMS if name not in supported),
    )


def apply_declared(capability: Capability, declared: DeclaredCapabilities | None) -> Capability:
    """The capability with what the config declares in place of what was found."""
    if declared is None:
        return capability
    # Whether each parameter is sent, by name; None for a parameter that the config does not declare.
    is_sent = {"temperature": declared.temperature, "seed": declared.seed}
    dropped_params = {name for name in capability.dropped_params if not is_sent.get(name)}
    dropped_params |= {name for name, sent in is_sent.items() if sent is False}
    return replace(
        capability,
        form=declared.form or capability.form,
        dropped_params=tuple(sorted(dropped_params)),
        dropped_keywords=(
            capability.dropped_keywords
            if declared.dropped_keywords is None
            else tuple(sorted(set(declared.dropped_keywords)))
        ),
        token_limit_param=declared.token_limit_param or capability.token_limit_param,
    )


def is_exempt(call: Call) -> bool:
    """Whether a call neither needs a capability nor shows one: an embedded model's, or not a chat request."""
    return call.model.startswith(EMBEDDED_PREFIX) or call.measure not in (None, LogprobMeasure.CHOICE)


def describe_schema(schema: str, max_words: int, language: str) -> str:
    """The JSON schema of a structure, as compact JSON; it is the same in every language."""
    return json.dumps(response_format(SCHEMA_BY_NAME[schema], max_words)["json_schema"]["schema"])


def prepare_call(call: Call, capability: Capability, describe_structure: StructureDescriber) -> Call:
    """Add the description of a requested structure to a call whose form does not carry the schema."""
    if call.schema is None or capability.form is None or not capability.form.needs_instruction:
        return call
    return replace(call, structure_instruction=describe_structure(call.schema, call.max_words or 0, call.language))


class CapabilityRegistry:
    """What this run knows of its models' servers: what is stored, and what was refused since."""

    def __init__(self, store: CapabilityStore) -> None:
        """Read the stored capabilities."""
        self._store = store
        self._known = dict(store.load())
        # Reached by refusals, and not yet accepted by the server.
        self._candidates: dict[CapabilityKey, Capability] = {}
        # One phrase for each refusal, in order.
        self._evidence: dict[CapabilityKey, list[str]] = defaultdict(list)

    def needs_discovery(self, call: Call) -> bool:
        """Whether no response has shown yet what the server of a call's model accepts in a call like this one."""
        if is_exempt(call):
            return False
        known = self._known.get(call.capability_key)
        return known is None or (call.schema is not None and apply_declared(known, call.declared).form is None)

    def capability(self, call: Call) -> Capability:
        """The capability that a call is sent under: the stored one, or the one that discovery has reached."""
        key = call.capability_key
        initial = _initial_capability(call.model, call.server)
        capability = (
            self._candidates.get(key) or self._known.get(key) or replace(initial, form=None, dropped_keywords=())
        )
        if capability.form is None and call.schema is not None:
            capability = replace(capability, form=initial.form, dropped_keywords=initial.dropped_keywords)
        return apply_declared(capability, call.declared)

    async def confirm(self, call: Call, capability: Capability) -> None:
        """Save a capability that the server accepted; without its form if the call requested no structured answer.

        Raises:
            AuditorError: it cannot be stored.
        """
        key = call.capability_key
        if call.schema is None:
            capability = replace(capability, form=None, dropped_keywords=())
        evidence = "; ".join(self._evidence[key]) or "accepted as requested"
        self._known[key] = await self._store.save(key, capability, evidence)
        self._candidates.pop(key, None)
