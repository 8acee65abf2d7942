"""AWS Bedrock's Converse API.

References (read on 2026-11-23): docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html and the
service model of botocore, `bedrock-runtime/2023-09-30` (github.com/boto/botocore), for fields, ranges and patterns;
docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html. The words of refusals are those in
github.com/stdapi-ai/stdapi.ai/issues/224 (range), github.com/BerriAI/litellm/pull/29624 (schema keywords),
github.com/mem0ai/mem0/pull/4147 (temperature and topP), github.com/langchain-ai/langchain-aws/issues/447 (tools).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from auditor.domain import AnswerForm
from tests.providers.bodies import REMOVED, Body
from tests.providers.dialect import Content, Dialect, Rule, Structure
from tests.providers.dialects.anthropic import refused_keywords
from tests.support.fake_server import Reply, Request

CLAUDE = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
DEEPSEEK = "us.deepseek.r1-v1:0"
MAX_OUTPUT_TOKENS = 64_000


def error(status: int, kind: str, message: str) -> Reply:
    """An error in the format of AWS's JSON protocol, whose kind is in a header."""
    return Reply(status, {"message": message}, {"x-amzn-errortype": kind, "x-amzn-requestid": "ad4209b4-72ef"})


def invalid(message: str) -> Reply:
    return error(400, "ValidationException", message)


def constraint(number: object, path: str, requirement: str) -> Reply:
    """A value that breaks a constraint of the service model."""
    place = f"Value '{number}' at '{path}' failed to satisfy constraint"
    return invalid(f"1 validation error detected: {place}: {requirement}")


def inference(body: Body) -> dict[str, Any]:
    config: dict[str, Any] = body.get("inferenceConfig") or {}
    return config


def output_schema(body: Body) -> dict[str, Any] | None:
    """The JSON schema of the answer, which is sent as a string."""
    text_format = (body.get("outputConfig") or {}).get("textFormat") or {}
    text = text_format.get("structure", {}).get("jsonSchema", {}).get("schema")
    schema: dict[str, Any] | None = json.loads(text) if text else None
    return schema


def tool_specs(body: Body) -> list[dict[str, Any]]:
    return [tool["toolSpec"] for tool in (body.get("toolConfig") or {}).get("tools", [])]


class Bedrock(Dialect):
    """Claude on Bedrock, and DeepSeek-R1, by the credentials of an AWS machine."""

    title = "AWS Bedrock"
    reference = "docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html, read on 2026-11-23"
    model = f"bedrock/{CLAUDE}"
    thinking_model = f"bedrock/{DEEPSEEK}"
    wrong_model = "bedrock/eu.anthropic.claude-nope-v1:0"
    section: ClassVar[Mapping[str, Any]] = {"params": {"aws_region_name": "eu-central-1"}}
    key_variable = None
    url = "https://bedrock-runtime.eu-central-1.amazonaws.com/model/{model}/converse"
    # litellm takes this one for a model that it does not know.
    other_urls = ("https://bedrock-runtime.eu-central-1.amazonaws.com/model/{model}/invoke",)
    valid_body: ClassVar[Body] = {
        "modelId": CLAUDE,
        "messages": [{"role": "user", "content": [{"text": "Is it right?"}]}],
        "system": [{"text": "Answer in JSON."}],
        "inferenceConfig": {"temperature": 0.7, "maxTokens": 400},
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {
                    "jsonSchema": {
                        "name": "Reply",
                        "schema": '{"type": "object", "properties": {"answer": {"type": "string"}}, '
                        '"required": ["answer"], "additionalProperties": false}',
                    }
                },
            }
        },
    }
    rules: tuple[Rule, ...] = (
        Rule(
            "a conversation that the user does not begin",
            lambda body: not body.get("messages") or body["messages"][0]["role"] != "user",
            invalid(
                "A conversation must start with a user message. Try again with a conversation that starts with a user "
                "message."
            ),
            {"messages": REMOVED},
        ),
        Rule(
            "a temperature above 1",
            lambda body: (inference(body).get("temperature") or 0) > 1 and inference(body)["temperature"],
            lambda number: constraint(
                number, "inferenceConfig.temperature", "Member must have value less than or equal to 1"
            ),
            {"inferenceConfig": {"temperature": 1.5}},
        ),
        Rule(
            "a limit of no tokens", lambda body: inference(body).get("maxTokens", 1) < 1,
            constraint(0, "inferenceConfig.maxTokens", "Member must have value greater than or equal to 1"),
            {"inferenceConfig": {"maxTokens": 0}},
        ),
        Rule(
            "more tokens than the model can write",
            lambda body: inference(body).get("maxTokens", 1) > MAX_OUTPUT_TOKENS,
            invalid(
                f"The maximum tokens you requested exceeds the model limit of {MAX_OUTPUT_TOKENS}. Try again with a "
                f"maximum tokens value that is lower than {MAX_OUTPUT_TOKENS}."
            ),
            {"inferenceConfig": {"maxTokens": 100_000}},
        ),
        Rule(
            "temperature and topP at once", lambda body: {"temperature", "topP"} <= inference(body).keys(),
            invalid(
                "The model returned the following errors: `temperature` and `top_p` cannot both be specified for this "
                "model. Please use only one.",
            ),
            {"inferenceConfig": {"topP": 0.9}},
        ),
        Rule(
            "a schema that the model does not support", lambda body: refused_keywords(output_schema(body)),
            lambda reason: invalid(f"The model returned the following errors: output_config.format.schema: {reason}"),
            {
                "outputConfig": {
                    "textFormat": {
                        "structure": {
                            "jsonSchema": {
                                "schema": '{"type": "object", "properties": {"score": {"type": "number", "minimum": '
                                '-1}}, "additionalProperties": false}'
                            }
                        }
                    }
                }
            },
        ),
        Rule(
            "a tool's name with a space",
            lambda body: [spec for spec in tool_specs(body) if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", spec["name"])],
            lambda specs: constraint(
                specs[0]["name"], "toolConfig.tools.1.member.toolSpec.name",
                "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
            ),
            {"toolConfig": {"tools": [{"toolSpec": {"name": "my reply", "inputSchema": {"json": {}}}}]}},
        ),
        Rule(
            "tools to a model without them", lambda fields: fields["modelId"] == DEEPSEEK and tool_specs(fields),
            invalid("This model doesn't support tool use."),
            {"modelId": DEEPSEEK, "toolConfig": {"tools": [{"toolSpec": {"name": "reply", "inputSchema": {}}}]}},
        ),
    )  # fmt: skip
    extra_fields = (
        "metrics.latencyMs", "output.message.content", "usage.inputTokens", "usage.cacheReadInputTokens", "stopReason",
    )  # fmt: skip

    def is_authenticated(self, request: Request) -> bool:
        signature = request.headers.get("Authorization", "")
        pattern = (
            r"AWS4-HMAC-SHA256 Credential=AKIATEST/\d{8}/eu-central-1/bedrock/aws4_request, SignedHeaders=\S+, "
            r"Signature=[0-9a-f]{64}"
        )
        return re.fullmatch(pattern, signature) is not None

    def fields(self, request: Request) -> Body:
        """The body, and the model, which is part of the address."""
        return {**request.body, "modelId": self.requested_model(request)}

    def unauthenticated(self, request: Request) -> Reply:
        message = "The security token included in the request is invalid."
        return error(403, "UnrecognizedClientException", message)

    def unknown_model(self, model: str) -> Reply:
        return invalid("The provided model identifier is invalid.")

    def rate_limited(self, request: Request) -> Reply:
        return error(429, "ThrottlingException", "Too many requests, please wait before trying again.")

    def content_filtered(self, request: Request) -> Reply:
        """A guardrail of the account withholds the answer, and puts its own words in its place."""
        block = {"text": "Sorry, the model cannot answer this question."}
        return self._reply([block], "guardrail_intervened")

    def refused(self, request: Request) -> Reply:
        """The provider's own filter stops the model."""
        return self._reply([], "content_filtered")

    def structure(self, body: Body) -> Structure:
        if (schema := output_schema(body)) is not None:
            return Structure(AnswerForm.JSON_SCHEMA, schema)
        if specs := tool_specs(body):
            return Structure(AnswerForm.TOOL, specs[0]["inputSchema"]["json"], specs[0]["name"])
        return Structure(AnswerForm.TEXT)

    def prompt(self, body: Body) -> str:
        blocks = [*body.get("system", []), *(block for message in body["messages"] for block in message["content"])]
        return "\n".join(block.get("text", "") for block in blocks)

    def token_limit(self, body: Body) -> int | None:
        limit = inference(body).get("maxTokens")
        return limit if isinstance(limit, int) else None

    def completion(self, content: Content, request: Request, *, is_cut_off: bool = False) -> Reply:
        if content.tool is None:
            return self._reply([{"text": content.text}], "max_tokens" if is_cut_off else "end_turn")
        arguments = {} if is_cut_off else json.loads(content.text)
        block = {"toolUse": {"toolUseId": "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "name": content.tool, "input": arguments}}
        return self._reply([block], "max_tokens" if is_cut_off else "tool_use")

    def out_of_thinking(self, request: Request) -> Reply:
        block = {"reasoningContent": {"reasoningText": {"text": "Let me weigh what people there say."}}}
        return self._reply([block], "max_tokens", self.token_limit(request.body))

    def _reply(self, content: list[dict[str, Any]], stop_reason: str, n_tokens: int | None = None) -> Reply:
        output_tokens = n_tokens or 60
        usage = {
            "inputTokens": 150, "outputTokens": output_tokens, "totalTokens": 150 + output_tokens,
            "cacheReadInputTokens": 0, "cacheWriteInputTokens": 0,
        }  # fmt: skip
        body = {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": stop_reason,
            "usage": usage,
            "metrics": {"latencyMs": 1834},
        }
        return Reply(body=body, headers={"x-amzn-requestid": "ad4209b4-72ef"})


DIALECT = Bedrock()
