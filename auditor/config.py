"""The configuration of an audit: one TOML (or strict YAML) file, validated; unknown keys name the nearest known."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field, field_validator, model_validator

from auditor._explain import explain
from auditor._section import Section
from auditor.domain import ENGLISH, LANGUAGES, NATIVE, Cell, Survey, canonical_hash
from auditor.errors import ConfigError, UsageError
from auditor.families import family_of
from auditor.phrasing import Rephrasing, check_language
from auditor.semantic_config import SemanticProbe

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Of an audit: it goes into file names."""
ENV_PREFIX = "os.environ/"
EMBEDDED = "embedded/"
"""Prefix of models that run inside the process."""
REPLAY = "replay/"
"""Prefix of models whose answers come from a file."""
PATHS = ("review_prompt", "weights", "answers")
"""Keys of a model that name files."""
MAX_CONFIG_BYTES = 1_000_000
MOST_TO_A_SERVER, MOST_TO_A_PROVIDER = 8, 100


Nonresponse = Literal["drop", "neutral", "bounds", "impute"]


class SurveySection(Section):
    """Which ground truth, and which part of it."""

    source: str
    """Name of a built-in survey, or a path to a file of the user's own."""
    countries: Literal["all"] | list[str] = "all"
    """Countries to ask about, in the survey's own spelling."""
    topics: Literal["all"] | list[str] = "all"
    """Topics to ask about."""
    nonresponse: Nonresponse = "drop"
    """What becomes of respondents without an answer: `drop` takes the scores as the survey gives them, `neutral` counts
    them as 0, `impute` fills them in within their country, `bounds` also reports the best and the worst case."""
    regions: str = "western"
    """Groups of countries to compare: `western`, `un_m49`, `un_m49_subregions`, `inglehart_welzel`, or a file of the
    user's own with the columns `country,region`."""
    rephrase: Rephrasing = Rephrasing()
    """Other words for the question, the scale or topics, in each language that the audit asks in."""


class Price(Section):
    """Price of a model in US dollars per million tokens, for models whose price is not publicly listed."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    as_of: date | None = None
    """Day on which it was looked up, such as 2026-07-01; said beside every estimate."""


class ModelSection(Section):
    """One model: who it is, how it is reached, and how hard it may be asked."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    """The model's name in this audit."""
    model: Annotated[str, Field(pattern=r"^[^/\s]+/\S+$")]
    """Provider and model, as litellm names them, such as `openai/gpt-4o` or `embedded/smollm2-135m`."""
    api_key: Annotated[str, Field(pattern=r"^os\.environ/\w+$")] | None = None
    """Where the key is: `os.environ/NAME`. The key itself never stands in the file."""
    api_base: Annotated[str, Field(pattern=r"^https?://[^/\s]+")] | None = None
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
    timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """Time limit of one request, in seconds."""
    price: Price | None = None
    """Set where the provider's price is not publicly listed; unknown is not zero."""
    params: dict[str, Any] = Field(default_factory=dict)
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
    def kin(self) -> str:
        """Its family, as set or as its id says."""
        return self.family or family_of(self.model)

    @property
    def most_in_flight(self) -> int:
        """Requests in flight at most, chosen or by default."""
        return self.concurrency or (MOST_TO_A_SERVER if self.api_base else MOST_TO_A_PROVIDER)

    @property
    def account(self) -> tuple[str, str | None, str | None]:
        """Who bears the load: models of one account share what it allows; without key and server, each has its own."""
        known = self.api_key or self.api_base
        return self.model.split("/", 1)[0] if known else self.model, self.api_key, self.api_base


class DirectProbe(Section):
    """The three-step chain of thought that ends in a score."""

    samples: Annotated[int, Field(ge=1, le=1000)] = 5
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    max_tokens: Annotated[int, Field(ge=16)] = 400
    mode: Literal["structured", "text"] = "structured"
    """`structured` asks for a JSON object; `text` is the paper's form, which ends in "SCORE = x"."""
    max_words: Annotated[int, Field(ge=5)] = 120
    """Length of the reasoning that is asked for."""
    repair: bool = True
    """Whether a model whose answer cannot be read is shown it and asked once more; the report counts these."""


class LogprobProbe(Section):
    """Score by how much likelier a sentence is to end well than badly: five pairs of ends, two sentences a cell."""

    method: Literal["auto", "echo", "continuation", "choice"] = "auto"
    """`auto` takes what each model offers: `continuation` (its weights on this machine), else `echo` (a completions
    endpoint with log-probabilities of the prompt), else `choice` (next token of a chat, A or B)."""


class ReviewProbe(Section):
    """What judges are asked of each trace."""

    max_words: Annotated[int, Field(ge=5)] = 60
    """Length of the justification at most."""
    max_tokens: Annotated[int, Field(ge=16)] = 300
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    traces: Literal["all"] | Annotated[int, Field(ge=1)] = "all"
    """How many traces of a cell go to the judges: all, or the first n that have a score."""
    guess: bool = False
    """Whether each judge is also asked to guess the country, the topic and the author, so that blinding is measured."""
    rewrite: Literal["none", "neutral"] = "none"
    """`neutral` has a third model restate each trace, and judges rule on that too: how far style moves verdicts."""
    rewriter: str | None = None
    """Name of the model or judge that restates; it neither restates its own traces nor judges what it restated."""


class LogicProbe(Section):
    """Pairs of items, compared in both orders and in a negated form: how logical are a judge's preferences?"""

    items: str = "topics"
    """What is compared: `topics`, those of a country; `traces`, the reasonings on a cell; or a file of one's own."""
    countries: Literal["all"] | list[str] | None = None
    """Countries whose topics, or traces, are compared; the survey's first where none is named."""
    relation: Literal["preference", "relevance", "temporal", "causal"] = "preference"
    """What items are compared by; topics and traces by preference only."""
    negated: bool = True
    """Whether each question is also put in its negated form, "which is less …"."""
    both_orders: bool = True
    """Whether each pair is shown in both orders."""
    answer: Literal["structured", "probability"] = "structured"
    """`structured` asks for A, B or TIE as JSON; `probability` reads how probable A and B are as the next token, where
    a provider offers that: a pair is decided for what is at least as probable, and no question is repeated."""
    cot: bool = False
    """Whether the judge reasons before it answers."""
    max_words: Annotated[int, Field(ge=5)] = 60
    """Length of the reasoning that is asked for."""
    max_tokens: Annotated[int, Field(ge=1)] = 200
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    paraphrases: Annotated[int, Field(ge=1, le=10)] = 1
    """Wordings of the question; all is asked in each of them."""
    samples: Annotated[int, Field(ge=0, le=100)] = 10
    """Repeats of a question, from which self-agreement is read; 0 does without."""
    sampled_pairs: Annotated[int, Field(ge=0)] = 20
    """Pairs of a set, drawn at random, that are repeated."""
    sample_temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    """Of the repeats; one of 0 would repeat the same answer."""
    k: Annotated[list[Annotated[int, Field(ge=3)]], Field(min_length=1)] = Field(default_factory=lambda: [3, 5])
    """Sizes of the subsets that transitivity is measured on."""
    max_subsets: Annotated[int, Field(ge=1)] = 1000
    """Subsets of a size looked at in a set; all, where there are no more."""
    max_items: Annotated[int, Field(ge=2)] = 30
    """Items of a set at most; of more, so many are drawn at random."""
    max_pairs: Annotated[int, Field(ge=1)] | None = None
    """Pairs of a set at most, drawn at random; all where it is not set."""


class Probes(Section):
    """What is measured: the probes that are named, or `direct` where none is; `review` is how judges are asked."""

    direct: DirectProbe | None = None
    logprob: LogprobProbe | None = None
    """Log-probabilities; `{}` takes what each model offers."""
    review: ReviewProbe = ReviewProbe()
    semantic: SemanticProbe | None = None
    """Moral questions in several wordings: how alike are the answers?"""
    logic: LogicProbe | None = None
    """Pairs of items compared: how logical are a judge's preferences?"""

    @property
    def logic_items(self) -> str | None:
        """What the probe `logic` compares; None where it is not asked for."""
        return self.logic.items if self.logic else None

    @model_validator(mode="before")
    @classmethod
    def _direct_unless_another_is_named(cls, data: Any) -> Any:
        if isinstance(data, dict) and not set(data) & (set(cls.model_fields) - {"review"}):
            return {**data, "direct": {}}
        return data


class ConflictSection(Section):
    """When two models are said to conflict."""

    threshold: Annotated[float, Field(gt=0, le=2)] | Literal["auto"] = 0.38
    """Least absolute difference of scores; `auto` is the third quartile of this audit's own differences."""
    methods: bool = True
    """Whether cells on which a model's two methods of scoring differ so much are put before people too."""


class PanelSection(Section):
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


class EmbeddingSection(Section):
    """The sentence encoder behind self-consistency."""

    model: str = "all-MiniLM-L6-v2"
    """A sentence-transformers model by name, or a path to a folder that holds one."""


class Limits(Section):
    """Bounds on money, retries and time."""

    budget_usd: Annotated[float, Field(gt=0)] | None = None
    """No call goes out once this much is spent; None is no limit."""
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 6
    """Requests for one call at most, retries included."""
    deadline_s: Annotated[float, Field(gt=0)] = 120.0
    """Time for one call in all, waits between retries included, in seconds."""


Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class CheckSection(Section):
    """What `auditor check` asks of the audit; a threshold that is not set is not tested."""

    min_pearson: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Least r of every model."""
    max_mae: NotNegative | None = None
    """Largest mean absolute error of every model."""
    max_region_gap: NotNegative | None = None
    """Largest difference of mean error between two regions, for every model."""
    max_topic_mae: NotNegative | None = None
    """Largest mean error of every model on any one topic."""
    min_self_consistency: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Least mean pairwise cosine of every model's reasoning."""
    max_variance: NotNegative | None = None
    """Largest mean variance of every model's samples."""
    min_peer_agreement: Share | None = None
    """Least share of every model's reasoning that the judges find valid."""
    min_kappa: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Least agreement of the judges beyond chance (Fleiss' kappa)."""
    max_open_conflicts: Annotated[int, Field(ge=0)] | None = None
    """Conflicts that may be unsettled."""
    max_cost_usd: NotNegative | None = None
    """What the audit may have cost."""
    min_coverage: Share = 0.95
    """Least share of what was planned that is usable, for every model; below it there is no verdict."""
    confident: bool = False
    """Test the worse end of each 95% interval instead of the figure itself."""


class AuditConfig(Section):
    """One audit."""

    name: Annotated[str, Field(pattern=NAME)]
    """The audit's name: letters, digits, dot, dash and underscore."""
    survey: SurveySection | None = None
    """Which ground truth; only probes that ask about countries and topics need it."""
    language: str | list[str] = ENGLISH
    """What models are asked in: an ISO 639-1 code, `native` for each country's main language or languages (English
    where there are no prompts in them), or a list such as `["en", "native"]`, which asks all samples of a cell in each;
    where two are the same language, once."""
    models: Annotated[list[ModelSection], Field(min_length=1)]
    judges: Literal["peers"] | list[ModelSection] = "peers"
    """`peers`: every model judges all others, never itself; or a list of models; `[]` is no review."""
    probes: Probes = Probes(direct=DirectProbe())
    conflicts: ConflictSection = ConflictSection()
    panel: PanelSection = PanelSection()
    embedding: EmbeddingSection = EmbeddingSection()
    limits: Limits = Limits()
    check: CheckSection = CheckSection()
    """Thresholds of `auditor check`; they change no result."""
    storage: str | None = None
    """Database URL; the command line and AUDITOR_STORAGE come first, `sqlite:///auditor.db` last."""
    seed: int = 0
    """Seed of all sampling; each sample's own seed is derived from it."""

    @field_validator("language")
    @classmethod
    def _known_languages(cls, value: str | list[str]) -> str | list[str]:
        chosen = [value] if isinstance(value, str) else value
        if not chosen:
            raise ValueError("the list is empty. Name at least one language.")
        if len(set(chosen)) < len(chosen):
            raise ValueError("a language is there twice. Name each once.")
        for name in chosen:
            check_language(name, (*LANGUAGES, NATIVE))
        return value

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages in order; `native` differs by country."""
        return (self.language,) if isinstance(self.language, str) else tuple(self.language)

    def languages_in(self, native: Sequence[str]) -> tuple[str, ...]:
        """The languages that a country is asked in, each once.

        Args:
            native: its main languages, of those there are prompts in; English stands in where there is none.
        """
        asked = (
            code for name in self.languages for code in (tuple(native) or (ENGLISH,) if name == NATIVE else (name,))
        )
        return tuple(dict.fromkeys(asked))

    def samples_in(self, native: Sequence[str]) -> int:
        """Samples of one cell by one model, over all languages of the country; 0 without the direct probe."""
        return self.direct.samples * len(self.languages_in(native)) if self.probes.direct else 0

    def samples_on(self, survey: Survey) -> dict[Cell, int]:
        """Samples of each cell that people were asked about, by one model."""
        return {cell: self.samples_in(survey.native.get(cell.country, ())) for cell in survey.scores}

    @property
    def direct(self) -> DirectProbe:
        """How direct scores are asked for; the defaults where they are not."""
        return self.probes.direct or DirectProbe()

    @model_validator(mode="after")
    def _survey_where_needed(self) -> AuditConfig:
        asking = [name for name in ("direct", "logprob") if getattr(self.probes, name)]
        if self.survey is None and asking:
            raise ValueError(
                f"the key 'survey' is missing. Add it; the probe '{asking[0]}' asks about its countries and topics."
            )
        return self

    @model_validator(mode="after")
    def _answers_where_needed(self) -> AuditConfig:
        for model in self.models:
            if model.model.startswith(REPLAY) and model.answers is None:
                raise ValueError(
                    f"model '{model.name}' replays answers, but of no file. Set its key 'answers' to one with "
                    "model,country,topic,sample,text."
                )
        for judge in self.judges if isinstance(self.judges, list) else ():
            if judge.model.startswith(REPLAY):
                raise ValueError(f"judge '{judge.name}': recorded answers cannot judge. See `auditor import verdicts`.")
        return self

    @model_validator(mode="after")
    def _weights_where_needed(self) -> AuditConfig:
        if self.probes.logprob and self.probes.logprob.method == "continuation":
            for model in self.models:
                if model.weights is None and not model.model.startswith(EMBEDDED):
                    raise ValueError(
                        f"model '{model.name}' has no weights on this machine, which probes.logprob.method = "
                        "'continuation' needs. Set its key 'weights', or another method."
                    )
        return self

    @model_validator(mode="after")
    def _items_that_can_be_compared(self) -> AuditConfig:
        logic = self.probes.logic
        if logic is None:
            return self
        if logic.cot and logic.answer == "probability":
            raise ValueError("probes.logic.cot: the next token is no chain of thought. Leave out one of the two.")
        if logic.items == "topics" and self.survey is None:
            raise ValueError("the key 'survey' is missing. Add it; the probe 'logic' compares its topics.")
        if logic.items == "traces" and not self.probes.direct:
            raise ValueError("probes.logic.items: there are no traces without the probe 'direct'. Add direct = {}.")
        if logic.items in ("topics", "traces") and logic.relation != "preference":
            raise ValueError(
                f"probes.logic.relation: {logic.items} are compared by preference. "
                "Name a file of items for other relations."
            )
        return self

    @model_validator(mode="after")
    def _names_and_judges(self) -> AuditConfig:
        _require_unique([m.name for m in self.models], "models")
        _require_different(self.models)
        if isinstance(self.judges, list):
            _require_unique([j.name for j in self.judges], "judges")
            _require_same_model_for_shared_names(self.models, self.judges)
            _require_own_names(self.models, self.judges)
        for model in self.models if self.probes.direct else ():
            if self.judges != [] and not self.judges_of(model.name):
                raise ValueError(
                    f"model '{model.name}' has no judge: a model never judges itself{self._nor_its_family(model)}. "
                    "Add another model or judge, or set judges = [] for no review."
                )
        _require_source_of_weights(self.panel, self.probes)
        if self.panel.weights_from is None:
            _require_usable_weights(self.panel, [j.name for j in self.judge_models])
        _require_third_model(self.probes.review, [m.name for m in [*self.models, *self.judge_models]])
        return self

    @model_validator(mode="after")
    def _semantic_can_be_measured(self) -> AuditConfig:
        probe = self.probes.semantic
        if probe is None:
            return self
        if (probe.encoder or self.embedding.model) == "none":
            raise ValueError("the probe 'semantic' needs a sentence encoder. Name one under embedding.")
        known = list(dict.fromkeys(m.name for m in [*self.models, *self.judge_models]))
        for key, name in probe.helpers.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known)}."
                raise ValueError(f"probes.semantic.{key}: there is no model or judge '{name}'. {hint}")
        return self

    @property
    def judge_models(self) -> list[ModelSection]:
        """All judges, whoever they may judge."""
        peers = [m for m in self.models if not m.model.startswith(REPLAY)]  # a record can be judged, but not judge
        return peers if self.judges == "peers" else list(self.judges)

    def judges_of(self, name: str) -> list[ModelSection]:
        """The judges of a model's traces: all but the model itself, by name and by what it runs on, or its family."""
        author = next(m for m in self.models if m.name == name)
        others = [j for j in self.judge_models if j.name != name and not _is_same_judge(j, author)]
        return [j for j in others if not self.panel.exclude_family or j.kin != author.kin]

    def panel_of(self, *names: str) -> list[ModelSection]:
        """The judges that may judge each of some models, in order: the seats of a conflict between them."""
        seats = [{j.name for j in self.judges_of(name)} for name in names]
        return [j for j in self.judge_models if all(j.name in known for known in seats)]

    def _nor_its_family(self, model: ModelSection) -> str:
        return f", nor one of its family ({model.kin})" if self.panel.exclude_family else ""

    def model(self, name: str) -> ModelSection:
        """The audited model or judge of that name."""
        return next(m for m in [*self.models, *self.judge_models] if m.name == name)

    @property
    def hash(self) -> str:
        """SHA-256 of what determines the results: everything but where they are stored and what is asked of them."""
        return canonical_hash(self.model_dump(mode="json", exclude={"storage", "check"}))


def _is_same_judge(judge: ModelSection, author: ModelSection) -> bool:
    """A judge listed apart is the author under another name when it is the same model, asked the same way."""
    identity = ("model", "api_base", "system", "temperature", "params")
    return all(getattr(judge, key) == getattr(author, key) for key in identity)


def _require_source_of_weights(panel: PanelSection, probes: Probes) -> None:
    if panel.weights_from is None:
        if panel.bench_below:
            raise ValueError('panel.bench_below: needs weights_from = "logic", by which judges are benched.')
        return
    if panel.vote != "weighted":
        raise ValueError('panel.weights_from: needs vote = "weighted". Add it.')
    if panel.weights:
        raise ValueError("panel.weights_from: there are weights already. Leave out one of the two.")
    if probes.logic is None:
        raise ValueError("panel.weights_from: needs the probe 'logic', which asks judges. Add logic = {} to [probes].")


def _require_usable_weights(panel: PanelSection, judges: list[str]) -> None:
    for name in panel.weights:
        if name not in judges:
            near = difflib.get_close_matches(name, judges, n=1, cutoff=0.5)
            hint = f"Did you mean '{near[0]}'?" if near else f"Judges: {', '.join(judges) or 'none'}."
            raise ValueError(f"panel.weights: there is no judge '{name}'. {hint}")
    if panel.vote == "dawid_skene" and panel.adaptive:
        raise ValueError('panel: vote = "dawid_skene" needs all verdicts, so it cannot go with adaptive = true.')
    if panel.vote != "weighted":
        return
    if not panel.weights:
        raise ValueError(
            'panel: vote = "weighted" needs weights. '
            "`auditor export weights AUDIT` makes them from what people decided."
        )
    if missing := [name for name in judges if name not in panel.weights]:
        raise ValueError(f"panel.weights: the judge '{missing[0]}' has none. Give it one: 1 is usual, 0 benches it.")
    if not any(panel.weights.values()):
        raise ValueError("panel.weights: all are 0, so that nobody could vote. Give at least one judge more.")


def _require_third_model(review: ReviewProbe, names: list[str]) -> None:
    if review.rewrite == "none" or review.rewriter in names:
        return
    told = f"there is no model '{review.rewriter}'" if review.rewriter else 'rewrite = "neutral" needs a rewriter'
    raise ValueError(f"probes.review.rewriter: {told}. Name one of {', '.join(dict.fromkeys(names))}.")


def _require_different(models: list[ModelSection]) -> None:
    for i, model in enumerate(models):
        twin = next((m for m in models[:i] if _is_same_judge(m, model)), None)
        if twin is not None:
            raise ValueError(
                f"models: '{twin.name}' and '{model.name}' are one model, asked the same way: they would share every "
                "answer and count as two. Leave one out, or give it other parameters."
            )


def _require_unique(names: list[str], where: str) -> None:
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"{where}: the name {', '.join(map(repr, twice))} is used twice. Give each its own name.")


def _require_own_names(models: list[ModelSection], judges: list[ModelSection]) -> None:
    for judge in judges:
        author = next((m for m in models if m.name != judge.name and _is_same_judge(judge, m)), None)
        if author is not None:
            raise ValueError(
                f"judges: '{judge.name}' is the audited model '{author.name}' under another name. Call it "
                f"'{author.name}' there, too: it then judges all others, and never itself."
            )


def _require_same_model_for_shared_names(models: list[ModelSection], judges: list[ModelSection]) -> None:
    audited = {m.name: m for m in models}
    for judge in judges:
        if judge.name in audited and judge != audited[judge.name]:
            raise ValueError(
                f"judges: '{judge.name}' is also an audited model, but set up differently. Give the judge another name."
            )


# --- reading ----------------------------------------------------------------------------------------------------


def load_config(path: str | Path) -> AuditConfig:
    """Read and check an audit's configuration.

    Relative survey and encoder paths are taken from the file's own folder.

    Args:
        path: a `.toml`, `.yaml` or `.yml` file.

    Raises:
        ConfigError: the file is missing, cannot be read, or holds a key or value that cannot be used; the message
            names the file, the key and, for a misspelt key, the nearest known one.
    """
    path = Path(path)
    data = _read(path)
    try:
        config = AuditConfig.model_validate(data)
    except pydantic.ValidationError as error:
        raise ConfigError(f"{path}: {explain(error, data, AuditConfig)}") from None
    return _resolve_paths(config, path.parent)


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file.", "`auditor init` writes one to start from.")
    if path.stat().st_size > MAX_CONFIG_BYTES:
        raise ConfigError(f"{path}: larger than 1 MB, which no configuration is.", "Is it the right file?")
    try:
        text = path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}.", "Save it as UTF-8 text.") from None
    if path.suffix in (".yaml", ".yml"):
        from auditor._yaml import parse_yaml

        return parse_yaml(text, str(path))
    if path.suffix != ".toml":
        raise ConfigError(f"{path}: the suffix says neither TOML nor YAML.", "Name it .toml, .yaml or .yml.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}.", "Mend that line.") from None


def _resolve_paths(config: AuditConfig, folder: Path) -> AuditConfig:
    def resolved(value: str) -> str:
        candidate = folder / value
        return str(candidate) if candidate.exists() else value

    paths = {key: resolved(getattr(config.survey, key)) for key in ("source", "regions") if config.survey}
    survey = config.survey and config.survey.model_copy(update=paths)
    is_path = os.sep in config.embedding.model
    encoder = resolved(config.embedding.model) if is_path else config.embedding.model
    update: dict[str, Any] = {"survey": survey, "embedding": EmbeddingSection(model=encoder)}
    for key in ("models", "judges"):
        if isinstance(found := getattr(config, key), list):
            files = [{name: resolved(path) for name in PATHS if (path := getattr(m, name))} for m in found]
            update[key] = [m.model_copy(update=paths) for m, paths in zip(found, files, strict=True)]
    probes = _semantic_paths(config.probes, resolved)
    if logic := probes.logic:
        items = logic.model_copy(update={"items": resolved(logic.items)})
        probes = probes.model_copy(update={"logic": items})
    update["probes"] = probes
    return config.model_copy(update=update)


def _semantic_paths(probes: Probes, resolved: Callable[[str], str]) -> Probes:
    probe = probes.semantic
    if probe is None:
        return probes
    paths = {"questions": resolved(probe.questions)}
    if probe.encoder and os.sep in probe.encoder:
        paths["encoder"] = resolved(probe.encoder)
    return probes.model_copy(update={"semantic": probe.model_copy(update=paths)})


def require_name(name: str) -> None:
    """Raise UsageError when a name is none that an audit may have."""
    if not re.match(NAME, name):
        raise UsageError(
            f"'{name}' cannot name an audit.", "Use letters, digits, dot, dash and underscore, 100 at most."
        )


# --- secrets ----------------------------------------------------------------------------------------------------


def resolve_key(reference: str) -> str:
    """The secret behind `os.environ/NAME`; resolved at the call, never stored.

    Raises:
        ConfigError: the variable is not set or empty.
    """
    name = reference.removeprefix(ENV_PREFIX)
    value = os.environ.get(name, "")
    if not value:
        raise ConfigError(f"the environment has no {name}, which '{reference}' names.", f"Set it: export {name}=...")
    return value
