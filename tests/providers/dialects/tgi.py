"""Hugging Face's Text Generation Inference, as in its Inference Endpoints.

References (read on 2026-11-23), in github.com/huggingface/text-generation-inference at commit db931fcf (2026-01-08):
the request and the response, router/src/lib.rs; validation, router/src/validation.rs; errors,
router/src/infer/mod.rs; the key, router/src/server.rs; tools,
integration-tests/models/__snapshots__/test_tools_llama. A body that cannot be read is refused by axum, as plain text.
A response format has the key `value` where OpenAI has `json_schema` (pull request 3276, still open, would accept
both), so OpenAI's forms cannot be read. The server answers to every model's name, and the completions endpoint knows
neither `echo` nor `logprobs`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.providers.bodies import REMOVED, Body
from tests.providers.dialect import Content, Rule
from tests.providers.openai_body import OpenAIDialect
from tests.providers.text_completions import completion_body, plain_choices
from tests.support.fake_server import Reply, Request

SECTION = {"api_base": "http://localhost:3000/v1"}
MAX_TOP_TOKENS = 5
"""Default of `--max-top-n-tokens`."""
MAX_STOP_SEQUENCES = 4
TOTAL_TOKENS = 16384
FINGERPRINT = "3.3.6-native"
VALID_BODY: Body = {
    "model": "tgi", "messages": [{"role": "user", "content": "Is it right?"}], "temperature": 0.7, "max_tokens": 400,
    "seed": 1,
}  # fmt: skip
TOOL = {"type": "function", "function": {"name": "Reply", "parameters": {"properties": {"answer": {"type": "string"}}}}}


def unreadable(problem: str) -> Reply:
    """The answer to a body that does not fit the types; the server's place in the body is left out."""
    text = f"Failed to deserialize the JSON body into the target type: {problem} at line 1 column 412"
    return Reply(422, raw=text.encode(), headers={"content-type": "text/plain; charset=utf-8"})


def error(status: int, message: str, kind: str) -> Reply:
    """An `ErrorResponse`."""
    return Reply(status, {"error": message, "error_type": kind})


def invalid(problem: str) -> Reply:
    """The answer to a parameter out of its range."""
    return error(422, f"Input validation error: {problem}", "validation")


class TGI(OpenAIDialect):
    """A server of the user's, started with `--api-key`."""

    title = "Hugging Face Text Generation Inference"
    reference = "github.com/huggingface/text-generation-inference, router/src; read on 2026-11-23"
    model = "openai/tgi"
    wrong_model = "openai/tgi-nope"
    section = SECTION
    key_variable = "TGI_API_KEY"
    url = "http://localhost:3000/v1/chat/completions"
    completions_url = "http://localhost:3000/v1/completions"
    valid_body = VALID_BODY
    choice_fields: ClassVar[Body] = {"logprobs": None}
    body_fields: ClassVar[Body] = {
        "id": "", "model": "meta-llama/Llama-3.1-8B-Instruct", "system_fingerprint": FINGERPRINT,
    }  # fmt: skip
    extra_fields = ("system_fingerprint", "choices.0.logprobs", "choices.0.message.tool_calls.0.function.description")
    rules = (
        Rule(
            "neither messages nor a prompt", lambda body: not {"messages", "prompt"} & body.keys(),
            unreadable("missing field `messages`"), {"messages": REMOVED},
        ),
        Rule(
            "a response format in OpenAI's words",
            lambda body: "response_format" in body and "value" not in body["response_format"],
            unreadable("response_format: missing field `value`"),
            {"response_format": {"type": "json_schema", "json_schema": {"name": "Reply", "schema": {}}}},
        ),
        Rule(
            "a response format beside tools", lambda body: "response_format" in body and "tools" in body,
            error(422, "Tool error: Grammar and tools are mutually exclusive", "tool_error"),
            {"response_format": {"type": "json_object", "value": {"properties": {}}}, "tools": [TOOL]},
        ),
        Rule(
            "a negative temperature", lambda body: (body.get("temperature") or 0) < 0,
            invalid("`temperature` must be strictly positive"), {"temperature": -0.5},
        ),
        Rule(
            "top_p at or beyond its bounds", lambda body: "top_p" in body and not 0 < body["top_p"] < 1,
            invalid("`top_p` must be > 0.0 and < 1.0"), {"top_p": 1.0},
        ),
        Rule(
            "too many top_logprobs",
            lambda body: (body.get("top_logprobs") or 0) > MAX_TOP_TOKENS and body["top_logprobs"],
            lambda n: invalid(f"`top_n_tokens` must be >= 0 and <= {MAX_TOP_TOKENS}. Given: {n}"),
            {"logprobs": True, "top_logprobs": 20},
        ),
        Rule(
            "no output tokens", lambda body: body.get("max_tokens") == 0,
            invalid("`max_new_tokens` must be strictly positive"), {"max_tokens": 0},
        ),
        Rule(
            "more tokens than the server has room for",
            lambda body: (body.get("max_tokens") or 0) > TOTAL_TOKENS and body["max_tokens"],
            lambda n: invalid(
                f"`inputs` tokens + `max_new_tokens` must be <= {TOTAL_TOKENS}. Given: 150 `inputs` tokens and {n} "
                "`max_new_tokens`"
            ),
            {"max_tokens": 20000},
        ),
        Rule(
            "too many stop sequences",
            lambda body: len(body.get("stop") or []) > MAX_STOP_SEQUENCES and len(body["stop"]),
            lambda n: invalid(f"`stop` supports up to {MAX_STOP_SEQUENCES} stop sequences. Given: {n}"),
            {"stop": ["1", "2", "3", "4", "5"]},
        ),
    )  # fmt: skip

    def message(self, content: Content) -> dict[str, Any]:
        message = super().message(content)
        for call in message.get("tool_calls", []):
            call["id"] = "0"
            call["function"]["description"] = None
        return message

    def completion(self, content: Content, request: Request, *, is_cut_off: bool = False) -> Reply:
        """A called tool ends with `stop` too."""
        finish = self.finish_cut_off if is_cut_off else "stop"
        return Reply(body=self.completion_body(self.message(content), finish, request))

    def unauthenticated(self, request: Request) -> Reply:
        """A status, and nothing more."""
        return Reply(401, raw=b"")

    def rate_limited(self, request: Request) -> Reply:
        return error(429, "Model is overloaded", "overloaded")

    def logprobs(self, request: Request) -> Reply:
        if "prompt" not in request.body:
            return self.choice_logprobs(request)
        return Reply(body=completion_body(plain_choices(request), "tgi") | {"system_fingerprint": FINGERPRINT})

    def out_of_thinking(self, request: Request) -> Reply:
        """Never; see the expectations."""
        raise NotImplementedError


DIALECT = TGI()
