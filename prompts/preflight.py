"""The trace that judges are shown before a run, to find out in which form they can answer."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

from pydantic import BaseModel, ConfigDict

FILE_NAME = "preflight.toml"


class StandInTrace(BaseModel):
    """Contents of `preflight.toml`.

    Attributes:
        id, version: of the text; the version rises whenever it changes.
        text: the trace, as blinded ones are.
        score: the score that it ends with.
        answer: the answer that it ends with, in audits of a task.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    version: int
    text: str
    score: float
    answer: str


@functools.cache
def load_stand_in_trace() -> StandInTrace:
    """Load the trace, which is in English as all prompts of judges."""
    text = (resources.files("auditor.prompts") / "en" / FILE_NAME).read_text(encoding="utf-8")
    return StandInTrace.model_validate(tomllib.loads(text))
