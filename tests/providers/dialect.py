"""A provider's dialect of HTTP: address, authentication, what it refuses, and its responses, from its public reference.

A dialect answers as the provider documents. It refuses a body for the reasons that the provider documents, each of
which is a `Rule`, and it does what a request asks for: a JSON schema is obeyed, a tool is called, and without either
the text is what such models write.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from auditor.domain import AnswerForm
from tests.providers.bodies import Body
from tests.providers.json_answers import json_described_in, sample_of_schema, text_answer
from tests.support.audit_configs import KEY
from tests.support.fake_server import Reply, Request


class Situation(StrEnum):
    DIRECT = "direct"
    REVIEW = "review"
    LOGPROB = "logprob"
    CUT_OFF = "cut_off"
    REFUSED = "refused"
    CONTENT_FILTER = "content_filter"
    RATE_LIMIT = "rate_limit"
    WRONG_KEY = "wrong_key"
    WRONG_MODEL = "wrong_model"
    THINKING_RUNS_OUT = "thinking_runs_out"


@dataclass(frozen=True)
class Rule:
    """One documented reason for which a provider refuses a request's body.

    Attributes:
        name: what is refused.
        find: what breaks the rule in a body, such as the parameter's name; None (or False) if nothing does.
        refusal: the provider's response for it, or a function that makes it of what `find` has found.
        example: changes to the dialect's `valid_body` that break this rule and no other; see `changed`.
    """

    name: str
    find: Callable[[Body], Any]
    refusal: Reply | Callable[[Any], Reply]
    example: Mapping[str, Any]

    def refuse(self, broken: Any) -> Reply:
        return self.refusal if isinstance(self.refusal, Reply) else self.refusal(broken)


@dataclass(frozen=True)
class Structure:
    """The structure that a request asks for.

    Attributes:
        form: how it is asked for.
        schema: the JSON schema, of a response format or a tool; None without one.
        name: of the tool; None without one.
    """

    form: AnswerForm
    schema: Mapping[str, Any] | None = None
    name: str | None = None


@dataclass(frozen=True)
class Content:
    """What the model wrote: a text, or the arguments of the tool of this name."""

    text: str
    tool: str | None = None


class Dialect:
    """Base of all dialects; see `OpenAIDialect` for OpenAI's body.

    Attributes:
        title: the provider's name, as its users write it.
        reference: addresses of the public references, and the date on which they were read.
        model: of all situations but the next two, in litellm's spelling.
        thinking_model: of the situation "thinking runs out"; the same as `model` if None.
        thinking_section: further keys of the entry of `thinking_model`, such as `reasoning`.
        wrong_model: a model that the provider does not have.
        section: further keys of the `[[models]]` entry, such as `api_base` or `params`.
        key_variable: variable of the key, as the provider's documentation names it; None without a key.
        url: exact address of a chat completion; `{model}` stands for the model's id.
        completions_url: of a text completion (`echo`); None if there is none.
        other_urls: further addresses of the provider that answer in the same way.
        query: exact query of every request.
        valid_body: a body, written by hand from the reference, that breaks no rule.
        rules: reasons to refuse a body, in the order in which they are checked; at least 5.
        extra_fields: dotted paths of response fields beyond OpenAI's basic ones; at least 3.
        thinking_tokens: output tokens that `thinking_model` needs before the first one of its answer.
    """

    title: ClassVar[str]
    reference: ClassVar[str]
    model: ClassVar[str]
    thinking_model: ClassVar[str | None] = None
    thinking_section: ClassVar[Mapping[str, Any]] = {}
    wrong_model: ClassVar[str]
    section: ClassVar[Mapping[str, Any]] = {}
    key_variable: ClassVar[str | None]
    url: ClassVar[str]
    completions_url: ClassVar[str | None] = None
    other_urls: ClassVar[tuple[str, ...]] = ()
    query: ClassVar[str] = ""
    valid_body: ClassVar[Body]
    rules: tuple[Rule, ...] = ()
    extra_fields: ClassVar[tuple[str, ...]] = ()
    thinking_tokens: ClassVar[int] = 2000

    # What a provider documents for its own.

    def is_authenticated(self, request: Request) -> bool:
        """Whether the request has the right key, in the provider's header."""
        return request.headers.get("Authorization") == f"Bearer {KEY}"

    def unauthenticated(self, request: Request) -> Reply:
        """The response to a wrong key."""
        raise NotImplementedError

    def unknown_model(self, model: str) -> Reply:
        """The response to a model that does not exist."""
        raise NotImplementedError

    def rate_limited(self, request: Request) -> Reply:
        """The response to too many requests, with its headers."""
        raise NotImplementedError

    def content_filtered(self, request: Request) -> Reply:
        """The response if a filter withholds the prompt or the answer."""
        raise NotImplementedError

    def refused(self, request: Request) -> Reply:
        """The response if the model refuses: in a field of its own if the provider has one, else in the text.

        By default in the text, which a JSON schema still rules.
        """
        content = self.content(request)
        words = "I'm sorry, but I cannot help with that."
        if self.structure(request.body).form is not AnswerForm.TEXT:
            answer = {
                key: words if isinstance(value, str) and key != "verdict" else value
                for key, value in json.loads(content.text).items()
            }
            return self.completion(Content(json.dumps(answer), content.tool), request)
        return self.completion(Content(words), request)

    def logprobs(self, request: Request) -> Reply:
        """The response to a request for log-probabilities; by default as if it had not asked for them."""
        return self.completion(self.content(request), request)

    def out_of_thinking(self, request: Request) -> Reply:
        """The response of a model that thinks until its tokens run out: no text."""
        raise NotImplementedError

    def completion(self, content: Content, request: Request, *, is_cut_off: bool = False) -> Reply:
        """The response with this content, in the provider's own format."""
        raise NotImplementedError

    # What a request asks for, in the provider's own format.

    def structure(self, body: Body) -> Structure:
        """The structure that a body asks for."""
        raise NotImplementedError

    def prompt(self, body: Body) -> str:
        """All text of the body's messages."""
        raise NotImplementedError

    def token_limit(self, body: Body) -> int | None:
        """The body's limit on output tokens; None without one."""
        raise NotImplementedError

    def fields(self, request: Request) -> Body:
        """What the rules see: the body, with what the provider reads from headers or the address added to it."""
        return request.body

    # The same for all providers.

    def validate(self, body: Body) -> Reply | None:
        """The response to a body that the provider refuses; None if it takes it."""
        for rule in self.rules:
            if broken := rule.find(body):
                return rule.refuse(broken)
        return None

    def model_ids(self) -> frozenset[str]:
        """Models that the provider has, as they are written in requests."""
        return frozenset(self.model_id(model) for model in (self.model, self.thinking_model) if model)

    def model_id(self, model: str) -> str:
        """A model's id in requests: litellm's name without the provider."""
        return model.partition("/")[2]

    def requested_model(self, request: Request) -> str:
        """The model that a request names, in its address or in its body."""
        for template in self._addresses():
            if "{model}" in template and (match := re.fullmatch(_url_pattern(template), _url(request, template))):
                return match["model"]
        return str(request.body.get("model"))

    def has_address(self, request: Request) -> bool:
        """Whether a request went to the provider's exact address, query included."""
        is_address = any(
            re.fullmatch(_url_pattern(template), _url(request, template)) for template in self._addresses()
        )
        return is_address and request.query == self.query

    def _addresses(self) -> list[str]:
        return [address for address in (self.url, self.completions_url, *self.other_urls) if address]

    def content(self, request: Request) -> Content:
        """What a capable model writes: what the request enforces, or else what its prompt asks for."""
        structure, prompt = self.structure(request.body), self.prompt(request.body)
        if structure.schema is not None:
            return Content(json.dumps(sample_of_schema(structure.schema)), structure.name)
        if structure.form is AnswerForm.JSON_OBJECT:
            return Content(json.dumps(json_described_in(prompt) or {"response": "Yes."}))
        return Content(text_answer(prompt))

    def respond(self, request: Request, situation: Situation) -> Reply:
        """The response to a request in a situation."""
        if not self.is_authenticated(request):
            return self.unauthenticated(request)
        if (model := self.requested_model(request)) not in self.model_ids():
            return self.unknown_model(model)
        if situation is Situation.RATE_LIMIT:
            return self.rate_limited(request)
        if (refusal := self.validate(self.fields(request))) is not None:
            return refusal
        return self._respond_to_valid(request, situation)

    def _respond_to_valid(self, request: Request, situation: Situation) -> Reply:
        match situation:
            case Situation.CONTENT_FILTER:
                return self.content_filtered(request)
            case Situation.REFUSED:
                return self.refused(request)
            case Situation.LOGPROB:
                return self.logprobs(request)
            case Situation.CUT_OFF:
                content = self.content(request)
                cut_off_text = content.text[: len(content.text) // 2]
                return self.completion(Content(cut_off_text, content.tool), request, is_cut_off=True)
            case Situation.THINKING_RUNS_OUT if (self.token_limit(request.body) or 10**6) <= self.thinking_tokens:
                return self.out_of_thinking(request)
        return self.completion(self.content(request), request)


@dataclass
class Conversation:
    """A script for `FakeServer` that answers as a dialect in one situation, and records what it sees.

    Attributes:
        wrong_addresses: addresses of requests that the provider does not have.
        forms: form of the structure that each request asked for, as the provider reads it.
    """

    dialect: Dialect
    situation: Situation
    wrong_addresses: list[str] = field(default_factory=list)
    forms: list[AnswerForm] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        if not self.dialect.has_address(request):
            self.wrong_addresses.append(f"{request.headers.get('Host')}{request.path}?{request.query}")
        self.forms.append(self.dialect.structure(request.body).form)
        self.replies.append(self.dialect.respond(request, self.situation))
        return self.replies[-1]


def without_rule(dialect: Dialect, rule: Rule) -> Dialect:
    """Copy a dialect without one of its rules."""
    copied = copy.copy(dialect)
    copied.rules = tuple(other for other in dialect.rules if other is not rule)
    return copied


def _url_pattern(template: str) -> str:
    return re.escape(template).replace(re.escape("{model}"), r"(?P<model>[^/?]+?)")


def _url(request: Request, template: str) -> str:
    """A request's address without its query, with the scheme of the template, which a redirected request lost."""
    return f"{template.partition('://')[0]}://{request.headers.get('Host')}{request.path}"
