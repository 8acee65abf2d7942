"""The table of a model: what it is, how it is reached, and how it is asked."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from auditor.config.base import ConfigSection
from auditor.config.credential_hosts import is_private_address
from auditor.config.providers import EMBEDDED, Credentials, Prefill, Provider, provider_of
from auditor.config.value_checks import (
    check_attributes,
    check_base_url,
    check_headers,
    check_json_serializable,
    check_unique,
)
from auditor.domain import AnswerForm, CapabilityKey, DeclaredCapabilities, ReasoningSettings
from auditor.domain.calls import TokenLimitParam
from auditor.domain.terms import family_of, split_model_id

ENV_PREFIX = "os.environ/"
DEFAULT_SERVER_CONCURRENCY, DEFAULT_PROVIDER_CONCURRENCY = 8, 100
DEFAULT_TIMEOUT_S = 60.0
DEFAULT_SLOW_TIMEOUT_S = 600.0
"""Default for models with `reasoning` and for local servers, as in the clients of OpenAI and Anthropic."""


KeyReference = Annotated[str, Field(pattern=r"^os\.environ/\w+$")]
"""Name of an environment variable that holds a key."""
NO_EFFORT = "none"
"""Effort of a model that does not reason before it answers."""
KEY_SEPARATOR = "\0"
"""In the name of a model's section with one of its further keys, between the model's name and the key's position."""


class ReasoningSection(ConfigSection):
    """How much a model may reason internally before it answers. That text is not part of the answer."""

    effort: Annotated[str, Field(pattern=r"^[a-z]{1,20}$")] | None = None
    """How much the model reasons before it answers, in the provider's terms, such as `none`, `minimal`, `low`,
    `medium`, `high`."""
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Maximum length of the reasoning before the answer, in tokens. It is added to each probe's `max_tokens`, and sent
    to providers that accept such a limit (Anthropic, Bedrock, Gemini before 3, OpenRouter). If not set, the number
    depends on `effort`."""

    @model_validator(mode="after")
    def _require_a_setting(self) -> ReasoningSection:
        """Require one of the keys."""
        if self.effort is None and self.max_tokens is None:
            raise ValueError(
                "neither effort nor max_tokens is set. How to fix: Set one of them, or remove the section."
            )
        return self

    @property
    def settings(self) -> ReasoningSettings:
        """The settings as calls have them."""
        return ReasoningSettings(self.effort, self.max_tokens)


class CapabilitiesSection(ConfigSection):
    """Which parameters a model's server accepts. Settings in this section are used without a test request."""

    form: Literal["json_schema", "json_object", "tool", "text"] | None = None
    """How the server is asked for an answer in a fixed format, from the strictest form (`json_schema`) to unconstrained
    text (`text`)."""
    temperature: bool | None = None
    """Whether requests to this model include a `temperature`, the randomness of its answers. Some servers reject it."""
    seed: bool | None = None
    """Whether requests to this model include a `seed`, a number that makes random answers repeatable. Some servers
    reject it."""
    token_limit_param: TokenLimitParam | None = None
    """Name under which this server expects the maximum length of an answer."""
    dropped_keywords: list[Annotated[str, Field(min_length=1, max_length=40)]] | None = None
    """Rules of a JSON schema, such as `minLength`, that this server rejects; they are left out of requests. The entry
    `"strict"` turns off the strict mode of JSON schemas; `[]` leaves nothing out."""

    prefill: bool | None = None
    """Whether the server continues an answer whose beginning is the last message, which the probe `reasoning` uses. If
    not set, true for providers that are known to: embedded models, vLLM, Mistral, DeepSeek, and Claude up to 4.5."""

    @property
    def declared(self) -> DeclaredCapabilities | None:
        """The capabilities as calls have them; None if nothing is set."""
        keywords = None if self.dropped_keywords is None else tuple(sorted(set(self.dropped_keywords)))
        form = None if self.form is None else AnswerForm(self.form)
        declared = DeclaredCapabilities(form, self.temperature, self.seed, self.token_limit_param, keywords)
        return None if declared == DeclaredCapabilities() else declared


class Price(ConfigSection):
    """Price of a model in US dollars per million tokens, for models whose price is not publicly listed."""

    input: Annotated[float, Field(ge=0)]
    """Price of the text that is sent to the model, in US dollars per million tokens."""
    output: Annotated[float, Field(ge=0)]
    """Price of the text that the model writes, in US dollars per million tokens."""
    cached_input: Annotated[float, Field(ge=0)] | None = None
    """Price of text sent again that the provider still has stored (cached), in US dollars per million tokens. If not
    set, equal to `input`."""
    cache_write: Annotated[float, Field(ge=0)] | None = None
    """Price of text that the provider stores (caches) for the next requests, in US dollars per million tokens. If not
    set, equal to `input`."""
    as_of: date | None = None
    """Date of the price, such as 2026-07-01. It is shown with every estimate of costs."""


class ModelSection(ConfigSection):
    """One model: its name, endpoint, rate limits and parameters."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    """The name that reports show for this model; choose any."""
    model: Annotated[str, Field(pattern=r"^[^/\s]+/\S+$")]
    """Provider and model, as the package litellm names them, such as `openai/gpt-4o`, or `embedded/smollm2-135m` for a
    model that runs on this computer."""
    api_key: Annotated[
        KeyReference | Annotated[list[KeyReference], Field(min_length=1)] | None, AfterValidator(check_unique)
    ] = None
    """Environment variable that holds the API key: write `os.environ/NAME`. The key itself must not be in the file. A
    key of at least 8 characters is removed from everything that a provider returns. Several keys share the requests:
    `["os.environ/A", "os.environ/B"]`. A key at its rate limit, or without credit, rests alone."""
    api_base: Annotated[str, AfterValidator(check_base_url)] | None = None
    """Address of the model's server, such as `http://localhost:8000/v1`. If not set, the provider's own. The server
    must use the same protocol as the provider."""
    system: str | None = None
    """Text added at the beginning of every system prompt of this model."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Overrides `probes.direct.temperature` for an audited model, or `probes.review.temperature` for a model in
    `judges`."""
    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Maximum number of requests to this model at the same time. If not set: 8 for a server in `api_base`. For a
    provider, the number starts at 20 and is adjusted to the account's rate limits, up to 100."""
    rpm: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of requests to this model per minute. With `rate_limit_scope = "account"`, of all models of the
    account together; give it once then."""
    tpm: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of tokens (sent and received, as estimated) per minute for this model, or for the account as with
    `rpm`."""
    rate_limit_scope: Literal["model", "account"] | None = None
    """What the provider's rate limits hold for: each `model`, or the `account`, which is all models with the same
    provider, `api_key` and `api_base`. After status 429 (too many requests), requests to that model or account wait. If
    not set: `model` for providers that document limits of each model (OpenAI, Azure OpenAI, Anthropic, Google Gemini,
    Vertex AI, Bedrock, Cohere, Together AI); for others, requests to the account wait, and `rpm` and `tpm` hold for
    the model."""
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Time limit of one request, in seconds. If not set: 600 for a model with `reasoning`, an embedded model, or a
    server in your network (`api_base` with a loopback or private address); 60 for all others."""
    stream: bool = False
    """Whether answers are requested as streams, for servers that send them in no other way. Most such servers say so,
    and are then asked again in this way without this setting."""
    price: Price | None = None
    """Price of the model, if it is not publicly listed: `{ input = 1, output = 4 }`, in US dollars per million tokens.
    A missing price counts as unknown, not as zero."""
    reasoning: ReasoningSection | None = None
    """How much the model may reason before it answers, as in `{ effort = "low", max_tokens = 2000 }`. If not set, the
    provider's default applies."""
    capabilities: CapabilitiesSection | None = None
    """Which parameters the model's server accepts. Needed only if the first requests do not detect them."""
    base_model: Annotated[str, Field(pattern=r"^\S+$")] | None = None
    """A publicly listed model whose price, limits and family apply, if `model` itself is not listed: `azure/gpt-4o` for
    an Azure deployment, for example."""
    params: Annotated[dict[str, Any], AfterValidator(check_json_serializable), AfterValidator(check_headers)] = Field(
        default_factory=dict
    )
    """Further request parameters, sent to the provider unchanged. Parameters that ask for several answers (`n`), and
    those that the provider would not be sent, are refused."""
    attributes: Annotated[dict[str, float | str], BeforeValidator(check_attributes)] = Field(default_factory=dict)
    """What reports compare models by, as in `{ parameters = "7B", released = 2025-03-01, tuning = "instruct" }`:
    `parameters` is their number, `released` a date, and any other key a label. They change no request and no result."""
    answers: str | None = None
    """For a model `replay/NAME`: file with its recorded answers, in the columns `model,country,topic,sample,text`; for
    an audit with the probe `semantic` and without `direct`, `question_id,sample,answer[,model]`. Only the rows of NAME
    are used."""
    verdicts: str | None = None
    """For a judge `replay/NAME`: file with its recorded verdicts on answers of other `replay/` models, in the columns
    `judge,model,country,topic,verdict[,justification][,sample]`. Only the rows of the judge NAME are used."""
    weights: str | None = None
    """The model's weights on this computer, for log-probabilities by the method `continuation`: a folder, a `.gguf`
    file or a name on the Hugging Face Hub. An embedded model does not need this."""
    family: str | None = None
    """Maker or family of the model, such as `meta`, for `exclude_family` and for tests of favouritism. If not set, it
    is derived from `base_model` or `model`."""
    review_prompt: str | None = None
    """File with the instructions for this judge, instead of the built-in ones, in the format of
    `prompts/en/review.md`."""

    @property
    def provider(self) -> Provider:
        """What is known of its provider."""
        return provider_of(self.model)

    @property
    def unprefixed_model(self) -> str:
        """Its name without the provider, such as `gpt-4o`."""
        return split_model_id(self.model)[1]

    @property
    def used_credentials(self) -> Credentials | None:
        """Credentials of this machine that its requests carry; None if they carry none."""
        return self.provider.used_credentials(self.api_key)

    @property
    def prefill(self) -> Prefill | None:
        """How its server is asked to continue the beginning of an answer; None if it cannot be.

        A model that reasons before it answers cannot continue an answer.
        """
        declared = self.capabilities.prefill if self.capabilities else None
        if declared is not None:
            return (self.provider.prefill or Prefill.TEMPLATE) if declared else None
        models = self.provider.prefill_models
        is_listed = models is None or models.search(self.base_model or self.model) is not None
        return self.provider.prefill if is_listed and not self.is_set_to_reason else None

    @property
    def is_set_to_reason(self) -> bool:
        """Whether its section asks for reasoning before the answer."""
        return self.reasoning is not None and self.reasoning.effort != NO_EFFORT

    @property
    def resolved_family(self) -> str:
        """Its family, as set or as its id says."""
        return self.family or family_of(self.base_model or self.model)

    @property
    def capability_key(self) -> CapabilityKey:
        """What the capability of the model's server belongs to."""
        return CapabilityKey(self.model, self.api_base, self.reasoning.effort if self.reasoning else None)

    @property
    def resolved_timeout_s(self) -> float:
        """Time limit of one request, in seconds, as set or by default."""
        if self.timeout_s is not None:
            return self.timeout_s
        is_slow = self.reasoning is not None or self.provider is EMBEDDED
        is_local = self.api_base is not None and is_private_address(urlsplit(self.api_base).hostname or "")
        return DEFAULT_SLOW_TIMEOUT_S if is_slow or is_local else DEFAULT_TIMEOUT_S

    @property
    def api_keys(self) -> tuple[str, ...]:
        """References to all its keys; empty without any."""
        if self.api_key is None or isinstance(self.api_key, str):
            return () if self.api_key is None else (self.api_key,)
        return tuple(self.api_key)

    def split_by_key(self) -> list[ModelSection]:
        """A section with each of its keys alone, the first under its name; only itself with one key or none."""
        if len(self.api_keys) < 2:
            return [self.model_copy(update={"api_key": self.api_keys[0]}) if self.api_keys else self]
        return [
            self.model_copy(
                update={"api_key": key, "name": f"{self.name}{KEY_SEPARATOR}{number}" if number else self.name}
            )
            for number, key in enumerate(self.api_keys)
        ]

    @property
    def max_concurrency(self) -> int:
        """Requests in flight at most, chosen or by default."""
        return self.concurrency or (DEFAULT_SERVER_CONCURRENCY if self.api_base else DEFAULT_PROVIDER_CONCURRENCY)

    @property
    def resolved_rate_limit_scope(self) -> Literal["model", "account"]:
        """Whether a refusal by status 429 concerns the model or its account, as set or as its provider documents."""
        is_documented = self.provider.has_model_limits and self.provider.owns_server(self.api_base)
        return self.rate_limit_scope or ("model" if is_documented else "account")

    @property
    def rate_limit_key(self) -> tuple[str, str | None, str | None]:
        """Provider or model id, key and server; models for which all are equal share an account's rate limits.

        Without a key and a server of its own, a model has limits of its own.
        """
        keys = ", ".join(self.api_keys) or None
        return self.provider.prefix if keys or self.api_base else self.model, keys, self.api_base
