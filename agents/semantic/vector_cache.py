"""Embeddings of texts, each made once: kept in the database by the hash of the text and of the encoder's weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.agents.run_context import TextEncoder
from auditor.storage import semantic_results
from auditor.storage.database import Database

TEXTS_PER_BLOCK = 256
"""Texts encoded between two reports of progress, and stored together."""


def text_hash(text: str) -> str:
    """SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class VectorCache:
    """Embeddings of texts by one encoder."""

    def __init__(self, db: Database, encoder: TextEncoder, on_embedded: Callable[[int], None] | None = None) -> None:
        """Look up, and embed what is missing.

        Args:
            db: where vectors are kept.
            encoder: makes those that are not.
            embedded: is told how many texts have been embedded since it was told last.
        """
        self._db = db
        self._encoder = encoder
        self._on_embedded = on_embedded or (lambda n: None)

    def embed(self, texts: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """Unit vectors by text; what is not known is embedded, texts of like length together."""
        asked = list(texts)
        by_hash = {text_hash(text): text for text in asked}
        known = semantic_results.load_vectors(self._db, self._encoder.revision, by_hash)
        missing = sorted((key for key in by_hash if key not in known), key=lambda key: (len(by_hash[key]), key))
        self._on_embedded(len(asked) - len(missing))
        for start in range(0, len(missing), TEXTS_PER_BLOCK):
            keys = missing[start : start + TEXTS_PER_BLOCK]
            made = dict(zip(keys, self._encoder.encode([by_hash[k] for k in keys]), strict=True))
            semantic_results.save_vectors(self._db, self._encoder.revision, made)
            known |= made
            self._on_embedded(len(keys))
        return {text: known[key] for key, text in by_hash.items()}


def stack_vectors(
    groups: Sequence[Sequence[str | None]], vectors: dict[str, NDArray[np.float32]], group_size: int
) -> NDArray[np.float32]:
    """Vectors of groups of texts, shape (groups, n, dimensions); nan where a text is missing."""
    dimensions = len(next(iter(vectors.values()))) if vectors else 1
    rows = np.full((len(groups), group_size, dimensions), np.nan, dtype=np.float32)
    for i, group in enumerate(groups):
        for j, text in enumerate(group):
            if text is not None:
                rows[i, j] = vectors[text]
    return rows
