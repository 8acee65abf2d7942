"""Answers and errors in each provider's documented wire format.

Sources: OpenAI's API reference (chat completions, completions, batch), Anthropic's Messages API and its page on stop
reasons, Google's GenerateContentResponse, Amazon's Converse, the chat completions of Mistral, Groq and OpenRouter, and
vLLM's completions.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

MODEL = "hostile-1"
PROMPT, COMPLETION = 100, 20
"""Token counts of every answer with a correct usage."""
FINISH: dict[str, dict[str, str]] = {
    "openai": {"complete": "stop", "cut": "length", "refused": "content_filter"},
    "anthropic": {"complete": "end_turn", "cut": "max_tokens", "refused": "refusal", "failed": "pause_turn"},
    "gemini": {"complete": "STOP", "cut": "MAX_TOKENS", "refused": "SAFETY", "failed": "MALFORMED_FUNCTION_CALL"},
    "bedrock": {
        "complete": "end_turn", "cut": "max_tokens", "refused": "guardrail_intervened",
        "failed": "malformed_model_output",
    },
    "mistral": {"complete": "stop", "cut": "model_length", "failed": "error"},
    "groq": {"complete": "stop", "cut": "length"},
    "openrouter": {"complete": "STOP", "cut": "MAX_TOKENS", "refused": "SAFETY", "failed": "error"},
    "echo": {"complete": "length"},
}  # fmt: skip
"""Native finish reason by family and value of the axis; OpenRouter passes on that of the model's provider."""
NORMALIZED = {"complete": "stop", "cut": "length", "refused": "content_filter", "failed": "error"}
"""Finish reason that OpenRouter sends in addition to the native one."""
FUNCTION_CALLED = {"anthropic": "tool_use", "gemini": "STOP", "bedrock": "tool_use"}
"""Finish reason of an answer with a function call; `tool_calls` for other families."""
UNKNOWN = "zorgle"


class AnswerContent(NamedTuple):
    """Content of a model's answer.

    Attributes:
        parts: the text in one or more parts; None for no text.
        function: name of a called function, with its arguments as JSON text (`arguments`) or as a table (`input`).
        refusal: text of OpenAI's field `refusal`.
        model: model name in the answer.
    """

    parts: tuple[str, ...] | None = None
    function: dict[str, Any] | None = None
    refusal: str | None = None
    model: str = MODEL


def family_of(protocol: str) -> str:
    """Protocol whose wire format this one uses: batches use that of single calls."""
    return protocol.removesuffix("-batch")


def finish_of(protocol: str, choice: str, *, calls_function: bool = False) -> dict[str, Any]:
    """Finish reasons of an answer: `finish`, and for OpenRouter also `native`; empty if the field is missing.

    Args:
        choice: value of the axis `finish`, or `=` and the finish reason itself.
    """
    family = family_of(protocol)
    if choice.startswith("="):
        return {"finish": "stop" if family == "openrouter" else choice[1:], "native": choice[1:]}
    kind = choice.lower()
    if kind == "missing":
        return {}
    if kind in ("null", "unknown"):
        word = None if kind == "null" else UNKNOWN
        return {"finish": "stop" if word and family == "openrouter" else word, "native": word}
    native = FINISH[family].get(kind, NORMALIZED[kind])
    if calls_function and kind == "complete":
        native = FUNCTION_CALLED.get(family, "tool_calls")
    if choice.isupper():
        native = native.swapcase()
    return {"finish": NORMALIZED[kind] if family == "openrouter" else native, "native": native}


def usage_of(protocol: str, choice: str) -> Any:
    """Usage with the provider's field names; `ABSENT` if the answer has none."""
    family = family_of(protocol)
    numbers: dict[str, tuple[Any, Any]] = {
        "right": (PROMPT, COMPLETION), "zero": (0, 0), "negative": (-PROMPT, -COMPLETION), "null": (None, None),
        "strings": (str(PROMPT), str(COMPLETION)), "floats": (float(PROMPT), float(COMPLETION)),
        "hundred-million": (10**8, 10**8), "1e30": (10**30, 10**30), "reasoning": (PROMPT, COMPLETION),
        "cached": (PROMPT, COMPLETION), "no-completion": (PROMPT, None), "under-100-times": (PROMPT, 14_000),
        "over-100-times": (PROMPT, 16_000),
    }  # fmt: skip
    if choice == "absent":
        return ABSENT
    prompt, completion = numbers[choice]
    return _USAGE.get(family, _usage_openai)(prompt, completion, choice)


ABSENT = object()
"""Marks a missing key."""


def _total(prompt: Any, completion: Any) -> Any:
    """Sum of prompt and completion tokens, if both are numbers."""
    return prompt + completion if isinstance(prompt, (int, float)) and completion is not None else prompt


def _usage_openai(prompt: Any, completion: Any, choice: str) -> dict[str, Any]:
    total = _total(prompt, completion)
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    if choice == "reasoning":
        usage["completion_tokens_details"] = {"reasoning_tokens": completion}
    if choice == "cached":
        usage["prompt_tokens_details"] = {"cached_tokens": 9 * PROMPT}
    return usage


def _usage_anthropic(prompt: Any, completion: Any, choice: str) -> dict[str, Any]:
    usage = {"input_tokens": prompt, "output_tokens": completion}
    return usage | ({"cache_read_input_tokens": 9 * PROMPT} if choice == "cached" else {})


def _usage_gemini(prompt: Any, completion: Any, choice: str) -> dict[str, Any]:
    total = _total(prompt, completion)
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": completion, "totalTokenCount": total}
    if choice == "reasoning":
        usage |= {"candidatesTokenCount": 0, "thoughtsTokenCount": completion}
    return usage | ({"cachedContentTokenCount": 9 * PROMPT} if choice == "cached" else {})


def _usage_bedrock(prompt: Any, completion: Any, choice: str) -> dict[str, Any]:
    total = _total(prompt, completion)
    usage = {"inputTokens": prompt, "outputTokens": completion, "totalTokens": total}
    return usage | ({"cacheReadInputTokens": 9 * PROMPT} if choice == "cached" else {})


_USAGE = {"anthropic": _usage_anthropic, "gemini": _usage_gemini, "bedrock": _usage_bedrock}


def answer(protocol: str, answer_content: AnswerContent, finish: dict[str, Any], usage: Any) -> dict[str, Any]:
    """Complete response body of a chat.

    Args:
        finish: from `finish_of`.
        usage: from `usage_of`.
    """
    return _ANSWERS.get(family_of(protocol), _answer_openai)(protocol, answer_content, finish, usage)


def _answer_openai(protocol: str, answer_content: AnswerContent, finish: dict[str, Any], usage: Any) -> dict[str, Any]:
    content: Any = None if answer_content.parts is None else "".join(answer_content.parts)
    if answer_content.parts is not None and len(answer_content.parts) > 1:
        content = [{"type": "text", "text": part} for part in answer_content.parts]
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if answer_content.refusal is not None:
        message["refusal"] = answer_content.refusal
    if answer_content.function is not None:
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": answer_content.function}]
    choice: dict[str, Any] = {"index": 0, "message": message}
    if "finish" in finish:
        choice["finish_reason"] = finish["finish"]
    if family_of(protocol) == "openrouter" and "native" in finish:
        choice["native_finish_reason"] = finish["native"]
    body = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": answer_content.model,
        "choices": [choice],
    }  # fmt: skip
    return _with_usage(body, "usage", usage)


def _answer_anthropic(
    protocol: str, answer_content: AnswerContent, finish: dict[str, Any], usage: Any
) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": part} for part in answer_content.parts or ()]
    if answer_content.function is not None:
        blocks.append(
            {
                "type": "tool_use",
                "id": "toolu_1",
                "name": answer_content.function["name"],
                "input": answer_content.function["input"],
            }
        )
    body: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": answer_content.model, "content": blocks,
    }  # fmt: skip
    if answer_content.parts is None and answer_content.function is None:
        body["content"] = None
    if "finish" in finish:
        body |= {"stop_reason": finish["finish"], "stop_sequence": None}
    return _with_usage(body, "usage", usage)


def _answer_gemini(protocol: str, answer_content: AnswerContent, finish: dict[str, Any], usage: Any) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": part} for part in answer_content.parts or ()]
    if answer_content.function is not None:
        parts.append(
            {"functionCall": {"name": answer_content.function["name"], "args": answer_content.function["input"]}}
        )
    is_empty = answer_content.parts is None and answer_content.function is None
    content = None if is_empty else {"role": "model", "parts": parts}
    candidate: dict[str, Any] = {"content": content, "index": 0}
    if "finish" in finish:
        candidate["finishReason"] = finish["finish"]
    return _with_usage({"candidates": [candidate], "modelVersion": answer_content.model}, "usageMetadata", usage)


def _answer_bedrock(protocol: str, answer_content: AnswerContent, finish: dict[str, Any], usage: Any) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"text": part} for part in answer_content.parts or ()]
    if answer_content.function is not None:
        call = {
            "toolUseId": "tooluse_1",
            "name": answer_content.function["name"],
            "input": answer_content.function["input"],
        }
        content.append({"toolUse": call})
    is_empty = answer_content.parts is None and answer_content.function is None
    message = None if is_empty else {"role": "assistant", "content": content}
    body: dict[str, Any] = {"output": {"message": message}, "metrics": {"latencyMs": 1}}
    if "finish" in finish:
        body["stopReason"] = finish["finish"]
    return _with_usage(body, "usage", usage)


def _with_usage(body: dict[str, Any], key: str, usage: Any) -> dict[str, Any]:
    return body if usage is ABSENT else {**body, key: usage}


_ANSWERS = {"anthropic": _answer_anthropic, "gemini": _answer_gemini, "bedrock": _answer_bedrock}


def echo_answer(prompts: list[str], *, model: str, measured: bool, usage: Any, mark: str = "") -> dict[str, Any]:
    """Completions with the log-probabilities of each prompt's tokens, or without them.

    Args:
        mark: text added to the last token, which is generated and not part of the prompt.
    """
    choices: list[dict[str, Any]] = []
    for index, prompt in enumerate(prompts):
        words = prompt.split(" ")
        tokens = [words[0], *(f" {word}" for word in words[1:]), f" and{mark}"]
        values = [None, *(-(zlib.crc32(f"{prompt[:20]}|{token}".encode()) % 1000) / 100 for token in tokens[1:])]
        choice: dict[str, Any] = {"index": index, "text": "".join(tokens), "finish_reason": "length", "logprobs": None}
        if measured:
            offsets = [sum(map(len, tokens[:i])) for i in range(len(tokens))]
            choice["logprobs"] = {
                "tokens": tokens, "token_logprobs": values, "text_offset": offsets, "top_logprobs": None,
            }  # fmt: skip
        choices.append(choice)
    return _with_usage(
        {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": model, "choices": choices}, "usage", usage
    )


def without_choices(protocol: str, usage: Any, *, null_choice: bool) -> dict[str, Any]:
    """An answer whose list of choices is empty or has one null."""
    choices: list[None] = [None] if null_choice else []
    family = family_of(protocol)
    if family == "anthropic":
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": choices}
        return _with_usage(message | {"stop_reason": "end_turn", "stop_sequence": None}, "usage", usage)
    if family == "gemini":
        return _with_usage({"candidates": choices, "modelVersion": MODEL}, "usageMetadata", usage)
    if family == "bedrock":
        output = {"message": {"role": "assistant", "content": choices}}
        return _with_usage({"output": output, "stopReason": "end_turn"}, "usage", usage)
    return _with_usage({"id": "1", "object": "chat.completion", "model": MODEL, "choices": choices}, "usage", usage)


KINDS = {
    "400": "invalid_request_error", "401": "authentication_error", "402": "billing_error", "403": "permission_error",
    "404": "not_found_error", "408": "timeout_error", "429": "rate_limit_error", "529": "overloaded_error",
}  # fmt: skip
"""Anthropic's error type by HTTP status; `api_error` for all others."""
GOOGLE = {
    "400": "INVALID_ARGUMENT", "401": "UNAUTHENTICATED", "403": "PERMISSION_DENIED", "404": "NOT_FOUND",
    "429": "RESOURCE_EXHAUSTED",
}  # fmt: skip


def error(protocol: str, status: str, message: str) -> dict[str, Any]:
    """Response body of an error in the provider's format."""
    family = family_of(protocol)
    if family == "anthropic":
        return {"type": "error", "error": {"type": KINDS.get(status, "api_error"), "message": message}}
    if family == "gemini":
        return {"error": {"code": int(status), "message": message, "status": GOOGLE.get(status, "INTERNAL")}}
    if family == "bedrock":
        return {"message": message}
    if family == "mistral":
        return {"object": "error", "message": message, "type": "error", "param": None, "code": None}
    if family == "openrouter":
        return {"error": {"code": int(status), "message": message}}
    return {"error": {"message": message, "type": "error", "param": None, "code": None}}
