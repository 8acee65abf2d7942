"""Where results are: the option, the environment, the config, or beside the config."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from auditor.config import AuditConfig, load_config
from auditor.errors import ConfigError
from auditor.run.audit_handle import StorageLocation, locate_audit, locate_storage
from auditor.storage.database import STORAGE_VARIABLE, open_database, parse_sqlite_path

CONFIG = """
name = "mine"
{settings}
survey = {{ source = "wvs7-sample" }}
embedding = {{ model = "none" }}
judges = []
[[models]]
name = "m"
model = "embedded/smollm2-135m"
"""


def write_config(folder: Path, settings: str = "", name: str = "audit.toml") -> AuditConfig:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(CONFIG.format(settings=settings), encoding="utf-8")
    return load_config(folder / name)


def write_old_database(path: Path, audit: str) -> None:
    """A database whose tables may be of any version, with one audit."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE audit (name TEXT)")
        connection.execute("INSERT INTO audit VALUES (?)", [audit])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    working_folder = tmp_path / "here"
    working_folder.mkdir()
    monkeypatch.chdir(working_folder)
    return working_folder


def test_option_then_environment_then_config_then_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, configured = write_config(tmp_path / "there"), write_config(tmp_path / "set", 'storage = "sqlite:///s.db"')
    assert locate_storage(None, plain) == StorageLocation(f"sqlite:///{tmp_path / 'there' / 'auditor.db'}")
    assert locate_storage(None, configured) == StorageLocation(f"sqlite:///{tmp_path / 'set' / 's.db'}")
    assert locate_storage() == StorageLocation("sqlite:///auditor.db")
    monkeypatch.setenv(STORAGE_VARIABLE, "sqlite:///e.db")
    assert {locate_storage(None, config).url for config in (plain, configured, None)} == {"sqlite:///e.db"}
    assert {locate_storage("sqlite:///o.db", config).url for config in (plain, None)} == {"sqlite:///o.db"}


def test_paths_below_the_working_folder_are_short_and_absolute_ones_stay(folder: Path) -> None:
    assert locate_storage(None, write_config(folder)).url == "sqlite:///auditor.db"
    assert locate_storage(None, write_config(folder / "sub")).url == "sqlite:///sub/auditor.db"
    for name in ("a b%20c", "what?", "ü#é"):
        url = locate_storage(None, write_config(folder / name)).url
        assert parse_sqlite_path(url) == Path(name, "auditor.db")
    query = write_config(folder / "sub", 'storage = "sqlite:///s.db?timeout=5"')
    assert locate_storage(None, query).url == "sqlite:///sub/s.db?timeout=5"
    absolute = write_config(folder / "sub", f'storage = "sqlite:///{folder}/x.db"')
    assert locate_storage(None, absolute).url == f"sqlite:///{folder}/x.db"
    server = write_config(folder / "sub", 'storage = "postgresql+psycopg://localhost/audits"')
    assert locate_storage(None, server).url == "postgresql+psycopg://localhost/audits"
    without_file = write_config(folder / "sub").with_folder(None)
    assert locate_storage(None, without_file).url == "sqlite:///auditor.db"


def test_a_database_of_the_working_folder_with_the_audit_is_used_with_a_notice(tmp_path: Path, folder: Path) -> None:
    config = write_config(tmp_path / "there")
    expected = tmp_path / "there" / "auditor.db"
    write_old_database(folder / "auditor.db", "other")
    assert locate_storage(None, config) == StorageLocation(f"sqlite:///{expected}")
    (folder / "auditor.db").unlink()
    write_old_database(folder / "auditor.db", "mine")
    location = locate_storage(None, config)
    assert location.url == "sqlite:///auditor.db"
    assert location.notice == (
        "Using the database auditor.db in the working folder, which holds the audit 'mine', "
        f"not {expected}. To choose: --storage sqlite:///{expected}"
    )
    write_old_database(expected, "mine")
    assert f"although {expected} holds it too" in locate_storage(None, config).notice


def test_no_link_and_no_other_file_is_taken_for_a_database_of_the_audit(tmp_path: Path, folder: Path) -> None:
    config = write_config(tmp_path / "there")
    write_old_database(tmp_path / "elsewhere.db", "mine")
    (folder / "auditor.db").symlink_to(tmp_path / "elsewhere.db")
    assert not locate_storage(None, config).notice
    (folder / "auditor.db").unlink()
    (folder / "auditor.db").write_text("something else")
    assert not locate_storage(None, config).notice


def test_an_argument_is_a_name_or_the_path_of_a_config(tmp_path: Path, folder: Path) -> None:
    write_config(tmp_path / "there")
    location = StorageLocation(f"sqlite:///{tmp_path / 'there' / 'auditor.db'}")
    assert locate_audit(str(tmp_path / "there" / "audit.toml")) == ("mine", location)
    assert locate_audit("../there/audit.toml", "sqlite:///o.db") == ("mine", StorageLocation("sqlite:///o.db"))
    assert locate_audit("audit.toml") == ("audit.toml", StorageLocation("sqlite:///auditor.db"))
    write_config(folder)
    assert locate_audit("audit.toml") == ("mine", StorageLocation("sqlite:///auditor.db"))
    with pytest.raises(ConfigError, match=r"missing/audit\.toml"):
        locate_audit("missing/audit.toml")


def test_a_config_is_equal_wherever_its_file_is(tmp_path: Path) -> None:
    first, second = write_config(tmp_path / "a"), write_config(tmp_path / "b")
    assert first.hash == second.hash
    assert first.model_dump() == second.model_dump()


def test_a_database_knows_whether_it_is_new(folder: Path) -> None:
    for is_new in (True, False):
        with open_database("sqlite:///auditor.db") as db:
            assert db.is_new is is_new
