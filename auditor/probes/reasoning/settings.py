"""Settings of the probe `reasoning`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

import auditor.probes as ap

if TYPE_CHECKING:
    from auditor.config import AuditConfig

Kind = Literal["norms", "opposite", "removed", "mistake", "paraphrase", "filler"]
"""What is changed in a recorded chain of thought."""
Form = Literal["prefill", "notes"]
"""How a model gets a chain of thought: as the beginning of its answer, or as notes in the question."""
MIN_SAMPLES_FOR_SHARE = 3


def _check_different(kinds: list[Kind]) -> list[Kind]:
    """Raise a ValueError if a kind is named twice."""
    if len(set(kinds)) < len(kinds):
        raise ValueError("an intervention is named twice. How to fix: Name each once.")
    return kinds


class ReasoningSettings(ap.ProbeSettings):
    """Whether a model's stated reasoning carries its score."""

    cells: Annotated[int, Field(ge=1)] = 60
    """Number of cells, drawn by lot. Each has every intervention, and a control in which its own steps are put back."""
    interventions: Annotated[list[Kind], AfterValidator(_check_different)] = Field(["norms"], min_length=1)
    """What is changed: the norms become those of another recorded answer (`norms`) or are called wrong (`opposite`,
    also in cells without such an answer), the last steps are removed (`removed`), a mistake is added (`mistake`), the
    model itself restates the steps, in a question of its own (`paraphrase`), or dots take the place of all steps
    (`filler`)."""
    samples: Annotated[int, Field(ge=1)] = 1
    """Number of answers to each question. The share of cells that follow needs at least 3."""
    form: Literal["auto", "prefill", "notes"] = "auto"
    """How a model gets the steps: as the beginning of its answer (`prefill`), as notes in the question (`notes`), or
    the first where its provider allows that (`auto`)."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Sampling temperature. If not set: 0 with one sample, 0.7 with several."""
    max_tokens: Annotated[int, Field(ge=16)] = 400
    """Maximum length of an answer in tokens."""

    @property
    def used_temperature(self) -> float:
        """The temperature of all questions."""
        if self.temperature is not None:
            return self.temperature
        return 0.0 if self.samples == 1 else 0.7

    def check(self, config: AuditConfig) -> None:
        """Check that there is recorded reasoning to go on from.

        Raises:
            ValueError: the audit asks no direct question about a survey.
        """
        if config.survey is None:
            raise ValueError("probes.reasoning: needs a survey. How to fix: Add survey, or remove the probe.")
        if config.probes.direct is None:
            raise ValueError(
                "probes.reasoning: it changes recorded reasoning, and there is none without the probe direct. "
                "How to fix: Add direct = {} to [probes], or remove the probe reasoning."
            )
