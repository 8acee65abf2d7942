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
    """The three-step chain of thought that ends in a score."""

    samples: Annotated[int, Field(ge=1, le=1000)] = 5
    """Samples of a cell in each language; at most so many, where `tolerance` is set."""
    tolerance: Annotated[float, Field(gt=0, le=1)] | None = None
    """Standard error of a cell's mean at which no more samples of it are taken; all are taken where it is not set."""
    min_samples: Annotated[int, Field(ge=2)] = 3
    """With `tolerance`: samples that every cell has; judges are given these only, so that no cell weighs more."""
    target_width: Annotated[float, Field(gt=0, le=2)] | None = None
    """Width of Fisher's 95% interval of every model's r at which no more cells are asked; all are where it is unset.
    This interval takes cells as independent: the one that a report prints, over countries and topics, is usually
    wider."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    """Of the samples."""
    max_tokens: Annotated[int, Field(ge=16)] = 400
    """Length of an answer at most; one that is cut off has no score."""
    mode: Literal["structured", "text"] = "structured"
    """`structured` asks for a JSON object; `text` is the paper's form, which ends in "SCORE = x"."""
    max_words: Annotated[int, Field(ge=5)] = 120
    """Length of the reasoning that is asked for."""
    repair: bool = True
    """Whether a model whose answer cannot be read is shown it and asked once more; the report counts these."""

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
                f"tolerance: {self.min_samples} samples are taken in any case, and {self.samples} at most. "
                "How to fix: Set samples higher, or leave out tolerance."
            )
        return self


class LogprobProbe(ConfigSection):
    """Score by how much likelier a sentence is to end well than badly: five pairs of ends, two sentences a cell."""

    method: Literal["auto", "echo", "continuation", "choice"] = "auto"
    """`auto` takes what each model offers: `continuation` (its weights on this machine), else `echo` (a completions
    endpoint with log-probabilities of the prompt, by `echo` or vLLM's `prompt_logprobs`), else `choice` (next token of
    a chat, A or B)."""


class ReviewProbe(ConfigSection):
    """What judges are asked of each trace."""

    max_words: Annotated[int, Field(ge=5)] = 60
    """Length of the justification at most."""
    max_tokens: Annotated[int, Field(ge=16)] = 300
    """Length of a verdict at most; one that is cut off does not count."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Of judges that set none of their own."""
    traces: Literal["all"] | Annotated[int, Field(ge=1)] = "all"
    """How many traces of a cell go to the judges: all, or the first n that have a score."""
    max_trace_chars: Annotated[int, Field(ge=500)] = DEFAULT_MAX_TRACE_CHARS
    """Length of each text that a judge is shown at most, in characters; of a longer one the middle is left out, with a
    mark in its place, and the report counts such traces. It also bounds what a model is shown of its own answer when
    it is asked again, and the answers that the probe `semantic` has compared."""
    guess: bool = False
    """Whether each judge is also asked to guess the country, the topic and the author, so that blinding is measured."""
    rewrite: Literal["none", "neutral"] = "none"
    """`neutral` has a third model restate each trace, and judges rule on that too: how far style moves verdicts."""
    rewriter: str | None = None
    """Name of the model or judge that restates; it neither restates its own traces nor judges what it restated."""


class Probes(ConfigSection):
    """What is measured: the probes that are named, or `direct` where none is; `review` is how judges are asked."""

    direct: DirectProbe | None = None
    """Scores that models say, after their reasons."""
    logprob: LogprobProbe | None = None
    """Log-probabilities; `{}` takes what each model offers."""
    review: ReviewProbe = ReviewProbe()
    """How judges are asked."""
    semantic: SemanticProbe | None = None
    """Moral questions in several wordings: how alike are the answers?"""
    logic: LogicProbe | None = None
    """Pairs of items compared: how logical are a judge's preferences?"""

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
