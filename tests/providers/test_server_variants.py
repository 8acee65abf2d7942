"""Servers of the user's own as they are started or built differently: the same dialect with rules of its own."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from auditor.domain import AnswerForm
from tests.providers.bodies import REMOVED, Body, changed, schema_keywords
from tests.providers.dialect import Content, Dialect, Rule, Situation, Structure
from tests.providers.dialects.llama_cpp import DIALECT as LLAMA_CPP, LlamaCpp, error as llama_cpp_error
from tests.providers.dialects.sglang import DIALECT as SGLANG, error as sglang_error
from tests.providers.dialects.vllm import DIALECT as VLLM, error as vllm_error, too_many_tokens
from tests.providers.expectations import Expectation
from tests.providers.situations import observe
from tests.providers.test_providers import assert_expected
from tests.support.audit_configs import KEY
from tests.support.fake_server import FakeServer, Request

SMALL_CONTEXT_TOKENS = 4600
TOOL = {"type": "function", "function": {"name": "Reply", "parameters": {"type": "object", "properties": {}}}}


def schema(body: Body) -> Any:
    """The schema that a body asks for, in a response format; None without one."""
    return ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")


def ignored_keywords(body: Body) -> tuple[str, str] | None:
    """The pointer to a property, and its keywords that the grammar backend outlines would ignore."""
    for name, part in ((schema(body) or {}).get("properties") or {}).items():
        if keywords := sorted(schema_keywords(part) & {"minimum", "maximum"}):
            return f"#/properties/{name}", ", ".join(keywords)
    return None


def needs_grammar(body: Body) -> bool:
    """Whether a body asks for an answer that only a grammar can enforce."""
    response_format = (body.get("response_format") or {}).get("type", "text")
    return response_format != "text" or body.get("tool_choice") not in (None, "auto", "none")


# sglang 0.5.23, sglang/srt/constrained/json_schema_validation.py: `--grammar-backend outlines`.
OUTLINES = Rule(
    "keywords that outlines would ignore", ignored_keywords,
    lambda place: sglang_error(
        400,
        f"Failed to compile json grammar: JSON Schema at {place[0]} is not supported by outlines: keyword(s) "
        f"{place[1]} would be ignored or weakened",
    ),
    {},
)  # fmt: skip
# sglang 0.5.23, sglang/srt/constrained/grammar_manager.py: `--grammar-backend none`.
NO_GRAMMAR = Rule(
    "a grammar to a server without one", needs_grammar,
    sglang_error(
        400,
        "Grammar-based generation (json_schema, regex, ebnf, structural_tag) is not supported when the server is "
        "launched with --grammar-backend none",
    ),
    {"response_format": REMOVED, "tools": [TOOL], "tool_choice": "required"},
)  # fmt: skip
# github.com/ikawrakow/ik_llama.cpp/issues/778; llama.cpp itself answered so until pull request 9527 (2024).
NO_SCHEMA_FORM = Rule(
    "the schema form", lambda body: schema(body) is not None,
    llama_cpp_error(
        500, 'response_format type must be one of "text" or "json_object", but got: json_schema', "server_error",
    ),
    {},
)  # fmt: skip
# The words are measured (vLLM 0.32.0 with the backend xgrammar alone) and name no keyword; that xgrammar of early 2025
# knew no bounds is in github.com/vllm-project/vllm/issues/12131.
NO_BOUNDS = Rule(
    "bounds to an old xgrammar",
    lambda body: bool(schema_keywords(schema(body)) & {"minimum", "maximum", "minLength", "maxLength"}),
    vllm_error(400, "The provided JSON schema contains features not supported by xgrammar."), {},
)  # fmt: skip
# Measured with vLLM 0.32.0 and `--max-model-len 1024`: only more tokens than the whole context are refused.
VLLM_CONTEXT = Rule(
    "more tokens than vLLM's context", lambda body: (body.get("max_tokens") or 0) > 4096 and body["max_tokens"],
    lambda n: too_many_tokens(n, 4096), {"max_tokens": 4500},
)  # fmt: skip
# Before that: github.com/vllm-project/vllm/issues/42474; the parameter is that of vllm/renderers/params.py.
OLD_VLLM_CONTEXT = Rule(
    "more tokens than an older vLLM's context",
    lambda body: (body.get("max_tokens") or 0) + VLLM.prompt_tokens > SMALL_CONTEXT_TOKENS and body["max_tokens"],
    lambda n: vllm_error(
        400,
        f"This model's maximum context length is {SMALL_CONTEXT_TOKENS} tokens. However, you requested {n} output "
        f"tokens and your prompt contains at least {SMALL_CONTEXT_TOKENS + 1 - n} input tokens, for a total of at "
        f"least {SMALL_CONTEXT_TOKENS + 1} tokens. Please reduce the length of the input prompt or the number of "
        "requested output tokens.",
        param="input_tokens",
    ),
    {"max_tokens": 4500},
)
# sglang 0.5.23, sglang/srt/managers/tokenizer_manager.py.
SGLANG_CONTEXT = Rule(
    "more tokens than SGLang's context",
    lambda body: (body.get("max_tokens") or 0) + SGLANG.prompt_tokens > SMALL_CONTEXT_TOKENS and body["max_tokens"],
    lambda n: sglang_error(
        400,
        f"Requested token count exceeds the model's maximum context length of {SMALL_CONTEXT_TOKENS} tokens. You "
        f"requested a total of {n + SGLANG.prompt_tokens} tokens: {SGLANG.prompt_tokens} tokens from the input "
        f"messages and {n} tokens for the completion. Please reduce the number of tokens in the input messages or the "
        "completion to fit within the limit.",
    ),
    {"max_tokens": 4500},
)
WITHOUT_ROOM = Expectation("truncated", AnswerForm.JSON_SCHEMA, 1, words="its tokens ran out before any text")
"""The room for thinking does not fit: the answer that was paid for stays, with its own reason."""


@dataclass(frozen=True)
class Variant:
    """A server with one more rule, and what a user should see.

    Attributes:
        name: for the test's id.
        dialect: of the server as it is by default.
        rule: the refusal that this server has besides.
        situation, expectation: what happens, and what should come of it.
    """

    name: str
    dialect: Dialect
    rule: Rule
    situation: Situation
    expectation: Expectation


VARIANTS = [
    Variant("SGLang with outlines", SGLANG, OUTLINES, Situation.DIRECT,
            Expectation("ok", AnswerForm.JSON_SCHEMA, 1, altered="")),
    # The schema, JSON mode and the tool are refused: the fourth request is in words alone.
    Variant("SGLang without a grammar", SGLANG, NO_GRAMMAR, Situation.REVIEW, Expectation("ok", AnswerForm.TEXT, 3)),
    Variant("llama.cpp of 2024", LLAMA_CPP, NO_SCHEMA_FORM, Situation.REVIEW,
            Expectation("ok", AnswerForm.JSON_OBJECT, 1)),
    # The words name no keyword, so all bounds are left out; the schema itself stays.
    Variant("vLLM with an old xgrammar", VLLM, NO_BOUNDS, Situation.DIRECT,
            Expectation("ok", AnswerForm.JSON_SCHEMA, 1, altered="")),
    Variant("vLLM with a small context", VLLM, VLLM_CONTEXT, Situation.THINKING_RUNS_OUT, WITHOUT_ROOM),
    Variant("an older vLLM with a small context", VLLM, OLD_VLLM_CONTEXT, Situation.THINKING_RUNS_OUT, WITHOUT_ROOM),
    Variant("SGLang with a small context", SGLANG, SGLANG_CONTEXT, Situation.THINKING_RUNS_OUT, WITHOUT_ROOM),
]  # fmt: skip


class IgnoringLlamaCpp(LlamaCpp):
    """A build that takes the schema form and does not enforce it (github.com/ggml-org/llama.cpp/issues/11847, 24097).

    Its small model writes prose unless a grammar rules it.
    """

    def structure(self, body: Body) -> Structure:
        return Structure(AnswerForm.TEXT) if schema(body) is not None else super().structure(body)

    def content(self, request: Request) -> Content:
        is_free = self.structure(request.body).form is AnswerForm.TEXT
        return Content("Families there value harmony, so most people object.") if is_free else super().content(request)


def with_rule(dialect: Dialect, rule: Rule) -> Dialect:
    """Copy a dialect with one more rule, which is checked first."""
    copied = copy.copy(dialect)
    copied.rules = (rule, *dialect.rules)
    return copied


@pytest.mark.parametrize("variant", VARIANTS, ids=[variant.name for variant in VARIANTS])
async def test_each_variant_of_a_server_does_as_expected(provider_server: FakeServer, variant: Variant) -> None:
    dialect = with_rule(variant.dialect, variant.rule)
    observation = await observe(dialect, variant.situation, provider_server, KEY)
    assert_expected(variant.expectation, variant.situation, observation)


@pytest.mark.parametrize("variant", VARIANTS, ids=[variant.name for variant in VARIANTS])
def test_the_rule_of_each_variant_refuses_what_the_server_takes_by_default(variant: Variant) -> None:
    body = changed(variant.dialect.valid_body, variant.rule.example)
    if variant.dialect is LLAMA_CPP:
        body = changed(body, {"response_format": {"json_schema": {"schema": {"type": "object"}}}})
    assert variant.dialect.validate(body) is None
    refusal = with_rule(variant.dialect, variant.rule).validate(body)
    assert refusal is not None
    assert refusal.status in (400, 500)


async def test_a_schema_that_is_ignored_with_a_200_is_found_out_by_two_answers(provider_server: FakeServer) -> None:
    """Two answers to the schema cannot be read, and two to JSON mode can: the same call each time, all paid for."""
    observation = await observe(IgnoringLlamaCpp(), Situation.DIRECT, provider_server, KEY)
    assert (observation.outcome, observation.form) == ("ok", AnswerForm.JSON_OBJECT), observation
    assert observation.n_requests == observation.n_attempts == 4
