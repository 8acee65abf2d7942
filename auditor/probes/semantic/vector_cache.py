"""Embeddings of texts, cached in the database by the hash of the text and of the encoder's weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.agents.run_context import TextEncoder
from auditor.storage import text_vectors
from auditor.storage.database import Database

TEXTS_PER_BLOCK = 256
"""Number of texts that are encoded and stored together, with one report of progress."""


def text_hash(text: str) -> str:
    """SHA-256 of a text, in hex; lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class VectorCache:
    """Embeddings of texts by one encoder."""

    def __init__(self, db: Database, encoder: TextEncoder, on_embedded: Callable[[int], None] | None = None) -> None:
        """Set up the cache.

        Args:
            db: database in which vectors are stored.
            encoder: encoder for texts that have no stored vector.
            on_embedded: called with the number of texts embedded since the last call.
        """
        self._db = db
        self._encoder = encoder
        self._on_embedded = on_embedded or (lambda n: None)

    def embed(self, texts: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """Get unit vectors by text; missing ones are computed, in blocks of texts of similar length, and stored."""
        text_list = list(texts)
        text_by_hash = {text_hash(text): text for text in text_list}
        vectors_by_hash = text_vectors.load_vectors(self._db, self._encoder.revision, text_by_hash)
        missing_hashes = sorted(
            (key for key in text_by_hash if key not in vectors_by_hash), key=lambda key: (len(text_by_hash[key]), key)
        )
        self._on_embedded(len(text_list) - len(missing_hashes))
        for start in range(0, len(missing_hashes), TEXTS_PER_BLOCK):
            keys = missing_hashes[start : start + TEXTS_PER_BLOCK]
            new_vectors = dict(zip(keys, self._encoder.encode([text_by_hash[key] for key in keys]), strict=True))
            text_vectors.save_vectors(self._db, self._encoder.revision, new_vectors)
            vectors_by_hash |= new_vectors
            self._on_embedded(len(keys))
        return {text: vectors_by_hash[key] for key, text in text_by_hash.items()}


def stack_vectors(
    groups: Sequence[Sequence[str | None]], vectors: dict[str, NDArray[np.float32]], group_size: int
) -> NDArray[np.float32]:
    """Stack the vectors of groups of texts into shape (groups, group_size, dimensions); nan for missing texts."""
    dimensions = len(next(iter(vectors.values()))) if vectors else 1
    rows = np.full((len(groups), group_size, dimensions), np.nan, dtype=np.float32)
    for i, group in enumerate(groups):
        for j, text in enumerate(group):
            if text is not None:
                rows[i, j] = vectors[text]
    return rows
