"""The tables under `[probes]`: what is measured, and the settings of the requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticKnownError

from auditor.config.base import ConfigSection, PromptForm
from auditor.config.installed_probes import (
    find_settings_class,
    is_installed,
    list_probe_names,
    load_built_in,
    load_probe,
)
from auditor.config.probe_section import MissingProbe, ProbeSection, ProbeSettings
from auditor.errors import ProbeError

DEFAULT_MAX_TRACE_CHARS = 20_000
DEFAULT_REVIEW_WORDS = 60
S = TypeVar("S", bound=ConfigSection)


class DirectProbe(ConfigSection):
    """Scores that models state as a number after reasoning in three steps."""

    samples: Annotated[int, Field(ge=1, le=1000)] = 5
    """Number of times that each model is asked each question (a country and a topic), in each language; the maximum if
    `tolerance` is set."""
    tolerance: Annotated[float, Field(gt=0, le=1)] | None = None
    """A question is not repeated further once the standard error of the model's mean score on it is at most this. If
    not set, all samples are taken."""
    min_samples: Annotated[int, Field(ge=2)] = 3
    """With `tolerance`: minimum number of samples per question. Judges review only this many answers to each question,
    so that all questions count equally."""
    target_width: Annotated[float, Field(gt=0, le=2)] | None = None
    """Stop asking once the 95% confidence interval of r (Fisher's) is at most this wide for every model. If not set,
    all cells (a country and a topic) are asked. This interval treats cells as independent. The report's interval, over
    countries and topics, is usually wider."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    """Sampling temperature."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Nucleus sampling: words are drawn from the most probable ones that together have this probability. If not set,
    the provider's default is used."""
    max_tokens: Annotated[int, Field(ge=16)] = 400
    """Maximum length of an answer in tokens. An answer that is cut off has no score."""
    mode: Literal["structured", "text"] = "structured"
    """Form of the answer that is asked for: `structured`, a JSON object; `text`, free text that ends in "SCORE = x", as
    in the paper (EvalMORAAL, arXiv 2510.05942)."""
    form: PromptForm = "standard"
    """Prompt: `standard`, this program's own, with a limit on length; `paper`, the three steps as EvalMORAAL describes
    them, in words of our own and without a limit. `paper` exists in English, for surveys."""
    max_words: Annotated[int, Field(ge=5)] = 120
    """Requested length of the reasoning in words."""
    schema_version: Literal[1, 2] = 2
    """With `mode = "structured"` and `form = "standard"`: version of the JSON schema that is sent with a survey's
    question. `2` describes the reasoning as the prompt does, step by step. `1` describes it as "one or two sentences",
    whatever `max_words` is. Audits that were begun with version 1 keep it."""
    repair: bool = True
    """Whether a model whose answer has no readable score is shown that answer and asked once more. The report counts
    these answers."""

    @property
    def prompt_name(self) -> str:
        """Name of the prompt of a survey's questions."""
        return f"direct.{self.mode}" if self.form == "standard" else f"direct.{self.form}.{self.mode}"

    @property
    def guaranteed_samples(self) -> int:
        """Samples of a cell in each language that are taken even if sampling stops early."""
        return self.samples if self.tolerance is None else self.min_samples

    def split_sample(self, number: int) -> tuple[int, int]:
        """The language of a sample, as an index into those of its cell, and the sample's rank in it, both from 0.

        Samples of a cell are numbered language by language: index of the language × `samples` + rank.
        """
        return divmod(number, self.samples)

    @property
    def is_open_ended(self) -> bool:
        """Whether the number of requests depends on the answers: sampling may stop early."""
        return self.tolerance is not None or self.target_width is not None

    @model_validator(mode="after")
    def _check_early_stopping(self) -> Self:
        """Require that sampling can stop early if `tolerance` is set: fewer samples at least than at most."""
        if self.tolerance is not None and self.min_samples >= self.samples:
            raise ValueError(
                f"tolerance: questions cannot be repeated fewer times, since min_samples ({self.min_samples}) is not "
                f"below samples ({self.samples}). How to fix: Raise samples, or remove tolerance."
            )
        return self


class LogprobProbe(ConfigSection):
    """Scores from log-probabilities: how much more likely a model finds a positive ending of a sentence than a negative
    one. Each country and topic has two sentences and five pairs of endings."""

    method: Literal["auto", "echo", "continuation", "choice"] = "auto"
    """`continuation` computes log-probabilities with the model's weights on this machine. `echo` needs a completions
    endpoint that returns log-probabilities of the prompt (`echo`, or vLLM's `prompt_logprobs`). `choice` compares the
    probabilities of A and B as the next token of a chat. `auto` uses the first of these that the model supports."""
    min_mass: Annotated[float, Field(gt=0, le=1)] = 0.5
    """With `choice`: minimum probability of A and B together; below it, the model would have said something else, and
    the sentence counts as not measurable."""


class ReviewProbe(ConfigSection):
    """How judges review each trace."""

    form: PromptForm = "standard"
    """Prompt: `standard`, this program's own; `paper`, what EvalMORAAL says that judges consider, in words of our own.
    `paper` exists for surveys. A judge's own `review_prompt` takes precedence."""
    max_words: Annotated[int, Field(ge=5)] = DEFAULT_REVIEW_WORDS
    """Maximum length, in words, of the justification that a judge gives."""
    max_tokens: Annotated[int, Field(ge=16)] = 300
    """Maximum length of a judge's answer in tokens. A verdict that is cut off does not count."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Sampling temperature of judges without a `temperature` of their own."""
    traces: Literal["all"] | Annotated[int, Field(ge=1)] = "all"
    """Number of a model's answers on each country and topic that judges review: `all`, or a number n for the first n
    with a score."""
    max_trace_chars: Annotated[int, Field(ge=500)] = DEFAULT_MAX_TRACE_CHARS
    """Maximum length of a text shown to a judge, in characters. The middle of a longer text is replaced by a mark, and
    the report counts such traces. The limit also applies to an answer shown to its model again (`repair`), and to the
    answers that the probe `semantic` compares."""
    guess: bool = False
    """Whether each judge also guesses the country, the topic and the author, which it is not told; of a task, the
    author. This measures how well they are hidden."""
    rewrite: Literal["none", "neutral"] = "none"
    """`neutral`: another model restates the reasoning of each answer in neutral words, and judges review the
    restatement too. This measures the effect of style on verdicts. `none`: no restatements."""
    rewriter: str | None = None
    """With `rewrite`: name of the model or judge that restates the reasoning of others. It does not judge its
    restatements."""


KEEP_MISSING_PROBES = "keep_missing_probes"
"""Key of the context of a validation: whether tables of probes that cannot be used are kept, as of stored audits."""


class _NamedTable(NamedTuple):
    """The table of a probe, which is imported to validate it."""

    name: str
    value: Any
    keeps_missing: bool


def _validate_table(table: _NamedTable) -> ConfigSection:
    """Validate a probe's table by the class of its settings; the probe's module is imported now.

    Raises:
        ValidationError: a key or value is wrong.
        PydanticKnownError: no probe of this name is installed.
        ProbeError: the probe cannot be used.
    """
    if isinstance(table.value, ConfigSection):
        return table.value
    try:
        if not is_installed(table.name):
            if not table.keeps_missing:
                raise PydanticKnownError("extra_forbidden")
            raise ProbeError(f"the probe '{table.name}' is not installed.")
        section: ConfigSection = load_probe(table.name).probe.settings.model_validate(table.value)
    except (ProbeError, ValidationError) as error:
        if not table.keeps_missing:
            raise
        reason = (
            error.message
            if isinstance(error, ProbeError)
            else (f"the installed version of the probe '{table.name}' cannot read its stored settings.")
        )
        return MissingProbe.keep(table.value, reason)
    return section


class Probes(ConfigSection):
    """What is measured. If this section names no probe, `direct` is used; `review` alone is not a probe."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[Any, BeforeValidator(_validate_table)]]

    direct: DirectProbe | None = None
    """Asks each model to state its score as a number after its reasoning."""
    logprob: LogprobProbe | None = None
    """Also derives scores from log-probabilities: how likely the model finds positive and negative endings of a
    sentence. Write `{}` for the defaults."""
    review: ReviewProbe = ReviewProbe()
    """How judges review the reasoning behind models' answers."""

    def find(self, settings: type[S]) -> S | None:
        """Return the table of the probe whose settings are of a class; None if it is not configured."""
        return next((table for table in self.with_stage.values() if isinstance(table, settings)), None)

    def get(self, settings: type[S]) -> S:
        """Return the table that `find` returns. Raises LookupError if the probe is not configured."""
        table = self.find(settings)
        if table is None:
            raise LookupError(f"the probe with {settings.__name__} is not configured")
        return table

    @property
    def stages(self) -> dict[str, ProbeSection]:
        """The configured built-in probes with a stage of their own, by name, in the order of their stages."""
        tables = self.model_extra or {}
        sections = {name: table for name, table in tables.items() if isinstance(table, ProbeSection)}
        return {name: sections[name] for name in sorted(sections, key=lambda name: load_built_in(name).position)}

    @property
    def with_stage(self) -> dict[str, ProbeSettings]:
        """All configured probes with a stage of their own by name: built-in ones, then those of other packages."""
        return {**self.stages, **self.plugins}

    @property
    def plugins(self) -> dict[str, ProbeSettings]:
        """The configured probes of folders and of other packages, by name, in the order of their stages."""
        tables = self.model_extra or {}
        others = {name: table for name, table in tables.items() if not isinstance(table, ProbeSection)}
        return {name: others[name] for name in sorted(others) if isinstance(others[name], ProbeSettings)}

    @property
    def missing(self) -> dict[str, str]:
        """Why configured probes of a stored audit cannot be used now, as a sentence, by the probe's name."""
        tables = self.model_extra or {}
        return {name: table.reason for name, table in sorted(tables.items()) if isinstance(table, MissingProbe)}

    @classmethod
    def list_further_fields(cls) -> dict[str, Any]:
        """Types of the tables of probes by name; `dict` for a probe of another package that was not imported so far."""
        return {name: find_settings_class(name) or dict for name in list_probe_names()}

    @model_validator(mode="before")
    @classmethod
    def _default_to_direct(cls, data: Any) -> Any:
        """Add the direct probe if the table names no probe; `review` alone is none."""
        if isinstance(data, dict) and not set(data) - {"review"}:
            return {**data, "direct": {}}
        return data

    @model_validator(mode="before")
    @classmethod
    def _name_other_tables(cls, data: Any, info: ValidationInfo) -> Any:
        """Mark the tables of probes without a field here with their name, for `_validate_table`.

        A probe without a table (null) is not configured.
        """
        if not isinstance(data, dict):
            return data
        keeps_missing = bool((info.context or {}).get(KEEP_MISSING_PROBES))
        return {
            name: value if name in cls.model_fields else _NamedTable(str(name), value, keeps_missing)
            for name, value in data.items()
            if value is not None or name in cls.model_fields
        }
