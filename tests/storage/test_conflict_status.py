"""Conflict keys hide their models when printed."""

from __future__ import annotations

from auditor.storage.conflict_status import ConflictKey


def test_the_repr_of_a_key_hides_the_authors() -> None:
    assert "alder" not in f"{ConflictKey('Egypt', 'divorce', 'alder', 'birch')!r}"
