"""Responses of completions endpoints in OpenAI's format, with or without the log-probabilities of the prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tests.support.fake_server import Request

TOKEN = re.compile(r"\s*\S+")
"""A token of these servers: a word with the whitespace before it."""
GENERATED_TOKEN = " indeed"


def prompts(request: Request) -> Sequence[str]:
    """The prompts of a request, which may hold one or a list."""
    prompt = request.body.get("prompt", "")
    return [prompt] if isinstance(prompt, str) else [str(part) for part in prompt]


def plain_choices(request: Request) -> list[dict[str, Any]]:
    """One choice a prompt: the generated token, without the prompt and without log-probabilities."""
    return [
        {"index": index, "text": GENERATED_TOKEN, "logprobs": None, "finish_reason": "length"}
        for index, _ in enumerate(prompts(request))
    ]


def echoed_choices(request: Request) -> list[dict[str, Any]]:
    """One choice a prompt: the prompt and the generated token, with the log-probability of each token but the first."""
    return [
        {
            "index": index,
            "text": prompt + GENERATED_TOKEN,
            "logprobs": _token_logprobs([*TOKEN.findall(prompt), GENERATED_TOKEN]),
            "finish_reason": "length",
        }
        for index, prompt in enumerate(prompts(request))
    ]


def completion_body(choices: list[dict[str, Any]], model: str) -> dict[str, Any]:
    """The body of a text completion, with OpenAI's fields alone."""
    usage = {"prompt_tokens": 24, "completion_tokens": len(choices), "total_tokens": 24 + len(choices)}
    return {
        "id": "cmpl-4a1f2c3d4e5f60718293a4b5c6d7e8f9", "object": "text_completion", "created": 1753920000,
        "model": model, "choices": choices, "usage": usage,
    }  # fmt: skip


def _token_logprobs(tokens: Sequence[str]) -> dict[str, Any]:
    """Log-probabilities in the format of the completions endpoint; the longer a token, the less likely it is."""
    logprobs = [None, *(-0.25 * len(token) for token in tokens[1:])]
    offsets = [len("".join(tokens[:index])) for index, _ in enumerate(tokens)]
    tops = [None, *({token: logprob} for token, logprob in zip(tokens[1:], logprobs[1:], strict=True))]
    return {"text_offset": offsets, "tokens": list(tokens), "token_logprobs": logprobs, "top_logprobs": tops}
