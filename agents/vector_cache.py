"""Embeddings of texts, each computed once for a database: by the hashes of the text and of the encoder's weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from auditor.agents.run_context import TextEncoder
from auditor.errors import RunInterrupted
from auditor.storage.database import Database
from auditor.storage.text_vectors import hash_text, load_vectors, save_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEXTS_PER_STEP = 128
"""Texts that are encoded and stored together: a multiple of what encoders take at once."""


class VectorCache:
    """Embeddings of texts by one encoder, which are stored in a database."""

    def __init__(
        self,
        db: Database,
        encoder: TextEncoder,
        on_embedded: Callable[[int], None] = lambda n: None,
        is_ending: Callable[[], bool] = lambda: False,
    ) -> None:
        """Set up the cache.

        Args:
            db: database in which vectors are stored.
            encoder: encodes texts that have no stored vector; its revision may be another one afterwards.
            on_embedded: called with the number of texts embedded since the last call.
            is_ending: whether the run ends, so that no further texts are encoded.
        """
        self._db, self._encoder, self._on_embedded, self._is_ending = db, encoder, on_embedded, is_ending

    @property
    def revision(self) -> str:
        """Identifies the encoder's weights."""
        return self._encoder.revision

    def embed(self, texts: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """Get unit vectors by text; those that are missing are computed and stored.

        Texts of about the same length are encoded together, the longest first: batches in the order of the texts took a
        tenth more CPU time, since an encoder fills up shorter texts, and with the shortest first it took 4% to 10%
        more, since each batch needed more memory than the last.

        Raises:
            RunInterrupted: the run ends.
        """
        listed = list(texts)
        text_by_hash = {hash_text(text): text for text in listed}
        revision = self._encoder.revision
        vectors = load_vectors(self._db, revision, text_by_hash)
        missing = sorted(text_by_hash.keys() - vectors.keys(), key=lambda key: (-len(text_by_hash[key]), key))
        self._on_embedded(len(listed) - len(missing))
        for start in range(0, len(missing), TEXTS_PER_STEP):
            if self._is_ending():
                raise RunInterrupted
            hashes = missing[start : start + TEXTS_PER_STEP]
            new_vectors = self._encoder.encode([text_by_hash[key] for key in hashes])
            if self._encoder.revision != revision:  # its weights turn out to be others than recorded
                return self.embed(text_by_hash.values())
            vectors |= save_vectors(self._db, revision, dict(zip(hashes, new_vectors, strict=True)))
            self._on_embedded(len(hashes))
        return {text: vectors[key] for key, text in text_by_hash.items()}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Do what `embed` does; shape (texts, dimensions)."""
        vectors = self.embed(texts)
        return np.array([vectors[text] for text in texts], dtype=np.float32)


class StoredVectors:
    """An encoder whose vectors are stored in the audit's database; it computes none."""

    def __init__(self, db: Database, revision: str, *, is_multilingual: bool | None = None) -> None:
        """Set up with the revision under which they are stored, and whether that encoder reads several languages."""
        self._db, self.revision, self.is_multilingual = db, revision, is_multilingual

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, shape (texts, dimensions); nan for a text that has none, or one that was damaged."""
        hashes = [hash_text(text) for text in texts]
        vectors = load_vectors(self._db, self.revision, dict.fromkeys(hashes))
        rows = np.full((len(texts), max(map(len, vectors.values()), default=1)), np.nan, dtype=np.float32)
        for row, text_hash in zip(rows, hashes, strict=True):
            vector = vectors.get(text_hash)
            if vector is not None and vector.shape == row.shape and np.isfinite(vector).all():
                row[:] = vector
        return rows
