"""The key of a conflict."""

from __future__ import annotations

from auditor.storage.conflict_status import ConflictKey


def test_a_key_keeps_its_authors_to_itself() -> None:
    assert "alder" not in f"{ConflictKey('Egypt', 'divorce', 'alder', 'birch')!r}"
