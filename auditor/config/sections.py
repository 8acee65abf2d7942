"""The tables of the file, besides those of models and probes: survey, conflicts, panel, encoder, limits, thresholds."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from auditor.config.base import ConfigSection
from auditor.config.rephrasing import Rephrasing
from auditor.config.value_checks import check_base_url

AUDIT_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Of an audit: it goes into file names."""
DEFAULT_DEADLINE_S = 120.0
DEFAULT_DEADLINE_TIMEOUTS = 2
"""Of a call: at least this many requests that take as long as they may."""
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
    """`logic` computes the weights from this audit's own comparisons: how far a judge's transitivity, commutativity,
    negation and self-agreement are above chance, on average. Needs `vote = "weighted"` and the probe `logic`."""
    bench_below: Annotated[float, Field(ge=0, le=1)] = 0.0
    """With `weights_from`: a judge has no vote if the mean of its measures, not corrected for chance, is below this."""
    adaptive: bool = False
    """Whether judges are asked one after another, and no more of them once no vote can change what a panel says."""
    exclude_family: bool = False
    """Whether no model is judged by one of its own family either."""
    judges_per_trace: Annotated[int, Field(ge=1)] | None = None
    """How many of its judges each trace goes to, dealt so that every judge has equally many traces of each model; all
    where it is not set."""

    def vote_weights(self, judges: Iterable[str]) -> dict[str, float]:
        """Weight of each judge's vote, by name in the given order: 1 unless votes are weighted.

        Raises:
            ValueError: votes are weighted, and a judge has no weight.
        """
        if self.vote != "weighted":
            return dict.fromkeys(judges, 1.0)
        weights = {judge: self.weights.get(judge) for judge in judges}
        if unweighted := [judge for judge, weight in weights.items() if weight is None]:
            raise ValueError(
                f"panel.weights: the judge '{unweighted[0]}' has none. "
                "How to fix: Give it one: 1 is usual, 0 benches it."
            )
        return {judge: self.weights[judge] for judge in weights}


class EmbeddingSection(ConfigSection):
    """The sentence encoder behind self-consistency."""

    model: str = "all-MiniLM-L6-v2"
    """A sentence-transformers model by name, or a path to a folder that holds one."""


class Limits(ConfigSection):
    """Bounds on size, money, retries and time."""

    budget_usd: Annotated[float, Field(gt=0)] | None = None
    """No call goes out once this much is spent; None is no limit.

    Every request that was answered counts, retries included; one without usable token counts is charged by estimate."""
    max_cells: Annotated[int, Field(ge=1)] | None = None
    """Number of cells (country and topic) or items of a task to ask about, at most; all if not set. They are spread
    evenly over countries and topics, and drawn by `seed`. The others are not planned, so they do not count as missing.
    A larger number adds cells to those of a smaller one, whose answers are used again."""
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 6
    """Requests for one call at most, retries included."""
    deadline_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Time for one call in all, waits between retries included, in seconds; if not set, 120 or, for a model whose
    `timeout_s` is longer than 60, twice that."""
    max_retry_wait_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 120.0
    """Longest wait that a provider may ask for before a retry (`Retry-After`), in seconds. A call that is asked to wait
    longer fails at once, and no other call to the account waits longer for that reason. Waits for a retry count towards
    `deadline_s`, which may end a call sooner."""

    def resolved_deadline_s(self, timeout_s: float) -> float:
        """Time for one call in all, in seconds, as set or by default.

        Args:
            timeout_s: time limit of one request to the call's model, in seconds.
        """
        return self.deadline_s or max(DEFAULT_DEADLINE_S, DEFAULT_DEADLINE_TIMEOUTS * timeout_s)


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
