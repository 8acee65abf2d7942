"""Settings of the probe `distribution`: the table of that name under `[probes]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from auditor.config.base import ConfigSection
from auditor.config.probe_section import ProbeSection
from auditor.config.providers import REPLAY
from auditor.probes.distribution.opinions import MIN_GROUP_RESPONDENTS, ScaleOrder

if TYPE_CHECKING:
    from auditor.config.audit import AuditConfig

Mode = Literal["verbalized", "sampled", "tokens"]
DEFAULT_MODES: tuple[Mode, ...] = ("verbalized", "sampled")
MIN_SAMPLES_PER_ORDER = 2
"""Fewest sampled answers in each order of the scale, from which a variance can be estimated."""


class DistributionThresholds(ConfigSection):
    """Thresholds under `[check]`."""

    min_skill: Annotated[float, Field(le=1)] | None = None
    """Minimum skill of every model's opinions: 1 is perfect, 0 as good as the mean of the other countries."""
    min_variance_ratio: Annotated[float, Field(ge=0)] | None = None
    """Minimum variance of every model's opinions, as a multiple of the variance of people's."""
    max_order_effect: Annotated[float, Field(ge=0, le=1)] | None = None
    """Maximum shift of every model's opinions to the end of the scale that is shown first, as a share of the scale."""


class DistributionProbe(ProbeSection):
    """How people's answers are spread: the shares that a model states, and its own answers as single people."""

    keys_hashed_at_defaults: ClassVar = {
        "": "modes samples temperature orders groups min_n control repair max_tokens min_mass"
    }

    modes: Annotated[list[Mode], Field(min_length=1)] = Field(default_factory=lambda: list(DEFAULT_MODES))
    """How models are asked: `verbalized`, how many of 100 people would choose each answer; `sampled`, to answer as one
    person, several times; `tokens`, the probabilities of the answers as the next token, if the provider has them."""
    samples: Annotated[int, Field(ge=2, le=1000)] = 10
    """With `sampled`: number of answers for each cell, half of them in each order of the scale."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    """Sampling temperature of `sampled`; it changes how diverse the answers are. `verbalized` is asked at 0."""
    orders: Literal["both", "up", "down"] = "both"
    """Order in which the scale is shown: `up`, from its low end; `down`, from its high end; `both`, once in each."""
    groups: list[str] = Field(default_factory=list)
    """Names of the survey's dimensions, such as "sex" or "age". Models are also asked about each of their groups."""
    min_n: Annotated[int, Field(ge=1)] = MIN_GROUP_RESPONDENTS
    """Minimum number of respondents of a group in a cell; smaller groups are not asked about."""
    control: bool = True
    """Whether to ask each topic without a country as well and, with `groups`, each cell with an attribute that says
    nothing about opinions."""
    repair: bool = True
    """Whether a model whose answer cannot be read is shown that answer and asked once more."""
    max_tokens: Annotated[int, Field(ge=16)] = 200
    """Maximum length of an answer in tokens."""
    min_mass: Annotated[float, Field(gt=0, le=1)] = 0.5
    """With `tokens`: minimum probability of all answers together; below it, the answer counts as not measurable."""

    @property
    def sampled_temperature(self) -> float:
        """Temperature of the sampled answers."""
        return self.temperature

    @property
    def scale_orders(self) -> tuple[ScaleOrder, ...]:
        """The orders in which the scale is shown."""
        return (ScaleOrder.UP, ScaleOrder.DOWN) if self.orders == "both" else (ScaleOrder(self.orders),)

    @model_validator(mode="after")
    def _check_samples(self) -> Self:
        """Require as many samples in each order, and enough of them; and modes and groups that are listed once."""
        n_orders = len(self.scale_orders)
        if self.samples % n_orders or self.samples < MIN_SAMPLES_PER_ORDER * n_orders:
            raise ValueError(
                f"samples: {self.samples} cannot be divided between {n_orders} orders of the scale with at least "
                f"{MIN_SAMPLES_PER_ORDER} in each. How to fix: Set an even number of at least "
                f"{MIN_SAMPLES_PER_ORDER * n_orders}."
            )
        for key, values in (("modes", self.modes), ("groups", self.groups)):
            if len(set(values)) < len(values):
                raise ValueError(f"{key}: a value is listed twice. How to fix: List each value once.")
        return self

    def check(self, config: AuditConfig) -> None:
        """Require a survey, and models that can be asked."""
        if config.task is not None:
            raise ValueError(
                "probes.distribution: cannot be used with a task, since it needs a survey. How to fix: Remove it."
            )
        if config.survey is None:
            raise ValueError(
                "the key 'survey' is missing. How to fix: Add it; the probe 'distribution' compares with the shares of "
                "its answers."
            )
        for model in config.models:
            if model.provider is REPLAY:
                raise ValueError(
                    f"model '{model.name}' replays recorded answers, so the probe 'distribution' cannot ask it. How to "
                    "fix: Remove it; `auditor import opinions` imports recorded opinions."
                )
