"""Mask the names of models and providers in the texts that a blind rater sees."""

from __future__ import annotations

from dataclasses import replace

from auditor.config import load_stored_config
from auditor.review.item import ReviewSide
from auditor.storage.audits import Audit


class AuthorMask:
    """Masks the names of an audit's models and of their providers."""

    def __init__(self, audit: Audit) -> None:
        config = load_stored_config(audit.config)
        self._models = [(model.name, model.model) for model in config.models] if config else []

    def preload(self) -> None:
        """Load the word lists for masking, so that the first conflict opens as fast as later ones."""
        self._mask("-")

    def blind_side(self, side: ReviewSide) -> ReviewSide:
        """Return the side with names masked in the texts of its samples."""
        return replace(side, samples=tuple(replace(sample, text=self._mask(sample.text)) for sample in side.samples))

    def _mask(self, text: str | None) -> str | None:
        """Mask names in a text; None stays None."""
        # Not at the top: it loads word lists, which would delay the first screen.
        from auditor.agents.blinding import author_names, mask_authors

        provider_names = [name for _, model in self._models for name in model.split("/")]
        return text and mask_authors(text, [*author_names(self._models), *provider_names])
