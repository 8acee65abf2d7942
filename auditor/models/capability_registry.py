"""What a run knows of its models' servers: stored capabilities, and those that discovery has reached."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from auditor.config import EMBEDDED, SIMULATED
from auditor.config.providers import provider_of
from auditor.domain import Answer, Call, Capability, CapabilityKey, LogprobMeasure, Outcome, Purpose
from auditor.models.capability_discovery import (
    apply_declared,
    initial_capability,
    less_thinking_room,
    more_thinking_room,
    next_capability,
    next_form,
)
from auditor.models.endpoint import DEFAULT_CAPABILITY
from auditor.models.reasoning import is_cut_off_thinking
from auditor.models.refused_features import (
    ALL_BOUNDS,
    ANY_FORM,
    REFUSAL_STATUSES,
    Feature,
    Refusal,
    find_refusals,
    flatten_error,
)
from auditor.models.structured import find_schema, limited_schema
from auditor.models.structured_reading import parse_structured_answer

if TYPE_CHECKING:
    from auditor.models.provider_request import ProviderReply


class CapabilityStore(Protocol):
    """Interface for the capabilities of one audit. Once saved, a capability does not change during the audit."""

    def load(self) -> Mapping[CapabilityKey, Capability]:
        """Return all stored capabilities."""
        ...

    async def save(self, key: CapabilityKey, capability: Capability, evidence: str) -> Capability:
        """Store a capability unless one is stored already, and return the stored one.

        A stored capability without a form is replaced by one with a form, since it was found without a structured call.

        Args:
            key: the model, server and effort that the capability belongs to.
            capability: what the server was found to accept.
            evidence: one sentence that says which responses it was found by.

        Raises:
            AuditorError: it cannot be stored.
        """
        ...


class MemoryCapabilityStore:
    """Keeps capabilities in memory, for the time of one run."""

    def __init__(self, capabilities: Mapping[CapabilityKey, Capability] | None = None) -> None:
        """Create a store that already holds these capabilities; by default none."""
        self._capabilities = dict(capabilities or {})

    def load(self) -> Mapping[CapabilityKey, Capability]:
        """Return all stored capabilities."""
        return dict(self._capabilities)

    async def save(self, key: CapabilityKey, capability: Capability, evidence: str) -> Capability:
        """Store a capability unless one with a form is stored already, and return the stored one."""
        stored = self._capabilities.get(key)
        if stored is None or (stored.form is None and capability.form is not None):
            self._capabilities[key] = capability
        return self._capabilities[key]


MAX_DISCOVERY_REQUESTS = 4
"""Requests to a model beyond its planned calls, by which a run finds out what its server accepts. A call of the purpose
`preflight` is one of them."""
MAX_UNJUDGED_ANSWERS = 4
"""Refused or truncated answers to calls with a schema, after which the richest form is kept."""
READABLE_OUTCOMES = (Outcome.OK, Outcome.UNPARSED)
"""Outcomes of answers that show whether the server keeps to the requested form."""
StructureDescriber = Callable[[str, int, str], str]
"""Describes a structure in words: called with the schema's name, the limit on words of each text, and the language."""
Resend = Callable[[Answer], Awaitable[Answer]]
"""Sends the same call once more; takes the answer so far, and returns one that has all attempts and costs."""


def describe_schema(schema: str, max_words: int, language: str) -> str:
    """The JSON schema of a structure, as compact JSON; it is the same in every language."""
    return json.dumps(limited_schema(find_schema(schema), max_words))


def prepare_call(call: Call, capability: Capability, describe_structure: StructureDescriber) -> Call:
    """Add the description of a requested structure to a call whose form does not carry the schema."""
    if call.schema is None or capability.form is None or not capability.form.needs_instruction:
        return call
    return replace(call, structure_instruction=describe_structure(call.schema, call.max_words or 0, call.language))


class CapabilityRegistry:
    """Capabilities of the models of one run, and the steps by which they are found out."""

    def __init__(self, store: CapabilityStore) -> None:
        """Read the stored capabilities."""
        self._store = store
        self._known = dict(store.load())
        # Reached by refusals, and not accepted by the server yet.
        self._candidates: dict[CapabilityKey, Capability] = {}
        # One phrase for each step, in order.
        self._evidence: dict[CapabilityKey, list[str]] = defaultdict(list)
        self._n_requests: Counter[CapabilityKey] = Counter()
        self._n_unjudged: Counter[CapabilityKey] = Counter()
        self._tried: defaultdict[CapabilityKey, set[Capability]] = defaultdict(set)
        # Models whose servers have not answered a request with the present room for thinking, or refused more room.
        self._unproven_room: set[CapabilityKey] = set()
        self._refused_room: set[CapabilityKey] = set()

    def needs_discovery(self, call: Call) -> bool:
        """Whether no response has shown yet what the server of a call's model accepts in a call like this one.

        False for embedded and simulated models, and for measures that are not taken by chat.
        """
        if provider_of(call.model) in (EMBEDDED, SIMULATED) or call.measure not in (None, LogprobMeasure.CHOICE):
            return False
        return call.capability_key not in self._known or self._is_form_open(call)

    def capability(self, call: Call) -> Capability:
        """The capability that a call is sent under: the stored one, or the one that discovery has reached."""
        key = call.capability_key
        capability = self._candidates.get(key) or self._known.get(key)
        if capability is None:
            capability = replace(initial_capability(call.model, call.server), form=None, dropped_keywords=())
        if capability.form is None and call.schema is not None:
            initial = initial_capability(call.model, call.server)
            capability = replace(capability, form=initial.form, dropped_keywords=initial.dropped_keywords)
        return apply_declared(capability, call.declared)

    def step(self, call: Call, capability: Capability, reply: ProviderReply) -> bool:
        """Move on to another capability if a reply asks for it; whether the call is to be sent again under it.

        Args:
            call: the call that was sent.
            capability: what it was sent under.
            reply: the reply: a refusal, or an answer that was cut off while the model thought.
        """
        if self._is_outdated(call, capability, reply):
            return True
        if not self.needs_discovery(call):
            return False
        was_sent, key = bool(reply.answer.attempts), call.capability_key
        if reply.failure is None:
            self._unproven_room.discard(key)
        if was_sent and self._has_used_up_requests(call):
            return False
        if reply.failure is None or reply.failure.outcome is Outcome.TRUNCATED:
            candidate, reason = self._after_cut_off(call, capability, reply.answer), "cut off while thinking"
        else:
            candidate, reason = self._after_refusal(call, capability, reply)
        if candidate is None or apply_declared(candidate, call.declared) == capability:
            return False
        tried = self._tried[key]
        if candidate in tried and candidate.thinking_tokens >= capability.thinking_tokens:
            return False  # the server refuses each of two alternatives
        tried.update((capability, candidate))
        self._candidates[key] = candidate
        self._evidence[key].append(reason)
        self._n_requests[key] += was_sent
        return True

    def _is_outdated(self, call: Call, capability: Capability, reply: ProviderReply) -> bool:
        """Whether a reply asks for less, or for more room, than another call has found out since this one was sent."""
        current = self.capability(call)
        if current == capability:
            return False
        if reply.failure is None:
            return is_cut_off_thinking(reply.answer) and current.thinking_tokens > capability.thinking_tokens
        status, text = _refusal_text(reply)
        return (status is None or status in REFUSAL_STATUSES) and bool(find_refusals(text))

    def _has_used_up_requests(self, call: Call) -> bool:
        """Whether discovery may send no more requests; a call that only discovers is one of them itself."""
        n_own_requests = 1 if call.purpose is Purpose.PREFLIGHT else 0
        return self._n_requests[call.capability_key] + n_own_requests >= MAX_DISCOVERY_REQUESTS

    def _after_refusal(self, call: Call, capability: Capability, reply: ProviderReply) -> tuple[Capability | None, str]:
        """The capability to try after a failed request, None if it names nothing to leave out, and why in words."""
        assert reply.failure is not None
        status, text = _refusal_text(reply)
        if reply.answer.attempts and status not in REFUSAL_STATUSES:
            return None, ""
        source = "before sending" if status is None else f"HTTP {status}"
        if refusals := find_refusals(text):
            names = ", ".join(map(_describe_refusal, refusals))
            return next_capability(capability, call, refusals), f"{source}: {names} refused"
        if call.capability_key in self._unproven_room and not reply.failure.is_retryable:
            self._unproven_room.remove(call.capability_key)
            self._refused_room.add(call.capability_key)
            return less_thinking_room(capability), f"{source}: {capability.thinking_tokens} tokens for thinking refused"
        return None, ""

    def _after_cut_off(self, call: Call, capability: Capability, answer: Answer) -> Capability | None:
        """The capability to try after an answer that was cut off while the model thought; None for any other answer."""
        if not is_cut_off_thinking(answer) or call.capability_key in self._refused_room:
            return None
        candidate = more_thinking_room(capability, call)
        if candidate is not None:
            self._unproven_room.add(call.capability_key)
        return candidate

    async def conclude(self, call: Call, answer: Answer, resend: Resend) -> Answer:
        """Save what the server accepted, after a call was answered; the richest form that it keeps to, if it has one.

        If two of two answers cannot be read in the requested form, the next form is tried with the same call. It is
        kept if two of two answers can be read; otherwise the richer form stays, and the first answer is the call's.

        Args:
            call: the call.
            answer: the server's answer to it.
            resend: sends the call again.

        Returns:
            The call's answer, with the attempts and costs of all its requests.

        Raises:
            AuditorError: the capability cannot be stored, or no further request can be sent; its `answer` is this one.
        """
        key, is_form_shown = call.capability_key, call.schema is not None
        if key in self._unproven_room:
            return answer
        if self._is_form_open(call):
            is_form_shown = False
            if answer.outcome in READABLE_OUTCOMES:
                answer, is_form_shown = await self._check_form(call, answer, resend)
            if not is_form_shown:
                self._n_unjudged[key] += 1
                is_form_shown = self._n_unjudged[key] >= MAX_UNJUDGED_ANSWERS
        capability = self.capability(call)
        if not is_form_shown:
            capability = replace(capability, form=None, dropped_keywords=())
        evidence = _join_phrases(self._evidence[key]) or "accepted as requested"
        self._known[key] = await self._store.save(key, capability, evidence)
        candidate = self._candidates.get(key)
        if candidate is not None and (is_form_shown or candidate.form is None):
            del self._candidates[key]
        return answer

    def _is_form_open(self, call: Call) -> bool:
        """Whether it is not known yet in which form a call's structured answer can be requested."""
        known = self._known.get(call.capability_key, DEFAULT_CAPABILITY)
        return call.schema is not None and apply_declared(known, call.declared).form is None

    async def _check_form(self, call: Call, first: Answer, resend: Resend) -> tuple[Answer, bool]:
        """Try the next form if two answers of two cannot be read.

        Returns:
            The answer of the form that is kept, and whether that form is certain: a request that failed shows nothing.
        """
        key, richer = call.capability_key, self.capability(call)
        poorer = next_form(richer)
        if _is_readable(call, first) or poorer is None:
            return first, True

        async def send_again(previous: Answer) -> Answer | None:
            """Send the call once more; None if discovery may send no more requests."""
            if self._has_used_up_requests(call):
                return None
            self._n_requests[key] += 1
            return await resend(previous)

        second = await send_again(first)
        if second is None or second.outcome not in READABLE_OUTCOMES or _is_readable(call, second):
            return _with_attempts(first, second), second is None or second.outcome in READABLE_OUTCOMES
        self._candidates[key] = poorer
        third = await send_again(second)
        fourth = await send_again(third) if third and _is_readable(call, third) else None
        if third and fourth and _is_readable(call, fourth):
            self._evidence[key].append(f"two of two answers cannot be read as {richer.form}")
            return _with_attempts(third, fourth), True
        self._candidates[key] = richer
        last = fourth or third
        return _with_attempts(first, last or second), last is None or last.outcome in READABLE_OUTCOMES


def _describe_refusal(refusal: Refusal) -> str:
    """What was refused, in words."""
    if refusal.feature is Feature.FORM:
        return "response format" if refusal.name == ANY_FORM else f"response format {refusal.name}"
    if refusal.feature is Feature.KEYWORD:
        return "limits in the schema" if refusal.name == ALL_BOUNDS else f"schema keyword {refusal.name}"
    if refusal.feature is Feature.WHOLE_ANSWER:
        return "answers without streaming"
    return f"parameter {refusal.name}"


def _join_phrases(phrases: Sequence[str]) -> str:
    """The phrases in their order; a repeated one once, with a count."""
    return "; ".join(phrase if n == 1 else f"{phrase} ({n} times)" for phrase, n in Counter(phrases).items())


def _refusal_text(reply: ProviderReply) -> tuple[int | None, str]:
    """The HTTP status of a failed reply, None if nothing was sent, and the words of its error."""
    assert reply.failure is not None
    if not reply.answer.attempts:
        return None, reply.failure.error
    attempt = reply.answer.attempts[-1]
    body = attempt.body
    text = reply.failure.error if body is None else flatten_error(body.data.decode("utf-8", "replace"))
    return attempt.http_status, text


def _is_readable(call: Call, answer: Answer) -> bool:
    """Whether an answer can be read as the requested structure."""
    assert call.schema is not None
    parsed = parse_structured_answer(find_schema(call.schema), answer.text or "", call.request_text)
    return answer.outcome in READABLE_OUTCOMES and not isinstance(parsed, str)


def _with_attempts(answer: Answer, last: Answer | None) -> Answer:
    """The answer with the attempts and the cost of the last answer to the same call."""
    return answer if last is None else replace(answer, attempts=last.attempts, cost_usd=last.cost_usd)
