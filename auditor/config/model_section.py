"""The table of a model: what it is, how it is reached, and how it is asked."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from auditor.config.base import ConfigSection
from auditor.config.credential_bindings import is_private_address
from auditor.config.value_checks import check_base_url, check_json_serializable
from auditor.domain import AnswerForm, CapabilityKey, DeclaredCapabilities, ReasoningSettings
from auditor.domain.capabilities import TokenLimitParam
from auditor.domain.model_families import family_of

ENV_PREFIX = "os.environ/"
EMBEDDED_PREFIX = "embedded/"
"""Prefix of models that run inside the process."""
REPLAY_PREFIX = "replay/"
"""Prefix of models whose answers come from a file."""
SIMULATED_PREFIX = "simulated/"
"""Prefix of models of which every answer is simulated; see `auditor.domain.personas`."""
DEFAULT_SERVER_CONCURRENCY, DEFAULT_PROVIDER_CONCURRENCY = 8, 100
DEFAULT_TIMEOUT_S = 60.0
DEFAULT_SLOW_TIMEOUT_S = 600.0
"""For models that think, and those on a machine of one's own: OpenAI's and Anthropic's clients wait as long for any."""


class ReasoningSection(ConfigSection):
    """How much a model may think before it answers. Thinking is kept apart from the answer."""

    effort: Annotated[str, Field(pattern=r"^[a-z]{1,20}$")] | None = None
    """The provider's word for the effort, such as `none`, `minimal`, `low`, `medium`, `high`."""
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Tokens for thinking, added to each probe's `max_tokens`. Also sent as the limit on thinking where the provider
    takes one (Anthropic, Bedrock, Gemini before 3, OpenRouter). If not set, the room depends on the effort."""

    @model_validator(mode="after")
    def _require_a_setting(self) -> ReasoningSection:
        """Require one of the keys."""
        if self.effort is None and self.max_tokens is None:
            raise ValueError("sets nothing. How to fix: Set effort or max_tokens, or leave the table out.")
        return self

    @property
    def settings(self) -> ReasoningSettings:
        """The settings as calls have them."""
        return ReasoningSettings(self.effort, self.max_tokens)


class CapabilitiesSection(ConfigSection):
    """What a model's server accepts. What is set here is taken as true and not tried out."""

    form: Literal["json_schema", "json_object", "tool", "text"] | None = None
    """How structured answers are requested, from the form that is enforced most to the one that is not."""
    temperature: bool | None = None
    """Whether `temperature` is sent."""
    seed: bool | None = None
    """Whether `seed` is sent."""
    token_limit_param: TokenLimitParam | None = None
    """Name under which the limit on output tokens is sent."""
    dropped_keywords: list[Annotated[str, Field(min_length=1, max_length=40)]] | None = None
    """Keywords left out of JSON schemas, such as `minLength`; `strict` is the strict mode itself, `[]` leaves out
    none."""

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
    """Of tokens of the prompt."""
    output: Annotated[float, Field(ge=0)]
    """Of tokens of the answer."""
    cached_input: Annotated[float, Field(ge=0)] | None = None
    """Of tokens of the prompt that the provider had kept of earlier ones; as `input` where it is not set."""
    as_of: date | None = None
    """Day on which it was looked up, such as 2026-07-01; said beside every estimate."""


class ModelSection(ConfigSection):
    """One model: who it is, how it is reached, and how hard it may be asked."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    """The model's name in this audit."""
    model: Annotated[str, Field(pattern=r"^[^/\s]+/\S+$")]
    """Provider and model, as litellm names them, such as `openai/gpt-4o` or `embedded/smollm2-135m`."""
    api_key: Annotated[str, Field(pattern=r"^os\.environ/\w+$")] | None = None
    """Where the key is: `os.environ/NAME`. The key itself never stands in the file. It is removed from all that a
    provider sends, if it has at least 8 characters."""
    api_base: Annotated[str, AfterValidator(check_base_url)] | None = None
    """Base URL of a server that speaks the provider's protocol, as in `http://localhost:8000/v1`."""
    system: str | None = None
    """Text put before every system prompt of this model."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Overrides the direct probe's temperature for an audited model, the review's for a judge that is listed apart."""
    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Requests in flight at most; if not set, 8 to a server of one's own, and to a provider up to 100, beginning with
    20 and led by what its account bears."""
    rpm: Annotated[int, Field(ge=1)] | None = None
    """Requests a minute at most."""
    tpm: Annotated[int, Field(ge=1)] | None = None
    """Tokens a minute at most, by estimate."""
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Time limit of one request, in seconds. If not set: 600 for a model with `reasoning`, an embedded model, and a
    server of your own network (`api_base` with a loopback or private address); 60 for all others."""
    price: Price | None = None
    """Set where the provider's price is not publicly listed; unknown is not zero."""
    reasoning: ReasoningSection | None = None
    """How much the model may think before it answers, as in `{ effort = "low", max_tokens = 2000 }`; as the provider
    does by default if not set."""
    capabilities: CapabilitiesSection | None = None
    """What the model's server accepts. Only for what the first requests could not find out."""
    base_model: Annotated[str, Field(pattern=r"^\S+$")] | None = None
    """The model whose listed price and limits hold, where the name above is not listed, as `azure/gpt-4o` for an Azure
    deployment of any name; it also says the family."""
    params: Annotated[dict[str, Any], AfterValidator(check_json_serializable)] = Field(default_factory=dict)
    """More parameters for the provider, sent as they are."""
    answers: str | None = None
    """File of the answers of a model `replay/NAME`: the rows of that name, `model,country,topic,sample,text`."""
    weights: str | None = None
    """Where the model's own weights are on this machine, for log-probabilities by continuation: a folder, a `.gguf`
    file or a name on the Hugging Face hub. An embedded model's are known."""
    family: str | None = None
    """Whose model it is, such as `meta`; read off the id of well-known models where it is not set."""
    review_prompt: str | None = None
    """Path to a review prompt of this judge's own, laid out as `prompts/en/review.md`."""

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
        is_slow = self.reasoning is not None or self.model.startswith(EMBEDDED_PREFIX)
        is_local = self.api_base is not None and is_private_address(urlsplit(self.api_base).hostname or "")
        return DEFAULT_SLOW_TIMEOUT_S if is_slow or is_local else DEFAULT_TIMEOUT_S

    @property
    def max_concurrency(self) -> int:
        """Requests in flight at most, chosen or by default."""
        return self.concurrency or (DEFAULT_SERVER_CONCURRENCY if self.api_base else DEFAULT_PROVIDER_CONCURRENCY)

    @property
    def rate_limit_key(self) -> tuple[str, str | None, str | None]:
        """Provider or model id, key and server; models for which all are equal share an account's rate limits.

        Without a key and a server of its own, a model has limits of its own.
        """
        known = self.api_key or self.api_base
        return self.model.split("/", 1)[0] if known else self.model, self.api_key, self.api_base
