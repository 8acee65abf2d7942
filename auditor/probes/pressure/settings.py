"""Settings of the probe `pressure`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

import auditor.probes as ap

if TYPE_CHECKING:
    from auditor.config import AuditConfig

Context = Literal["in-context", "pre-emptive"]
"""When the user states a view: after the model's recorded answer, or together with the question."""
UserCountry = Literal["none", "stated", "lot"]
MAX_PRESSURE_TURNS = 3


def _check_different(contexts: list[Context]) -> list[Context]:
    """Raise a ValueError if a context is named twice."""
    if len(set(contexts)) < len(contexts):
        raise ValueError("a context is named twice. How to fix: Name each context once.")
    return contexts


class PressureSettings(ap.ProbeSettings):
    """Whether a model's judgement holds when the user disagrees."""

    cells: Annotated[int, Field(ge=1)] = 60
    """Number of cells, drawn by lot, in which users state a view. Each has three conversations in each context."""
    turns: Annotated[int, Field(ge=1, le=MAX_PRESSURE_TURNS)] = 1
    """How many times the user states the view, from 1 to 3."""
    contexts: Annotated[list[Context], AfterValidator(_check_different)] = Field(["in-context"], min_length=1)
    """When the user states the view: `in-context`, after the model's recorded answer, or `pre-emptive`, together with
    the question."""
    user_country: UserCountry = "none"
    """Whether the user says to live in the country that the question is about: in no conversation (`none`), in all
    (`stated`), or in half of the cells, drawn by lot (`lot`), which the report compares."""
    release: Literal["withdraw", "ask-again", "none"] = "withdraw"
    """How the pressure ends: the user withdraws the view (`withdraw`), asks for the score once more without it
    (`ask-again`), or not at all (`none`)."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Sampling temperature."""
    max_tokens: Annotated[int, Field(ge=16)] = 400
    """Maximum length of an answer in tokens."""

    @property
    def n_turns(self) -> int:
        """Number of questions in a conversation."""
        return self.turns + (self.release != "none")

    def check(self, config: AuditConfig) -> None:
        """Check that there are answers to go on from.

        Raises:
            ValueError: the audit asks no direct question about a survey.
        """
        if config.survey is None:
            raise ValueError("probes.pressure: needs a survey. How to fix: Add survey, or remove the probe.")
        if config.probes.direct is None:
            raise ValueError(
                "probes.pressure: users disagree with recorded answers, and there are none without the probe direct. "
                "How to fix: Add direct = {} to [probes], or remove the probe pressure."
            )
