"""Settings of the probe `memory`: the table of that name under `[probes]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Self

from pydantic import Field

import auditor.probes as ap

MADE_UP, PEW = "made-up", "pew2013"
BUILT_IN_FIGURES = {
    MADE_UP: "the Survey of Imaginary Opinions",
    PEW: "the Pew Research Center’s Global Attitudes survey",
}
"""Names that `published` can have in place of a file, with the publication as prompts name it."""


class MemorySettings(ap.ProbeSettings):
    """Whether models know people or recite published figures: they are asked for figures of a publication."""

    published: str = PEW
    """Published figures: a file with the columns `country`, `topic`, `wave`, `statistic`, `value` and `decimals`;
    `pew2013`, the percentages of the built-in survey of that name; or `made-up`, figures that nobody has published,
    for simulated models."""
    publication: Annotated[str, Field(max_length=200)] = ""
    """Name of the publication, as models know it; by default the file's name without its suffix."""
    items: str | None = None
    """A file with the official wordings of questions, in the columns `topic` and `text`. Models are asked to continue
    the first half of each."""
    cells: Annotated[int, Field(ge=1)] = 60
    """Number of published figures that each model is asked for, each of another country and topic, drawn by lot."""
    made_up: Annotated[int, Field(ge=0)] = 10
    """Number of figures on topics that no survey has asked about, as a control."""
    max_tokens: Annotated[int, Field(ge=8)] = 60
    """Maximum length of an answer in tokens."""

    def resolve_paths(self, resolve: Callable[[str], str]) -> Self:
        """Resolve the paths of both files."""
        published = self.published if self.published in BUILT_IN_FIGURES else resolve(self.published)
        return self.model_copy(update={"published": published, "items": self.items and resolve(self.items)})
