from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import StorageError
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.sqlite_file import copy_database, find_unused_path
from tests.storage.test_database import save_sample_audit


def test_a_copy_of_a_database_in_use_is_complete(file_storage: str, tmp_path: Path) -> None:
    with open_database(file_storage) as db:
        audit = save_sample_audit(db)
        assert db.path is not None
        with db.read():  # an open reader keeps the writes in the WAL file
            copy_database(db.path, tmp_path / "copy.db")
        assert {p.name for p in tmp_path.glob("copy*")} == {"copy.db"}
        with open_database(f"sqlite:///{tmp_path / 'copy.db'}", create=False) as copy:
            assert audits.get_audit(copy, "a") == audit


def test_a_copy_never_overwrites_a_file(file_storage: str, tmp_path: Path) -> None:
    with open_database(file_storage) as db:
        assert db.path is not None
        with pytest.raises(StorageError, match="exists already"):
            copy_database(db.path, db.path)
        with pytest.raises(StorageError, match="cannot be copied"):
            copy_database(db.path, tmp_path / "none" / "copy.db")
        with pytest.raises(StorageError, match="cannot be copied"):
            copy_database(tmp_path / "none.db", tmp_path / "copy.db")
    assert list(tmp_path.glob("copy*")) == []


def test_a_damaged_database_gives_no_copy(file_storage: str, tmp_path: Path) -> None:
    with open_database(file_storage) as db:
        save_sample_audit(db)
        assert db.path is not None
        copy_database(db.path, tmp_path / "copy.db")
    content = bytearray((tmp_path / "copy.db").read_bytes())
    content[-2048:] = b"\xff" * 2048
    (tmp_path / "broken.db").write_bytes(content)
    with pytest.raises(StorageError, match=r"is incomplete|cannot be copied"):
        copy_database(tmp_path / "broken.db", tmp_path / "again.db")
    assert list(tmp_path.glob("again*")) == []


def test_unused_path_appends_the_next_number(tmp_path: Path) -> None:
    assert find_unused_path(tmp_path / "a.bak") == tmp_path / "a.bak"
    (tmp_path / "a.bak").touch()
    (tmp_path / "a.bak-2").touch()
    assert find_unused_path(tmp_path / "a.bak") == tmp_path / "a.bak-3"
