"""Embeddings of texts, which all audits of a database share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from auditor.storage import hash_chain
from auditor.storage.call_records import TextVector
from auditor.storage.database import Database
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.row_classes import insert_new, table_of


def hash_text(text: str) -> str:
    """SHA-256 of a text, in hex; lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def load_vectors(db: Database, revision: str, text_hashes: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Load embeddings by the SHA-256 of their text, shape (dimensions,); texts without a stored one are left out.

    Args:
        db: the database.
        revision: of the embedding model.
        text_hashes: SHA-256 of the texts.
    """
    c = table_of(TextVector).c
    vectors: dict[str, NDArray[np.float32]] = {}
    remaining_hashes = iter(text_hashes)
    with db.read() as connection:
        while chunk := list(islice(remaining_hashes, MAX_KEYS_PER_QUERY)):
            rows = connection.execute(sa.select(c.text, c["values"]).where(c.revision == revision, c.text.in_(chunk)))
            vectors.update((text, _read_values(values)) for text, values in rows)
    return vectors


def save_vectors(
    db: Database, revision: str, vectors: Mapping[str, NDArray[np.float32]]
) -> dict[str, NDArray[np.float32]]:
    """Store embeddings by the SHA-256 of their text, and return what is stored: an earlier one of a text is kept."""
    rows = {
        text_hash: {"revision": revision, "text": text_hash, "values": vector.astype("<f4").tobytes()}
        for text_hash, vector in vectors.items()
    }
    c = table_of(TextVector).c

    def job(connection: sa.Connection) -> dict[str, bytes]:
        query = sa.select(c.text, c["values"]).where(c.revision == revision, c.text.in_(list(rows)))
        stored: dict[str, bytes] = {text: values for text, values in connection.execute(query)}  # noqa: C416 - rows are no pairs for type checkers
        new_rows = [row for text_hash, row in rows.items() if text_hash not in stored]
        insert_new(connection, TextVector, new_rows)
        hash_chain.append_links(connection, {"vector": new_rows})
        return stored

    stored = {text_hash: _read_values(values) for text_hash, values in db.write(job).items()}
    return {text_hash: stored.get(text_hash, vector) for text_hash, vector in vectors.items()}


def _read_values(values: bytes) -> NDArray[np.float32]:
    """The numbers in some bytes; further bytes, which no program writes, are left out."""
    return np.frombuffer(values, dtype="<f4", count=len(values) // 4)
