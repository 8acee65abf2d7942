"""Read finish reason, token counts and text from a response's body, streamed or not, in documented formats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from auditor.models.finish_reasons import classify_finish_reason

CONTENT_TYPE = "text/event-stream"
END_MARK = "[DONE]"
EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""Beginnings of a stream of events; no JSON object starts so."""
JOINED_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
"""Fields of a message that are sent in pieces."""
FINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed")
"""Events of the Responses API that end a stream, and hold the whole response."""


def is_event_stream(content_type: str, body: bytes) -> bool:
    """Whether a body is a stream of events, as its beginning says, or its content type if it is no JSON object."""
    start = body[:100].lstrip()
    is_announced = content_type.lower().startswith(CONTENT_TYPE) and not start.startswith(b"{")
    return is_announced or start.startswith(EVENT_STARTS)


MESSAGE_EVENTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""Field of a block of Anthropic's that each kind of piece continues."""


def join_events(body: bytes) -> dict[str, Any] | None:
    """Join the events of a whole stream into one JSON object: a completion, a response, or the error that ended it.

    Returns:
        None if the stream breaks off before the end of the answer, or holds something else.
    """
    completion: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    message: dict[str, Any] = {}
    for event in _iter_events(body):
        if event == END_MARK:
            break
        chunk = _parse_object(event)
        if chunk is None:
            return None
        if chunk.get("error"):
            return {"error": chunk["error"]}
        if chunk.get("type") in FINAL_EVENTS:
            return chunk["response"] if isinstance(chunk.get("response"), dict) else None
        if chunk.get("type") == "message_stop":
            break
        _add_message_event(message, chunk)
        # Usage comes in the last chunk, or in each, as the count so far.
        completion |= {name: field for name, field in chunk.items() if name != "choices" and field is not None}
        for choice in chunk.get("choices") or []:
            if isinstance(choice, dict):
                _add_piece(choices.setdefault(_position(choice), {"message": {"role": "assistant"}}), choice)
    if message:
        return _finish_message(message)
    # The end mark alone does not show that an answer is whole: a proxy may send it after a connection that it lost.
    is_whole = bool(choices) and all(choice.get("finish_reason") for choice in choices.values())
    return _finish(completion, choices) if is_whole else None


def _iter_events(body: bytes) -> Iterator[str]:
    """Yield the data of each event. The data of an event that its connection cut off is yielded too."""
    text = body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for block in text.split("\n\n"):
        lines = [line.removeprefix("data:").removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
        if lines:
            yield "\n".join(lines).strip()


def _parse_object(text: str) -> dict[str, Any] | None:
    """The JSON object of an event; None if it is none."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _position(choice: Mapping[str, Any]) -> int:
    """Position of a choice, or of a tool call, among those of an answer."""
    return choice["index"] if isinstance(choice.get("index"), int) else 0


def _add_piece(joined: dict[str, Any], choice: Mapping[str, Any]) -> None:
    """Add a chunk's choice to what came before: texts are appended, the last finish reason counts."""
    joined["index"] = _position(choice)
    if choice.get("finish_reason"):
        joined["finish_reason"] = choice["finish_reason"]
    if isinstance(logprobs := choice.get("logprobs"), dict) and isinstance(logprobs.get("content"), list):
        joined.setdefault("logprobs", {"content": []})["content"].extend(logprobs["content"])
    message = joined["message"]
    # A server that sends the whole answer as one event may leave it under its name in responses that are no stream;
    # others repeat there what they have sent in pieces.
    has_pieces = message.get("content") or message.get("tool_calls")
    delta = choice.get("delta") or (None if has_pieces else choice.get("message"))
    for name, piece in (delta if isinstance(delta, dict) else {}).items():
        # Mistral sends parts while the model thinks, and texts after it.
        field = _join_parts(piece) if name == "content" and isinstance(piece, list) else piece
        if name == "tool_calls" and isinstance(field, list):
            _add_tool_calls(message.setdefault("tool_calls", []), field)
        elif name in JOINED_TEXTS and isinstance(field, str):
            message[name] = (message.get(name) or "") + field
        elif field is not None:
            message[name] = field


def _add_tool_calls(joined: list[dict[str, Any]], pieces: list[Any]) -> None:
    """Add pieces of tool calls to those that came before: names and arguments are appended."""
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        position = _position(piece)
        tool_call = next((tool_call for tool_call in joined if tool_call["index"] == position), None)
        if tool_call is None:
            tool_call = {"index": position, "type": "function", "function": {"name": "", "arguments": ""}}
            joined.append(tool_call)
        tool_call["id"] = piece.get("id") or tool_call.get("id")
        function = piece.get("function")
        for name in ("name", "arguments"):
            if isinstance(function, dict) and isinstance(function.get(name), str):
                tool_call["function"][name] += function[name]


def _add_message_event(message: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Add an event of Anthropic's protocol to the message so far, whose blocks are under their numbers in `content`."""
    match event:
        case {"type": "message_start", "message": dict(start)}:
            message |= {**start, "content": {}}
        case {"type": "content_block_start", "index": int(index), "content_block": dict(block)} if message:
            message["content"][index] = dict(block)
        case {"type": "content_block_delta", "index": int(index), "delta": {"type": str(kind), **piece}} if message:
            block = message["content"].setdefault(index, {})
            if kind == "input_json_delta":
                block["input"] = (block.get("input") or "") + str(piece.get("partial_json", ""))
            elif (field := MESSAGE_EVENTS.get(kind)) is not None:
                block[field] = str(block.get(field) or "") + str(piece.get(field, ""))
        case {"type": "message_delta", "delta": dict(changes)} if message:
            usage = event.get("usage")
            message |= {
                **changes,
                "usage": {**(message.get("usage") or {}), **(usage if isinstance(usage, dict) else {})},
            }


def _finish_message(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Anthropic's message of a stream; None if the stream names no reason why the message ended."""
    if not message.get("stop_reason"):
        return None
    blocks = [message["content"][index] for index in sorted(message["content"])]
    for block in blocks:
        if isinstance(block.get("input"), str):
            block["input"] = _parse_object(block["input"]) or {}
    return {**message, "content": blocks}


def _finish(completion: dict[str, Any], choices: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    """The completion of a stream that was sent to its end."""
    in_order = [choices[position] for position in sorted(choices)]
    for choice in in_order:
        choice["message"].setdefault("content", None)
    return {**completion, "object": "chat.completion", "choices": in_order}


MAX_FINISH_REASON_CHARS = 100
FAILED_REASON = "error"
FINISH_REASON_FIELDS = (
    "native_finish_reason",
    "finish_reason",
    "finishReason",
    "stop_reason",
    "stopReason",
    "done_reason",
    "completionReason",
)
"""Names of the finish reason, by precedence. vLLM also has `stop_reason`, for the stop sequence that matched."""
ANSWER_LIST_FIELDS = ("choices", "candidates", "results", "outputs", "generations")
"""Names of the list whose first element is the answer, by provider."""
WRAPPER_FIELDS = ("details", "chatResponse", "output")
"""Names of objects that hold the finish reason or the list of answers at Hugging Face, OCI and DashScope."""
REASONING_DETAIL_FIELDS = ("completion_tokens_details", "output_tokens_details", "completionTokensDetails")
"""Names of the object in the token counts that holds the count of hidden reasoning."""
REASONING_COUNT_FIELDS = ("reasoning_tokens", "thinking_tokens", "thoughtsTokenCount", "reasoningTokens")
"""Names of the count of hidden reasoning: OpenAI's and most others', Anthropic's, Gemini's, OCI's."""
PROMPT_DETAIL_FIELDS = ("prompt_tokens_details", "input_tokens_details")
"""Names of the object in the token counts that holds parts of the prompt's count."""
WRITTEN_COUNT_FIELDS = ("cache_creation_input_tokens", "cacheWriteInputTokens")
"""Names of the count of prompt tokens that are written to a cache, at Anthropic and at Bedrock."""
TIERS_OF_TRAFFIC = {
    "ON_DEMAND": "default",
    "ON_DEMAND_PRIORITY": "priority",
    "ON_DEMAND_FLEX": "flex",
    "FLEX": "flex",
    "TRAFFIC_TYPE_UNSPECIFIED": "default",
}
"""Tiers by Google's names of traffic. That of provisioned throughput is paid for in advance, and in no list."""
USUAL_PLACES = frozenset({"", "global", "not_available"})
"""Anthropic's names of a place of inference at the listed price."""
REQUIRED_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "candidates": {"usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}},
    "content": {"usage": {"input_tokens": 0, "output_tokens": 0}, "stop_reason": None},
    "output": {"usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}, "stopReason": None},
    "choices": {"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, "service_tier": "auto"},
}
"""Fields without which litellm cannot read a response, and their defaults, by the field that marks the format."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts of the prompt and the completion as a provider sent them, of any type; None if missing."""

    prompt: object
    completion: object


def native_finish_reason(body: Mapping[str, Any] | None) -> str | None:
    """The finish reason as the provider wrote it, at most `MAX_FINISH_REASON_CHARS` characters; None if absent."""
    if body is None:
        return None
    if is_responses_body(body):
        return responses_status(body)
    for json_object in _finish_reason_objects(body):
        reasons = [text for field in FINISH_REASON_FIELDS if (text := _reason_text(json_object.get(field)))]
        if json_object.get("error"):  # as OpenRouter says that a provider failed after it had sent a part of the answer
            return FAILED_REASON
        if reasons:
            # OpenRouter sends its provider's reason beside its own, which may be the worse one.
            return max(reasons[:2], key=classify_finish_reason) if "native_finish_reason" in json_object else reasons[0]
    return None


def _reason_text(reason: object) -> str | None:
    """A finish reason as text, at most `MAX_FINISH_REASON_CHARS` characters; None for an empty one or another type."""
    is_reason = isinstance(reason, (str, int)) and not isinstance(reason, bool)
    return str(reason)[:MAX_FINISH_REASON_CHARS] or None if is_reason else None


def is_responses_body(body: Mapping[str, Any]) -> bool:
    """Whether a body is a response of OpenAI's Responses API, the only one that some of its models have."""
    return body.get("object") == "response" and isinstance(body.get("output"), list)


def responses_status(body: Mapping[str, Any]) -> str | None:
    """How a response of the Responses API ended: its status, or the reason why it, or a message in it, is incomplete.

    Source: the API reference, "The response object"; `incomplete_details.reason` is `max_output_tokens` or
    `content_filter`.
    """
    status, details = body.get("status"), body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    messages = [item for item in body["output"] if isinstance(item, Mapping) and item.get("type") == "message"]
    is_cut_off = any(message.get("status") == "incomplete" for message in messages)
    if status == "completed" and is_cut_off:
        status = "incomplete"
    return str(reason or status)[:MAX_FINISH_REASON_CHARS] if reason or status else None


def parse_usage(body: Mapping[str, Any] | None) -> TokenUsage | None:
    """Token counts in a body; cached prompt tokens and hidden reasoning are included. None if it has no counts."""
    if body is None:
        return None
    # Counts are looked for in the formats of Gemini, Ollama, OpenAI, Bedrock and Anthropic, in this order.
    if "usageMetadata" in body:
        return _parse_gemini_usage(body["usageMetadata"])
    if "usage" not in body:
        # An answer of Ollama's without counts has `done`; litellm would count its words with a tokenizer of its own.
        has_counts = any(field in body for field in ("prompt_eval_count", "eval_count", "done"))
        return TokenUsage(body.get("prompt_eval_count"), body.get("eval_count")) if has_counts else None
    usage = body["usage"]
    if not isinstance(usage, Mapping):
        return None if usage is None else TokenUsage(usage, None)
    # Cohere's `tokens` have those of a prompt of its own, hundreds for each request, which are not billed.
    holders = (usage[name] for name in ("billed_units", "tokens") if isinstance(usage.get(name), Mapping))
    usage = next((counts for counts in holders if "input_tokens" in counts), usage)
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        return TokenUsage(prompt, _sum_counts(completion, _uncounted_reasoning(body, prompt, completion)))
    if "inputTokens" in usage:
        cached_counts = (usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens"))
        return TokenUsage(_sum_counts(usage["inputTokens"], *cached_counts), usage.get("outputTokens"))
    cached_counts = (usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens"))
    prompt, completion = _sum_counts(usage.get("input_tokens"), *cached_counts), usage.get("output_tokens")
    return TokenUsage(prompt, _sum_counts(completion, _uncounted_reasoning(body, prompt, completion)))


def _uncounted_reasoning(body: Mapping[str, Any] | None, prompt: object, completion: object) -> int | None:
    """Number of tokens of hidden reasoning that are not part of the completion's; None if they are, or for none.

    They are what the total has beside the prompt and the completion: Gemini's thoughts by OpenAI's protocol are counted
    nowhere else. Without a total, they are outside if they are more than the completion's.
    """
    if body is None or type(prompt) is not int or type(completion) is not int:
        return None
    usage, reasoning = body["usage"], parse_reasoning_tokens(body)
    if type(total := usage.get("total_tokens")) is not int:
        return reasoning if total is None and reasoning and reasoning > completion else None
    uncounted, written = total - prompt - completion, parse_written_tokens(body)
    cached = _read_prompt_details(usage).get("cached_tokens")
    cached = cached if type(cached) is int else 0
    # Some servers leave tokens that are read from the cache, or written to it, out of the prompt's count.
    for cache_tokens in (0, cached, written, cached + written):
        if (outside := uncounted - cache_tokens) in (0, reasoning):
            return outside or None
    return uncounted if uncounted > 0 else None


def parse_reasoning_tokens(body: Mapping[str, Any] | None) -> int | None:
    """Number of tokens of hidden reasoning in a body; None if the provider does not say.

    litellm's count is not used: it estimates one from the text of the thinking if the provider sends none.
    """
    if body is None:
        return None
    # Bedrock passes on Anthropic's own counts in an object of its own.
    additional_fields = body.get("additionalModelResponseFields")
    parents = [body, additional_fields if isinstance(additional_fields, Mapping) else {}]
    usages = [usage for parent in parents for name in ("usage", "usageMetadata") if (usage := parent.get(name))]
    for usage in usages:
        if not isinstance(usage, Mapping):
            continue
        for holder in (*(usage.get(name) for name in REASONING_DETAIL_FIELDS), usage):
            counts = [holder.get(name) for name in REASONING_COUNT_FIELDS] if isinstance(holder, Mapping) else []
            if (count := next((count for count in counts if type(count) is int and count >= 0), None)) is not None:
                return count
    return None


def parse_written_tokens(body: Mapping[str, Any] | None) -> int:
    """Number of prompt tokens that the provider wrote to its cache, which some charge a fee for; 0 if it does not say.

    OpenAI does from GPT-5.6 on, whether a cache is asked for or not (its guide on prompt caching).
    """
    usage = body.get("usage") if body is not None else None
    if not isinstance(usage, Mapping):
        return 0
    counts = (_read_prompt_details(usage).get("cache_write_tokens"), *map(usage.get, WRITTEN_COUNT_FIELDS))
    return next((count for count in counts if type(count) is int and count > 0), 0)


def parse_hour_tokens(body: Mapping[str, Any] | None) -> int:
    """Number of prompt tokens that the provider wrote to its cache for an hour, for a higher fee; 0 if it does not say.

    Anthropic counts them by lifetime (`cache_creation.ephemeral_1h_input_tokens`), also through gateways among the
    details of the prompt (`cache_creation_token_details`); Bedrock has a list (`cacheDetails`).
    """
    usage = body.get("usage") if body is not None else None
    if not isinstance(usage, Mapping):
        return 0
    holders = [usage.get("cache_creation"), _read_prompt_details(usage).get("cache_creation_token_details")]
    counts = [holder.get("ephemeral_1h_input_tokens") for holder in holders if isinstance(holder, Mapping)]
    details = usage.get("cacheDetails")
    entries = [entry for entry in details if isinstance(entry, Mapping)] if isinstance(details, list) else []
    listed_counts = [entry.get("inputTokens") for entry in entries if entry.get("ttl") == "1h"]
    counts.append(sum(count for count in listed_counts if type(count) is int and count > 0))
    return next((count for count in counts if type(count) is int and count > 0), 0)


def parse_served_tier(body: Mapping[str, Any] | None) -> str | None:
    """The tier in which a provider says that it processed a request, such as `priority`; None if it does not say.

    It may differ from the one that was asked for: an account can have another default (OpenAI), or lack the capacity.
    """
    usage = body.get("usage") if body is not None else None
    # At OpenAI and Groq beside the token counts, at Anthropic among them, at Bedrock as `serviceTier.type`,
    # at Google as the type of traffic among the token counts.
    holders = [holder for holder in (body, usage) if isinstance(holder, Mapping)]
    tiers = [holder.get(name) for holder in holders for name in ("service_tier", "serviceTier")]
    texts = [tier.get("type") if isinstance(tier, Mapping) else tier for tier in tiers]
    google_usage = body.get("usageMetadata") if body is not None else None
    traffic = google_usage.get("trafficType") if isinstance(google_usage, Mapping) else None
    texts.append(TIERS_OF_TRAFFIC.get(traffic, traffic) if isinstance(traffic, str) else None)
    return next((text for text in texts if isinstance(text, str) and text), None)


def parse_surcharged_place(body: Mapping[str, Any] | None) -> str | None:
    """Where Anthropic says that it processed a request, such as `us`; None if that is at the listed price.

    A workspace can have a default place, at 1.1 times the price (platform.claude.com, "Data residency").
    """
    usage = body.get("usage") if body is not None else None
    place = usage.get("inference_geo") if isinstance(usage, Mapping) else None
    return place if isinstance(place, str) and place not in USUAL_PLACES else None


def _read_prompt_details(usage: Mapping[str, Any]) -> Mapping[str, Any]:
    """Counts of parts of the prompt in OpenAI's format; empty without any."""
    return next((usage[name] for name in PROMPT_DETAIL_FIELDS if isinstance(usage.get(name), Mapping)), {})


def has_integer_counts(usage: TokenUsage) -> bool:
    """Whether both counts are integers, which litellm requires."""
    return type(usage.prompt) is int and type(usage.completion) is int


def join_text_parts(body: Mapping[str, Any] | None, kind: Literal["text", "refusal"] = "text") -> str | None:
    """Join a text that was sent as a list of parts in OpenAI's format, as Mistral may; None if there is no such list.

    litellm takes only the last part, or none. Parts of other kinds are left out.
    """
    match body:
        # The first choice's message has a list as its content.
        case {"choices": [{"message": {"content": [*parts]}}, *_]}:
            return _join_parts(parts, kind) or None
    return None


def _join_parts(parts: list[Any], kind: str = "text") -> str:
    """The texts of the parts of a kind, joined."""
    texts = [part.get(kind) for part in parts if isinstance(part, Mapping) and part.get("type") == kind]
    return "".join(text for text in texts if isinstance(text, str))


def fill_missing_fields(body: Mapping[str, Any]) -> bytes | None:
    """Complete a body with the fields that litellm requires, as JSON; None if none is missing or the format is unknown.

    A text that was sent as a list of parts is joined into one.
    """
    if (text := join_text_parts(body)) is not None:
        first_choice, *other_choices = body["choices"]
        body = {
            **body,
            "choices": [{**first_choice, "message": {**first_choice["message"], "content": text}}, *other_choices],
        }
        return fill_missing_fields(body) or json.dumps(body).encode()
    if is_responses_body(body):
        return None  # read without litellm
    # Each provider's format is recognized by one field of the body.
    format_field = next((field for field in REQUIRED_FIELDS if field in body), None)
    if format_field is None:
        return None
    usage = parse_usage(body)
    is_usable = usage is not None and has_integer_counts(usage)
    missing_fields = {
        field: default
        for field, default in REQUIRED_FIELDS[format_field].items()
        if field not in body or (field.startswith("usage") and not is_usable)
    }
    return json.dumps({**body, **missing_fields}).encode() if missing_fields else None


def _finish_reason_objects(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """JSON objects of a body that may hold a finish reason: first the answers, then the objects that contain them."""
    enclosing_objects = [body, *(body[name] for name in WRAPPER_FIELDS if isinstance(body.get(name), Mapping))]
    answers = [
        answer
        for parent in enclosing_objects
        for field in ANSWER_LIST_FIELDS
        if isinstance(parent.get(field), list) and parent[field] and isinstance(answer := parent[field][0], Mapping)
    ]
    return [*answers, *enclosing_objects]


def _parse_gemini_usage(usage: object) -> TokenUsage:
    """Token counts of Gemini and Vertex AI, which count hidden reasoning separately and leave out zeros."""
    if not isinstance(usage, Mapping):
        return TokenUsage(usage, None)
    prompt_tokens, total_tokens = usage.get("promptTokenCount"), usage.get("totalTokenCount")
    if "candidatesTokenCount" not in usage and "thoughtsTokenCount" not in usage:
        # Thinking until the limit: some versions count it in the total only.
        is_known = isinstance(prompt_tokens, int) and isinstance(total_tokens, int)
        return TokenUsage(prompt_tokens, max(0, total_tokens - prompt_tokens) if is_known else 0)  # type: ignore[operator]
    return TokenUsage(prompt_tokens, _sum_counts(usage.get("candidatesTokenCount", 0), usage.get("thoughtsTokenCount")))


def _sum_counts(first: object, *others: object) -> object:
    """Add a required count and optional ones, None if missing; if one is not an integer, return that one unchanged.

    So callers see what was sent, and do not take a partial sum for a count.
    """
    total = 0
    for count in (first, *(value for value in others if value is not None)):
        if not isinstance(count, int) or isinstance(count, bool):
            return count
        total += count
    return total
