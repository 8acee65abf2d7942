"""The tables of a configuration, except `[[models]]` (`model_section`) and `[probes]` (`probes`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator
from pydantic_core import PydanticKnownError

from auditor.config.base import ConfigSection, DocumentedModel, require_no_boolean
from auditor.config.installed_probes import list_threshold_fields
from auditor.config.value_checks import DEFAULT_ENCODER, check_base_url
from auditor.domain import ENGLISH, LANGUAGES
from auditor.domain.labels import RaterKind
from auditor.errors import did_you_mean

PLACEHOLDERS = ("topic", "country")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def check_question_template(text: str, further: Sequence[str] = ()) -> str:
    """Return the text of a question if it has the placeholders `{topic}` and `{country}`, and no other braces.

    Args:
        further: names of placeholders that it may have besides.

    Raises:
        ValueError: a placeholder is missing or unknown, or a brace is not part of one; the message names it.
    """
    advice = f"How to fix: Use {{topic}} and {{country}}{''.join(f', {{{name}}}' for name in further)}, and no others"
    if set(_PLACEHOLDER.sub("", text)) & set("{}"):
        raise ValueError(f"a brace is not closed or is doubled. {advice}")
    names = _PLACEHOLDER.findall(text)
    for name in PLACEHOLDERS:
        if name not in names:
            raise ValueError(f"the placeholder {{{name}}} is missing. {advice}")
    for name in names:
        if name not in (*PLACEHOLDERS, *further):
            raise ValueError(f"the placeholder {{{name}}} is unknown. {advice}")
    return text


def _check_stored_template(text: str) -> str:
    """Return a text that `check_question_template` accepts, or did when doubled braces were sent as they are."""
    check_question_template(text.replace("{{", "").replace("}}", ""))
    return text


def check_plain_text(text: str) -> str:
    """Return the text of a scale's end or of a topic if it has no braces.

    Raises:
        ValueError: it has braces.
    """
    if "{" in text or "}" in text:
        raise ValueError("braces are allowed only in the question. How to fix: Remove them")
    return text


def check_language(name: str, known: Sequence[str] = LANGUAGES) -> str:
    """Return a language code if it is one of `known`, by default the languages that there are prompts in.

    Raises:
        ValueError: it is not; the message names the nearest known code.
    """
    if name not in known:
        hint = did_you_mean(name, known, f"Known: {', '.join(known)}.")
        raise ValueError(f"there is no language '{name}'. How to fix: {hint}")
    return name


def _default_to_english(value: Any) -> Any:
    """A text without a language becomes a table with that text for English; a table is returned unchanged."""
    return value if isinstance(value, dict) else {ENGLISH: value}


LanguageCode = Annotated[str, AfterValidator(lambda name: check_language(name))]
QuestionTemplate = Annotated[str, Field(min_length=1), AfterValidator(lambda text: check_question_template(text))]
StoredTemplate = Annotated[str, Field(min_length=1), AfterValidator(lambda text: _check_stored_template(text))]
"""A question of an audit, which may be stored with doubled braces; `load_config` refuses them."""
PlainText = Annotated[str, Field(min_length=1), AfterValidator(check_plain_text)]
EnglishByDefault = BeforeValidator(_default_to_english)
"""Converts a text without a language to a table that has it under English; a table stays as it is."""


class Rephrasing(DocumentedModel):
    """Replacement wordings. Each must be given in every language of the audit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: Annotated[Mapping[LanguageCode, StoredTemplate], EnglishByDefault] = Field(default_factory=dict)
    """The question, with `{topic}` and `{country}`: a text in English, or one text for each language, as in `{ en =
    "…", de = "…" }`."""
    scale: Annotated[Mapping[LanguageCode, tuple[PlainText, PlainText]], EnglishByDefault] = Field(default_factory=dict)
    """Words for the ends of the scale, -1 and +1: two texts in English, or two for each language, as in `{ en = ["…",
    "…"] }`."""
    topics: Mapping[str, Annotated[Mapping[LanguageCode, PlainText], EnglishByDefault]] = Field(default_factory=dict)
    """Wordings of topics, by the topic's name in the survey: a text in English, or one text for each language, as in `{
    en = "…" }`."""


AUDIT_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Pattern of an audit's name, which is part of file names."""
BUCKET_PATTERN = r"^gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/[A-Za-z0-9._-]+)*/?$"
"""Pattern of a bucket in Google Cloud Storage, or of a folder in one."""
DEFAULT_DEADLINE_S = 120.0
DEFAULT_MIN_COVERAGE = 0.95
"""Share of usable answers below which `auditor check` does not pass a model, unless `min_coverage` is set."""
DEFAULT_DEADLINE_TIMEOUTS = 2
"""Default deadline of a call, as a multiple of the time limit of one request."""
NonresponseTreatment = Literal["drop", "neutral", "zero", "bounds", "impute"]
UnitFloat = Annotated[float, Field(ge=0, le=1)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]


MAX_WORDINGS = 5
"""The survey's own wording and the built-in ones."""


class SurveySection(ConfigSection):
    """The survey of people's answers that models are compared with, and which part of it is used."""

    source: str
    """Name of a built-in survey, or the path of a survey file."""
    countries: Literal["all"] | list[str] = "all"
    """Countries to ask about, spelled as in the survey."""
    topics: Literal["all"] | list[str] = "all"
    """Topics to ask about, spelled as in the survey."""
    nonresponse: NonresponseTreatment = "drop"
    """How respondents without an answer are treated. `drop`: left out, so that the survey's scores are used as they
    are. `neutral`: counted as 0, the middle of the scale. `zero`: as `neutral`, and where nobody was asked the score is
    0 too, as in EvalMORAAL; models are then asked about all countries and topics, and a score without a share of
    nonresponse stays as it is. `impute`: filled in from respondents
    of the same country who gave similar other answers. `bounds`: as `drop`, and the report adds each figure's lowest
    and highest value, whatever the missing answers are."""
    design_effect: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Design effect of the survey: by which the variances of its scores are larger than the column `standard_error` of
    its file says, for example since respondents were sampled in clusters. Figures without people's sampling error need
    it. Files made by `auditor surveys import` from respondents' answers have the right errors already; for cells of
    these without one, 1 means Kish's effect of the weights."""
    regions: str = "western"
    """Groups of countries to compare: `western`, `un_m49`, `un_m49_subregions`, `inglehart_welzel`, or the
    path of a file with the columns `country,region`."""
    wordings: Annotated[int, Field(ge=1, le=MAX_WORDINGS)] | str = 1
    """Number of wordings of the question that samples of a cell take in turn: the survey's own first, then built-in
    ones. Or the path of a TOML file with further questions for each language, as in `en = ["…"]`. The number of samples
    must be a multiple of it. Intervals then include how figures change with the wording."""
    rephrase: Rephrasing = Rephrasing()
    """Replacement wordings of the question, the scale or topics, for each language of the audit."""


class TaskSection(ConfigSection):
    """Questions of your own, from a file, which models answer instead of a survey's questions."""

    source: str
    """A CSV, JSONL or Parquet file with the columns `id,question[,context,truth,options]`."""
    answer: Literal["score", "choice", "exact"]
    """Kind of answer: `score` is a number in `range`, `choice` is one of the options, and `exact` is a number or a few
    words that are either correct or not."""
    options: Annotated[list[str], Field(min_length=2, max_length=26)] | None = None
    """Answers to choose from, the same for all questions. Not needed if the file has a column `options` (such as
    "yes|no")."""
    range: tuple[float, float] | None = None
    """With `score`: the lowest and the highest possible score, such as `[0, 10]`."""
    numbers: bool | None = None
    """With `exact`: whether answers are compared as numbers. If not set, they are if every correct answer in the file
    is a number."""
    tolerance: NonNegativeFloat | None = None
    """Largest distance from the correct number at which an answer counts as correct. If not set, numbers must be equal,
    and scores are not counted as correct or wrong."""

    @model_validator(mode="after")
    def _check_answer_kind(self) -> TaskSection:
        """Check that `range`, `options`, `numbers` and `tolerance` are set only for kinds of answers that use them."""
        if (self.range is not None) != (self.answer == "score"):
            if self.range is None:
                raise ValueError("the key 'range' is missing. How to fix: Add it, as in range = [0, 10].")
            raise ValueError("the key 'range' applies only to answer = \"score\". How to fix: Remove it.")
        if self.range is not None and not (-inf < self.range[0] < self.range[1] < inf):
            raise ValueError(
                "the key 'range' is empty. How to fix: Write the lowest score, then the highest, as in [0, 10]."
            )
        if self.options is not None and self.answer != "choice":
            raise ValueError("the key 'options' applies only to answer = \"choice\". How to fix: Remove it.")
        if self.options is not None and len(set(self.options)) < len(self.options):
            raise ValueError("the key 'options' lists an option twice. How to fix: List each option once.")
        if self.numbers is not None and self.answer != "exact":
            raise ValueError("the key 'numbers' applies only to answer = \"exact\". How to fix: Remove it.")
        if self.tolerance is not None and self.answer == "choice":
            raise ValueError("the key 'tolerance' applies only to numbers. How to fix: Remove it.")
        return self


class ConflictSection(ConfigSection):
    """When the scores of two models are a conflict."""

    threshold: Annotated[float, Field(gt=0, le=2)] | Literal["auto"] = 0.38
    """Smallest absolute difference between two models' scores that is a conflict; scores are from -1 to +1. `auto` uses
    the third quartile of all differences in this audit."""
    methods: bool = False
    """Whether human reviewers also see the countries and topics on which a model's stated score and its score from
    log-probabilities differ by `threshold` or more. Scores from log-probabilities have an order but no unit, so such
    differences are hard to judge; the report counts them in any case. Audits that were begun when the
    default was `true` keep it."""


class PanelSection(ConfigSection):
    """How the judges' votes on a conflict are counted."""

    vote: Literal["majority", "weighted", "dawid_skene"] = "majority"
    """How the judges' votes decide a conflict. `majority` gives each judge one vote; `weighted` multiplies it by the
    judge's weight. More than half of all assigned votes settle a conflict; a missing vote counts as assigned.
    `dawid_skene` estimates each judge's error rates from all verdicts. It decides for a model if its reasoning is
    probably VALID and that of the other model is not."""
    weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    """With `weighted`: the weight of each judge's vote; 0 means no vote. `auditor export weights` computes weights from
    the decisions of human reviewers."""
    weights_from: str | None = None
    """`logic` weights judges by how consistent their pairwise comparisons are: the mean of four rates, each corrected
    for chance. They are transitivity (A over B and B over C imply A over C), commutativity (the same answer with A and
    B swapped), negation invariance (the opposite answer to the opposite question) and self-agreement (the same answer
    again). Requires `vote = "weighted"` and the probe `logic`."""
    bench_below: Annotated[float, Field(ge=0, le=1)] = 0.0
    """With `weights_from`: a judge has no vote if the mean of its four rates of consistency (from 0 to 1, not corrected
    for chance) is below this. `weights_from` names the rates."""
    adaptive: bool = False
    """Whether judges are asked one at a time, until further votes cannot change the decision, to save requests."""
    exclude_family: bool = False
    """Whether a model is never judged by models of its own family, such as two models of one maker."""
    judges_per_trace: Annotated[int, Field(ge=1)] | None = None
    """Number of judges that review each answer. Every judge gets equally many answers of each model. If not set, all
    judges review every answer."""

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
                f"panel.weights: the judge '{unweighted[0]}' has no weight. "
                "How to fix: Add a weight: 1 for a normal vote, 0 for none."
            )
        return {judge: self.weights[judge] for judge in weights}


class EmbeddingSection(ConfigSection):
    """The sentence encoder that measures self-consistency."""

    model: str = DEFAULT_ENCODER
    """Name of a sentence encoder on the Hugging Face Hub (of the package sentence-transformers), or path of a folder
    that holds one. `none` for no encoder: self-consistency is then not measured."""


class LimitsSection(ConfigSection):
    """Limits on size, cost, retries and time."""

    budget_usd: Annotated[float, Field(gt=0)] | None = None
    """Budget in US dollars: no call is sent once it is spent. If not set, there is no limit. Every answered request of
    this audit counts, including retries. If a response has no usable token counts, its cost is estimated. Requests in
    flight when a run was killed count too, since they may have been charged."""
    max_cells: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of cells (a country and a topic), or of questions of a task, to ask about; all if not set. They
    are a random selection determined by `seed`, spread evenly over countries and topics. The other cells do not count
    as missing. If you raise the number, the answers to the earlier cells are reused."""
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 6
    """Maximum number of times that one question is sent to a model, if requests fail. Refusals by status 429 (too many
    requests) do not count: the question is sent again until `deadline_s`. With 1, nothing is sent again."""
    deadline_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Time limit of one question to a model, in seconds, including failed requests and the waits between them. If not
    set: 120, or twice the model's `timeout_s` if that is longer."""
    max_retry_wait_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 120.0
    """Longest wait in seconds that a provider may ask for before a request is sent again (`Retry-After`). If it asks
    for a longer wait, the question fails at once, and other questions to the model wait at most this long. Waits
    count towards `deadline_s`, which may end them sooner."""

    def resolved_deadline_s(self, timeout_s: float) -> float:
        """Time for one call in all, in seconds, as set or by default.

        Args:
            timeout_s: time limit of one request to the call's model, in seconds.
        """
        return self.deadline_s or max(DEFAULT_DEADLINE_S, DEFAULT_DEADLINE_TIMEOUTS * timeout_s)


class RunSection(ConfigSection):
    """Where requests are sent from. It does not change results."""

    engine: Literal["local", "ray"] = "local"
    """`local` sends requests from one process of this computer. `ray` sends them from several processes (Ray workers),
    on this computer or on those of a Ray cluster; results are stored by the process that you started."""
    ray_address: str | None = None
    """`HOST:PORT` of the Ray cluster's head node. If not set: the environment variable RAY_ADDRESS, else a new cluster
    on this computer. An address that only the configuration names must be allowed first: `auditor trust CONFIG`."""
    workers: Annotated[int, Field(ge=1)] | None = None
    """Number of processes (Ray workers) in the whole cluster that send requests to servers; each uses one core. If not
    set: one for each computer of a running cluster; on this computer alone, one for each core but one, at most 4."""
    gpus: NonNegativeFloat = 0.0
    """Number of GPUs for each process of a Ray cluster that runs a model itself, instead of asking a server."""


class BatchSection(ConfigSection):
    """Send questions in the provider's batch API, which is cheaper but may take a day. Without this section, no batches
    are used."""

    price: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Price of a request in a batch, as a share of the usual price."""
    poll_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds until the program first asks whether a batch is ready. The time until it asks again grows up to 15 times
    this."""
    quiet_s: Annotated[float, Field(gt=0)] = 2.0
    """A batch is sent once no further question has been added for this many seconds."""
    least: Annotated[int, Field(ge=1)] = 20
    """Minimum number of questions in a batch. Fewer are sent as usual, since a small batch saves little and may take a
    day as well."""
    most: Annotated[int, Field(ge=1)] = 50_000
    """Maximum number of questions in a batch. Batches are smaller if the provider's or the account's limit is lower."""
    bucket: Annotated[str, Field(pattern=BUCKET_PATTERN)] | None = None
    """Bucket in Google Cloud Storage for the batches of Vertex AI, such as `gs://my-bucket` or `gs://my-bucket/audits`.
    It keeps questions and answers until you delete them. If not set, questions to Vertex AI are sent one by one."""


class TelemetrySection(ConfigSection):
    """Sends the time, cost and errors of each call to a monitoring server that you name (OpenTelemetry). Without this
    section, nothing is sent."""

    endpoint: Annotated[str, AfterValidator(check_base_url)] | None = None
    """Address of the monitoring server (OpenTelemetry collector), such as `http://localhost:4318`. If not set: the
    environment variable OTEL_EXPORTER_OTLP_ENDPOINT."""
    headers: dict[str, Annotated[str, Field(pattern=r"^os\.environ/\w+$")]] = Field(default_factory=dict)
    """Keys for the monitoring server, by the name of the HTTP header that it expects: `{ x-api-key = "os.environ/NAME"
    }`."""
    texts: bool = False
    """Whether the texts of questions, answers and justifications are sent to the monitoring server as well. A server
    that only the configuration names must be allowed first: `auditor trust CONFIG`."""
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of calls (0 to 1) that are reported to the monitoring server; the same calls in every run."""


class LabelSection(ConfigSection):
    """People's labels on a random sample of the traces, which measure the judges."""

    rater_kind: RaterKind = "crowd"
    """Who the raters are: `expert`, `skilled` or `crowd` (crowd workers). The test whether a judge may replace one of
    them allows the judge a disadvantage of 20, 15 or 10 percentage points. The default is the strictest."""


class _NamedThreshold(NamedTuple):
    """A threshold that a built-in probe may declare."""

    name: str
    value: Any


def _validate_threshold(threshold: Any) -> Any:
    """Validate a threshold as the class `BuiltInProbe.thresholds` of the probe that declares it.

    Raises:
        ValidationError: the value is wrong.
        PydanticKnownError: no probe declares it.
    """
    if not isinstance(threshold, _NamedThreshold):
        return threshold
    declared = list_threshold_fields().get(threshold.name)
    if declared is None:
        raise PydanticKnownError("extra_forbidden")
    require_no_boolean(declared, threshold.value)
    return TypeAdapter(declared, config=ConfigDict(allow_inf_nan=False)).validate_python(threshold.value)


class CheckSection(ConfigSection):
    """Requirements that the command `auditor check` tests. One that is not set is not tested."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[Any, BeforeValidator(_validate_threshold)]]

    min_pearson: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Minimum Pearson correlation (r) of every model's scores with people's."""
    min_concordance: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Minimum concordance of every model: Lin's coefficient, which is 1 only if scores are equal to people's."""
    max_mae: NonNegativeFloat | None = None
    """Maximum mean absolute error of every model: the mean distance of its scores from people's, from 0 to 2."""
    max_region_gap: NonNegativeFloat | None = None
    """Maximum difference in mean absolute error between two regions, for every model."""
    max_topic_mae: NonNegativeFloat | None = None
    """Maximum mean absolute error of every model on its worst topic."""
    min_self_consistency: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Minimum self-consistency of every model: the mean cosine similarity between its repeated reasonings on one
    question."""
    max_variance: NonNegativeFloat | None = None
    """Maximum variance of every model's scores when one question is repeated (mean over questions)."""
    max_refused: UnitFloat | None = None
    """Maximum share of refusals among every model's answers to the direct question."""
    min_peer_agreement: UnitFloat | None = None
    """Minimum share of verdicts on every model's answers in which a judge finds the reasoning VALID."""
    min_kappa: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Minimum agreement of the judges beyond chance (Fleiss' kappa)."""
    min_accuracy: UnitFloat | None = None
    """Minimum share of correct answers of every model, for a task with known correct answers."""
    max_open_conflicts: Annotated[int, Field(ge=0)] | None = None
    """Maximum number of open conflicts: those that neither judges nor people have settled."""
    max_served_models: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of versions of a model that answered during the audit, as its provider reports them. With 1, a
    model that was changed during the audit fails."""
    max_cost_usd: NonNegativeFloat | None = None
    """Maximum cost of the audit in US dollars."""
    min_coverage: UnitFloat | None = None
    """Minimum share of usable answers among the planned ones, for every model. A model below it fails. If it is not
    set, a model below 0.95 is undecided."""
    confident: bool = False
    """Whether a requirement is met only if the whole 95% confidence interval meets it (true), or already if the
    estimate does (false)."""
    probes: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Requirements of probes of other packages, by the probe's name, such as `[check.probes.confidence]`."""

    def find(self, name: str) -> float | None:
        """Return a threshold of this table by name, also one that a built-in probe declares; None if it is not set."""
        threshold: float | None = getattr(self, name, None)
        return threshold

    def list_names(self) -> list[str]:
        """Names of the thresholds that are set, sorted; those of other packages' probes as `probe.threshold`."""
        names = [name for name, value in self if value is not None and name not in ("confident", "probes")]
        return sorted([*names, *(f"{probe}.{name}" for probe, limits in self.probes.items() for name in limits)])

    @classmethod
    def list_further_fields(cls) -> dict[str, Any]:
        """Types of the thresholds that built-in probes declare, by name."""
        return list_threshold_fields()

    @model_validator(mode="before")
    @classmethod
    def _name_other_thresholds(cls, data: Any) -> Any:
        """Mark the thresholds without a field here with their name, for `_validate_threshold`."""
        if not isinstance(data, dict):
            return data
        return {
            name: value if name in cls.model_fields else _NamedThreshold(str(name), value)
            for name, value in data.items()
            if value is not None or name in cls.model_fields
        }


class NonInferioritySection(ConfigSection):
    """A claim that is registered before an audit asks: it is hardly farther from people than an earlier audit."""

    baseline: Annotated[str, Field(min_length=1, max_length=100)]
    """Name of the earlier audit, such as that of the model before it was tuned."""
    margin: Annotated[float, Field(gt=0, le=2)]
    """The increase in mean absolute error, from 0 to 2, that does not matter. A region passes if the 95% confidence
    interval of its change ends below."""


class CompareSection(ConfigSection):
    """What `auditor compare` is to show of this audit; it changes no result."""

    non_inferiority: NonInferioritySection | None = None
    """A claim of non-inferiority, as in `{ baseline = "before", margin = 0.05 }`. `auditor run` adds it to the hash
    chain before it asks, so that a comparison can say that the margin was chosen in advance."""
