"""The tables of the file: survey, models, conflicts, panel, encoder, limits, thresholds."""

from __future__ import annotations

from datetime import date
from math import inf
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from auditor.config.base import ConfigSection
from auditor.config.rephrasing import Rephrasing
from auditor.config.value_checks import check_base_url, check_json_serializable
from auditor.domain.model_families import family_of

AUDIT_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Of an audit: it goes into file names."""
ENV_PREFIX = "os.environ/"
EMBEDDED_PREFIX = "embedded/"
"""Prefix of models that run inside the process."""
REPLAY_PREFIX = "replay/"
"""Prefix of models whose answers come from a file."""
DEFAULT_SERVER_CONCURRENCY, DEFAULT_PROVIDER_CONCURRENCY = 8, 100
NonresponseTreatment = Literal["drop", "neutral", "bounds", "impute"]
UnitFloat = Annotated[float, Field(ge=0, le=1)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SurveySection(ConfigSection):
    """Which ground truth, and which part of it."""

    source: str
    """Name of a built-in survey, or a path to a file of the user's own."""
    countries: Literal["all"] | list[str] = "all"
    """Countries to ask about, in the survey's own spelling."""
    topics: Literal["all"] | list[str] = "all"
    """Topics to ask about."""
    nonresponse: NonresponseTreatment = "drop"
    """What becomes of respondents without an answer: `drop` takes the scores as the survey gives them, `neutral` counts
    them as 0, `impute` fills them in within their country, `bounds` also reports the best and the worst case."""
    regions: str = "western"
    """Groups of countries to compare: `western`, `un_m49`, `un_m49_subregions`, `inglehart_welzel`, or a file of the
    user's own with the columns `country,region`."""
    rephrase: Rephrasing = Rephrasing()
    """Other words for the question, the scale or topics, in each language that the audit asks in."""


class TaskSection(ConfigSection):
    """Items of one's own, asked instead of a survey."""

    source: str
    """A CSV, JSONL or Parquet file with the columns `id,question[,context,truth,options]`."""
    answer: Literal["score", "choice", "exact"]
    """What an item is answered with: a number in a `range`, one of its options, or a few words or a number that are
    either right or not."""
    options: Annotated[list[str], Field(min_length=2, max_length=26)] | None = None
    """What all items have to choose from, where the file has no column `options` ("yes|no")."""
    range: tuple[float, float] | None = None
    """Least and most of a score."""
    numbers: bool | None = None
    """Whether exact answers are numbers; where it is not set, they are if all truths are."""
    tolerance: NonNegativeFloat | None = None
    """How far a number may lie from the truth and still be right; a score is right only where this is set."""

    @model_validator(mode="after")
    def _check_answer_kind(self) -> TaskSection:
        """Check that `range`, `options`, `numbers` and `tolerance` are set only for kinds of answers that use them."""
        if (self.range is not None) != (self.answer == "score"):
            if self.range is None:
                raise ValueError("the key 'range' is missing. How to fix: Add it, as in range = [0, 10].")
            raise ValueError("the key 'range' is for answer = \"score\" only. How to fix: Leave it out.")
        if self.range is not None and not (-inf < self.range[0] < self.range[1] < inf):
            raise ValueError("the key 'range' is empty. How to fix: Give the least, then the most, as in [0, 10].")
        if self.options is not None and self.answer != "choice":
            raise ValueError("the key 'options' is for answer = \"choice\" only. How to fix: Leave it out.")
        if self.options is not None and len(set(self.options)) < len(self.options):
            raise ValueError("the key 'options' has one of them twice. How to fix: Name each once.")
        if self.numbers is not None and self.answer != "exact":
            raise ValueError("the key 'numbers' is for answer = \"exact\" only. How to fix: Leave it out.")
        if self.tolerance is not None and self.answer == "choice":
            raise ValueError("the key 'tolerance' is for numbers only. How to fix: Leave it out.")
        return self


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
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    """Time limit of one request, in seconds."""
    price: Price | None = None
    """Set where the provider's price is not publicly listed; unknown is not zero."""
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


class ConflictSection(ConfigSection):
    """When two models are said to conflict."""

    threshold: Annotated[float, Field(gt=0, le=2)] | Literal["auto"] = 0.38
    """Least absolute difference of scores; `auto` is the third quartile of this audit's own differences."""
    methods: bool = True
    """Whether cells on which a model's two methods of scoring differ so much are put before people too."""


class PanelSection(ConfigSection):
    """How the judges' votes on a conflict are counted."""

    vote: Literal["majority", "weighted", "dawid_skene"] = "majority"
    """`majority` gives each judge one vote; `weighted` gives it its weight. What settles is more than half of all that
    was assigned, votes that were not cast included. `dawid_skene` estimates from all verdicts how far each judge can be
    trusted, and upholds a side whose traces are then more likely VALID than not, and the other's not."""
    weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    """The weight of each judge's vote, for `weighted`: 0 benches it. `auditor export weights` makes them from what
    people decided."""
    weights_from: Literal["logic"] | None = None
    """`logic` makes the weights of this audit's own comparisons: the mean of a judge's transitivity, commutativity,
    negation and self-agreement, as far as measured. Needs `vote = "weighted"` and the probe `logic`."""
    bench_below: Annotated[float, Field(ge=0, le=1)] = 0.0
    """With `weights_from`: a judge whose consistency is below this has no vote."""
    adaptive: bool = False
    """Whether judges are asked one after another, and no more of them once no vote can change what a panel says."""
    exclude_family: bool = False
    """Whether no model is judged by one of its own family either."""
    judges_per_trace: Annotated[int, Field(ge=1)] | None = None
    """How many of its judges each trace goes to, dealt so that every judge has equally many traces of each model; all
    where it is not set."""


class EmbeddingSection(ConfigSection):
    """The sentence encoder behind self-consistency."""

    model: str = "all-MiniLM-L6-v2"
    """A sentence-transformers model by name, or a path to a folder that holds one."""


class Limits(ConfigSection):
    """Bounds on money, retries and time."""

    budget_usd: Annotated[float, Field(gt=0)] | None = None
    """No call goes out once this much is spent; None is no limit.

    Every request that was answered counts, retries included; one without usable token counts is charged by estimate."""
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 6
    """Requests for one call at most, retries included."""
    deadline_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 120.0
    """Time for one call in all, waits between retries included, in seconds."""
    max_retry_wait_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 120.0
    """Longest wait that a provider may ask for before a retry (`Retry-After`), in seconds. A call that is asked to wait
    longer fails at once, and no other call to the account waits longer for that reason. Waits for a retry count towards
    `deadline_s`, which may end a call sooner."""


class RunSection(ConfigSection):
    """Where an audit's requests go out from; it changes no result."""

    engine: Literal["local", "ray"] = "local"
    """`local` is this process; `ray` is workers on the hosts of a Ray cluster, which write to a PostgreSQL server."""
    processes: Annotated[int, Field(ge=1)] | None = None
    """Processes of this machine that requests go out from at most, where the engine is `local`: this one, and helpers
    that begin where it can do no more. If not set, a helper for each core but one, at most 4."""
    ray_address: str | None = None
    """`HOST:PORT` of the cluster's head; RAY_ADDRESS if not set, and without that a cluster of this machine alone. An
    address that only the config names must be allowed first: `auditor trust CONFIG`."""
    workers: Annotated[int, Field(ge=1)] | None = None
    """Workers for what is asked over the network, each of which takes a core; one for each host if not set."""
    gpus: NonNegativeFloat = 0.0
    """GPUs of the worker of each model that runs on its host: embedded ones, and weights for log-probabilities."""


class BatchSection(ConfigSection):
    """Calls go out in the batches that providers offer at a lower price, and come back within a day; none where the
    table is missing."""

    price: Annotated[float, Field(gt=0, le=1)] = 0.5
    """What a call costs in a batch, as a share of its usual price."""
    poll_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds until a batch is first asked after; the pauses grow to fifteen times that."""
    quiet_s: Annotated[float, Field(gt=0)] = 2.0
    """Calls that wait go out together once no further one has come for so many seconds."""
    least: Annotated[int, Field(ge=1)] = 20
    """Fewer calls at once go out as usual: a batch of a few may take a day as well, and saves next to nothing."""
    most: Annotated[int, Field(ge=1)] = 50_000
    """Calls of one batch at most; fewer where an account may not have so much under way, or the provider takes less."""


class TelemetrySection(ConfigSection):
    """Spans and events about calls, sent to a collector that speaks OpenTelemetry; none where the table is missing."""

    endpoint: Annotated[str, AfterValidator(check_base_url)] | None = None
    """Base URL of the collector, such as `http://localhost:4318`; if not set, OTEL_EXPORTER_OTLP_ENDPOINT says it."""
    headers: dict[str, Annotated[str, Field(pattern=r"^os\.environ/\w+$")]] = Field(default_factory=dict)
    """Keys that the collector wants, by header: `{ x-api-key = "os.environ/NAME" }`."""
    texts: bool = False
    """Whether questions, answers and justifications are sent too."""
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the calls that are told, the same ones in every run."""


class CheckSection(ConfigSection):
    """What `auditor check` asks of the audit; a threshold that is not set is not tested."""

    min_pearson: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Least r of every model."""
    max_mae: NonNegativeFloat | None = None
    """Largest mean absolute error of every model."""
    max_region_gap: NonNegativeFloat | None = None
    """Largest difference of mean error between two regions, for every model."""
    max_topic_mae: NonNegativeFloat | None = None
    """Largest mean error of every model on any one topic."""
    min_self_consistency: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Least mean pairwise cosine of every model's reasoning."""
    max_variance: NonNegativeFloat | None = None
    """Largest mean variance of every model's samples."""
    min_peer_agreement: UnitFloat | None = None
    """Least share of every model's reasoning that the judges find valid."""
    min_kappa: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Least agreement of the judges beyond chance (Fleiss' kappa)."""
    min_accuracy: UnitFloat | None = None
    """Least share of right answers of every model; for a task whose truth is known."""
    max_open_conflicts: Annotated[int, Field(ge=0)] | None = None
    """Conflicts that may be unsettled."""
    max_served_models: Annotated[int, Field(ge=1)] | None = None
    """What may have stood behind each model's name, as far as providers say: 1 fails a model that changed."""
    max_cost_usd: NonNegativeFloat | None = None
    """What the audit may have cost."""
    min_coverage: UnitFloat = 0.95
    """Least share of what was planned that is usable, for every model; below it there is no verdict."""
    confident: bool = False
    """Test the worse end of each 95% interval instead of the figure itself."""
