"""The tables under `[probes]`: what is measured, and the settings of the requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from auditor.config.base import ConfigSection
from auditor.config.logic import LogicProbe
from auditor.config.probe_section import ProbeSection
from auditor.config.semantic import SemanticProbe

DEFAULT_MAX_TRACE_CHARS = 20_000


class DirectProbe(ConfigSection):
    """Scores from a chain of thought in three steps."""

    samples: Annotated[int, Field(ge=1, le=1000)] = 5
    """Samples per cell and language; the maximum if `tolerance` is set."""
    tolerance: Annotated[float, Field(gt=0, le=1)] | None = None
    """Sampling of a cell stops when the standard error of its mean is at most this. If not set, all samples are
    taken."""
    min_samples: Annotated[int, Field(ge=2)] = 3
    """With `tolerance`: minimum number of samples per cell. Judges see only these, so that all cells count equally."""
    target_width: Annotated[float, Field(gt=0, le=2)] | None = None
    """Stop when Fisher's 95% confidence interval of r is at most this wide for every model. If not set, all cells are
    asked. This interval treats cells as independent. The report's interval, over countries and topics, is usually
    wider."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    """Sampling temperature."""
    max_tokens: Annotated[int, Field(ge=16)] = 400
    """Maximum length of an answer in tokens. An answer that is cut off has no score."""
    mode: Literal["structured", "text"] = "structured"
    """`structured` asks for a JSON object; `text` asks for text that ends in "SCORE = x", as in the paper."""
    max_words: Annotated[int, Field(ge=5)] = 120
    """Requested length of the reasoning in words."""
    repair: bool = True
    """Whether a model is shown an answer of its that cannot be parsed, and asked once more. The report counts these."""

    @property
    def guaranteed_samples(self) -> int:
        """Samples of a cell in each language that are taken even if sampling stops early."""
        return self.samples if self.tolerance is None else self.min_samples

    @property
    def is_open_ended(self) -> bool:
        """Whether the number of requests depends on the answers: sampling may stop early."""
        return self.tolerance is not None or self.target_width is not None

    @model_validator(mode="after")
    def _check_early_stopping(self) -> Self:
        """Require that sampling can stop early if `tolerance` is set: fewer samples at least than at most."""
        if self.tolerance is not None and self.min_samples >= self.samples:
            raise ValueError(
                f"tolerance: sampling cannot stop early, since min_samples ({self.min_samples}) is not below samples "
                f"({self.samples}). How to fix: Raise samples, or remove tolerance."
            )
        return self


class LogprobProbe(ConfigSection):
    """Scores from log-probabilities: how much more likely a positive ending of a sentence is than a negative one. Each
    cell has two sentences and five pairs of endings."""

    method: Literal["auto", "echo", "continuation", "choice"] = "auto"
    """`continuation` computes log-probabilities with the model's weights on this machine. `echo` needs a completions
    endpoint that returns log-probabilities of the prompt (`echo`, or vLLM's `prompt_logprobs`). `choice` compares the
    next token, A or B, of a chat. `auto` uses the first of these that the model supports."""


class ReviewProbe(ConfigSection):
    """How judges review each trace."""

    max_words: Annotated[int, Field(ge=5)] = 60
    """Maximum length of the justification in words."""
    max_tokens: Annotated[int, Field(ge=16)] = 300
    """Maximum length of a verdict in tokens. A verdict that is cut off does not count."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Temperature of judges that do not set one themselves."""
    traces: Literal["all"] | Annotated[int, Field(ge=1)] = "all"
    """Number of traces per cell that are reviewed: `all`, or the first n with a score."""
    max_trace_chars: Annotated[int, Field(ge=500)] = DEFAULT_MAX_TRACE_CHARS
    """Maximum length of a text shown to a judge, in characters. The middle of a longer text is replaced by a mark, and
    the report counts such traces. The limit also applies to an answer shown to its model again (`repair`), and to the
    answers that the probe `semantic` compares."""
    guess: bool = False
    """Whether each judge also guesses the country, the topic and the author, which measures blinding."""
    rewrite: Literal["none", "neutral"] = "none"
    """`neutral`: another model restates each trace and judges review the restatement too. It measures the effect of
    style."""
    rewriter: str | None = None
    """Name of the model or judge that restates. It neither restates its own traces nor judges its restatements."""


class Probes(ConfigSection):
    """What is measured. Without a probe in this table, `direct` is used; `review` alone is not a probe."""

    direct: DirectProbe | None = None
    """Scores that models state after their reasoning."""
    logprob: LogprobProbe | None = None
    """Scores from log-probabilities; `{}` for the defaults."""
    review: ReviewProbe = ReviewProbe()
    """How judges review traces."""
    semantic: SemanticProbe | None = None
    """Consistency of the answers to moral questions in several wordings."""
    logic: LogicProbe | None = None
    """Logical consistency of a judge's pairwise preferences."""

    @property
    def logic_items(self) -> str | None:
        """Source of the items that the probe `logic` compares; None without that probe."""
        return self.logic.items if self.logic else None

    @property
    def stages(self) -> dict[str, ProbeSection]:
        """The configured probes with a stage of their own, by name, in the order of their stages."""
        sections = {name: getattr(self, name) for name in SECTION_BY_PROBE}
        return {name: section for name, section in sections.items() if section is not None}

    @model_validator(mode="before")
    @classmethod
    def _default_to_direct(cls, data: Any) -> Any:
        """Add the direct probe if the table names no probe; `review` alone is none."""
        if isinstance(data, dict) and not set(data) & (set(cls.model_fields) - {"review"}):
            return {**data, "direct": {}}
        return data


def _find_section_class(annotation: Any) -> type[ProbeSection] | None:
    """The class of a probe with a stage of its own that a field may hold; None if the field holds none."""
    classes = (value for value in get_args(annotation) if isinstance(value, type) and issubclass(value, ProbeSection))
    return next(classes, None)


SECTION_BY_PROBE: Mapping[str, type[ProbeSection]] = {
    name: section_class
    for name, field in Probes.model_fields.items()
    if (section_class := _find_section_class(field.annotation)) is not None
}
"""Probes with a stage of their own, by name: all fields of `Probes` that hold a `ProbeSection`, in their order."""
