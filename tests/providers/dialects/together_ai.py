"""Together AI's chat completions.

References (read on 2026-11-23): the OpenAPI description, github.com/togethercomputer/openapi (2026-04-28), for the
parameters, their ranges and the response; docs.together.ai/docs/rate-limits for the headers of the limit, none of
which says how long to wait. Exchanges recorded on 2026-05-31 in github.com/maruel/genai
(providers/togetherai/testdata) have the responses, the log-probabilities and the errors for a wrong key and a wrong
model. That `logprobs` has become a boolean, and what newer models say to a number, is in
github.com/UKGovernmentBEIS/inspect_ai/pull/5149; the words of refused values are those in
github.com/lmg-anon/mikupad/issues/55, of the limit, whose type is `credit_limit`, those in
github.com/bespokelabsai/curator/issues/205. A model of the catalogue that needs an endpoint of one's own is refused
with HTTP status 400 (github.com/can1357/oh-my-pi/pull/8333). A filter runs only if a request names a `safety_model`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.providers.bodies import Body, words
from tests.providers.dialect import Rule
from tests.providers.openai_body import OpenAIDialect, chat_body
from tests.support.fake_server import Reply, Request

EFFORTS = ("low", "medium", "high")
BEHAVIORS = ("truncate", "error")
DEDICATED_MODELS = words("Qwen/Qwen2.5-72B-Instruct moonshotai/Kimi-K2.5")
NEW_MODELS = words("MiniMaxAI/MiniMax-M3 zai-org/GLM-5.3-Flash")
RESPONSE_ID = "omJK4yj-z1gNr-a046736ccb14a2b4"
THOUGHTS = "The user asks for the view of people there, as JSON. Many of them object to it."


def error(status: int, message: str, param: str | None = None, code: str | None = None) -> Reply:
    """An error of Together's, with the id of the request beside it."""
    details = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Reply(status, {"id": RESPONSE_ID, "error": details})


def out_of_range(name: str, smallest: float, largest: float, example: Body) -> Rule:
    def find(body: Body) -> str | None:
        value = body.get(name)
        if not isinstance(value, (int, float)) or smallest <= value <= largest:
            return None
        side, bound = ("less than the minimum", smallest) if value < smallest else ("greater than the maximum", largest)
        return f"{value} is {side} of {bound} - '{name}'"

    return Rule(f"{name} out of its range", find, lambda message: error(400, message, name), example)


def not_one_of(name: str, known: tuple[str, ...], example: Body) -> Rule:
    """A rule for a parameter with a list of values."""
    find: Callable[[Body], Any] = lambda body: body.get(name) not in (None, *known) and body[name]  # noqa: E731
    return Rule(
        f"a value of {name} that does not exist",
        find,
        lambda value: error(400, f"'{value}' is not one of {list(known)} - '{name}'", name),
        example,
    )


NUMBER_OF_LOGPROBS = Rule(
    "a number of log-probabilities, to a newer model",
    lambda body: body["model"] in NEW_MODELS and type(body.get("logprobs")) is int and body["logprobs"],
    lambda number: error(400, f"Invalid JSON data: invalid type: integer {number}, expected a boolean"),
    {"model": "MiniMaxAI/MiniMax-M3", "logprobs": 1},
)
DEDICATED = Rule(
    "a model that needs an endpoint of one's own",
    lambda body: body["model"] if body["model"] in DEDICATED_MODELS else None,
    lambda model: error(
        400,
        f"Unable to access non-serverless model {model}. Please visit https://api.together.ai/models/{model} to create "
        "and start a new dedicated endpoint for the model.",
        code="model_not_available",
    ),
    {"model": "moonshotai/Kimi-K2.5"},
)
VALID_BODY: Body = chat_body("Qwen/Qwen2.5-7B-Instruct-Turbo", max_tokens=400, seed=7, n=1)


class TogetherAI(OpenAIDialect):
    """Together AI, with a model that does not think, and one that always does."""

    title = "Together AI"
    reference = "github.com/togethercomputer/openapi and docs.together.ai, read on 2026-11-23"
    model = "together_ai/Qwen/Qwen2.5-7B-Instruct-Turbo"
    thinking_model = "together_ai/openai/gpt-oss-120b"
    wrong_model = "together_ai/Qwen/Qwen2.5-8B-Instruct-Turbo"
    key_variable = "TOGETHER_API_KEY"
    url = "https://api.together.ai/v1/chat/completions"
    valid_body = VALID_BODY
    has_logprobs = True
    rules = (
        DEDICATED,
        NUMBER_OF_LOGPROBS,
        out_of_range("n", 1, 128, {"n": 129}),
        out_of_range("logprobs", 0, 20, {"logprobs": 21}),
        out_of_range("top_logprobs", 0, 20, {"logprobs": True, "top_logprobs": 21}),
        out_of_range("presence_penalty", -2, 2, {"presence_penalty": 2.5}),
        not_one_of("reasoning_effort", EFFORTS, {"reasoning_effort": "extreme"}),
        not_one_of("context_length_exceeded_behavior", BEHAVIORS, {"context_length_exceeded_behavior": "ask"}),
    )
    extra_fields = (
        "choices.0.logprobs", "choices.0.seed", "metadata.weight_version", "prompt", "usage.reasoning_tokens",
    )  # fmt: skip

    def thinks(self, request: Request) -> bool:
        return self.requested_model(request).startswith("openai/gpt-oss")

    def completion_body(self, message: dict[str, Any], finish: str, request: Request) -> dict[str, Any]:
        thoughts = {"reasoning": THOUGHTS} if self.thinks(request) else {}
        body = super().completion_body({"tool_calls": [], **message, **thoughts}, finish, request)
        body["choices"][0] |= {"logprobs": None, "seed": request.body.get("seed")}
        return {**body, "id": RESPONSE_ID, "metadata": {"weight_version": "default"}, "prompt": []}

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        """Token counts; those of the thoughts, as recorded, are 0 even if there are some."""
        return {**super().usage(completion_tokens), "reasoning_tokens": 0}

    def unauthenticated(self, request: Request) -> Reply:
        advice = "You can find your API key at https://api.together.ai/settings/api-keys."
        return error(401, f"Invalid API key provided. {advice}", code="invalid_api_key")

    def unknown_model(self, model: str) -> Reply:
        advice = "Please visit https://api.together.ai/models to view the list of supported models."
        return error(404, f"Unable to access model {model}. {advice}", code="model_not_available")

    def rate_limited(self, request: Request) -> Reply:
        """The type is that of a spent credit."""
        message = (
            "Request was rejected due to request rate limiting. Your rate limits are 600 RPM (10 QPS) and 180000 TPM "
            "(3000 TPS). See details: https://docs.together.ai/docs/rate-limits"
        )
        details = {"message": message, "type": "credit_limit", "param": None, "code": None}
        headers = {"x-ratelimit-limit": "10", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}
        return Reply(429, {"id": RESPONSE_ID, "error": details}, headers)


DIALECT = TogetherAI()
