"""Base of the dialects whose requests and responses have the form of OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from auditor.domain import AnswerForm
from tests.providers.bodies import Body, words
from tests.providers.dialect import Content, Dialect, Structure
from tests.support.fake_server import Reply, Request

BASIC_FIELDS = words(
    """id object created model choices choices.0.index choices.0.finish_reason choices.0.message.role
    choices.0.message.content choices.0.message.tool_calls usage.prompt_tokens usage.completion_tokens
    usage.total_tokens"""
)
"""Response fields that all these dialects have in common."""
TOP_TOKENS = {"A": -0.35, "B": -1.25, " A": -4.5, "The": -6.0}
"""Likeliest next tokens of a question with the options A and B, with their log-probabilities."""
ANSWER = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
"""A JSON schema that every provider takes which takes any."""
BOUNDED_ANSWER = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "minLength": 1, "maxLength": 400},
        "score": {"type": "number", "minimum": -1, "maximum": 1},
    },
    "required": ["answer", "score"],
}


def schema_format(schema: Mapping[str, Any] = ANSWER, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "Reply", "schema": schema, **more}}


def chat_body(model: str, *, question: str = "Is it right?", **more: Any) -> Body:
    """A question to a model, with these further keys; by default the answer has the schema `ANSWER`."""
    messages = [{"role": "user", "content": question}]
    answer_format = schema_format(strict=True)
    return {"model": model, "messages": messages, "temperature": 0.7, "response_format": answer_format, **more}


UNFINISHED_THOUGHT = "Let me think about what families there value."


class OpenAIDialect(Dialect):
    """OpenAI's body; a provider's dialect adds its own fields, by overriding these methods."""

    finish_cut_off: ClassVar[str] = "length"
    thinking_message: ClassVar[Mapping[str, Any]] = {}
    """Fields of a message that ends while the model still thinks."""
    message_fields: ClassVar[Body] = {}
    choice_fields: ClassVar[Body] = {}
    body_fields: ClassVar[Body] = {}
    """What the provider adds to each message, choice and response."""
    has_logprobs: ClassVar[bool] = False
    prompt_tokens: ClassVar[int] = 150
    completion_tokens: ClassVar[int] = 60

    def structure(self, body: Body) -> Structure:
        response_format = body.get("response_format") or {}
        if response_format.get("type") == "json_schema":
            return Structure(AnswerForm.JSON_SCHEMA, response_format.get("json_schema", {}).get("schema"))
        if response_format.get("type") == "json_object":
            return Structure(AnswerForm.JSON_OBJECT)
        if body.get("tools") and body.get("tool_choice") not in (None, "auto", "none"):
            function = body["tools"][0]["function"]
            return Structure(AnswerForm.TOOL, function.get("parameters"), function["name"])
        return Structure(AnswerForm.TEXT)

    def prompt(self, body: Body) -> str:
        return "\n".join(_text_of(message.get("content")) for message in body.get("messages", []))

    def token_limit(self, body: Body) -> int | None:
        limit = body.get("max_completion_tokens", body.get("max_tokens"))
        return limit if isinstance(limit, int) else None

    def message(self, content: Content) -> dict[str, Any]:
        if content.tool is None:
            return {"role": "assistant", "content": content.text, **self.message_fields}
        function = {"name": content.tool, "arguments": content.text}
        tool_call = {"id": "call_8Xz", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [tool_call], **self.message_fields}

    def completion(self, content: Content, request: Request, *, is_cut_off: bool = False) -> Reply:
        finish = self.finish_cut_off if is_cut_off else "tool_calls" if content.tool else "stop"
        return Reply(body=self.completion_body(self.message(content), finish, request))

    def completion_body(self, message: dict[str, Any], finish: str, request: Request) -> dict[str, Any]:
        choice = {"index": 0, "message": message, "finish_reason": finish, **self.choice_fields}
        return {
            "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG", "object": "chat.completion", "created": 1753920000,
            "model": self.requested_model(request), "choices": [choice], "usage": self.usage(self.completion_tokens),
            **self.body_fields,
        }  # fmt: skip

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        """Token counts; with the hidden reasoning as its own count if given."""
        usage: dict[str, Any] = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": self.prompt_tokens + completion_tokens,
        }
        if reasoning_tokens is not None:
            usage["completion_tokens_details"] = {"reasoning_tokens": reasoning_tokens}
        return usage

    def out_of_thinking(self, request: Request) -> Reply:
        """An empty text, cut off, with all of its tokens spent on hidden reasoning."""
        limit = self.token_limit(request.body) or self.thinking_tokens
        message = {**self.message(Content("")), **self.thinking_message}
        body = self.completion_body(message, self.finish_cut_off, request)
        return Reply(body=body | {"usage": {**body["usage"], **self.usage(limit, limit)}})

    def logprobs(self, request: Request) -> Reply:
        return self.choice_logprobs(request) if self.has_logprobs else super().logprobs(request)

    def choice_logprobs(self, request: Request) -> Reply:
        """A response with the likeliest next tokens, in OpenAI's format."""
        limit = request.body.get("top_logprobs") or 0
        tokens = [{"token": token, "logprob": p, "bytes": list(token.encode())} for token, p in TOP_TOKENS.items()]
        body = self.completion_body({"role": "assistant", "content": "A"}, "length", request)
        content = [{**tokens[0], "top_logprobs": tokens[:limit]}]
        body["choices"][0]["logprobs"] = {"content": content, "refusal": None}
        return Reply(body=body)


def _text_of(content: Any) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content or "")
