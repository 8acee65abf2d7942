"""Files are written completely or not at all."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from auditor.atomic_files import (
    MANIFEST,
    make_folder,
    open_replacement,
    replace_folder,
    report_write_errors,
    write_atomically,
    write_files,
)
from auditor.errors import AuditorError, UsageError
from auditor.input_files import read_text, remember_inputs


def test_a_file_is_written_completely(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    write_atomically("neu ✓\n", path)
    assert path.read_bytes() == "neu ✓\n".encode()
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_atomically("half \ud800", path)
    assert path.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_the_file_has_the_default_permissions(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.touch()
    write_atomically("x", tmp_path / "report.md")
    assert stat.S_IMODE((tmp_path / "report.md").stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


@pytest.mark.parametrize("name", ["missing/report.html", ""])
def test_an_unwritable_path_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be written|a folder"):
        write_atomically("x", tmp_path / name)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_an_error_with_the_fix(tmp_path: Path, number: int) -> None:
    with (
        pytest.raises(AuditorError, match="Free space on the disk") as caught,
        report_write_errors(tmp_path / "a.parquet"),
    ):
        raise OSError(number, "a library's own words")
    assert caught.value.message == f"{tmp_path / 'a.parquet'}: cannot be written: {os.strerror(number)}."
    assert caught.value.exit_code == 1


def test_a_broken_pipe_is_not_reported_as_a_write_error() -> None:
    with pytest.raises(BrokenPipeError), report_write_errors("standard output"):
        raise BrokenPipeError


def test_a_name_of_255_bytes_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 252 + ".md")
    write_atomically("x", path)
    assert path.read_text(encoding="utf-8") == "x"


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        make_folder(tmp_path / "file" / "folder")


# --- what is not replaced ---------------------------------------------------------------------------------------

CONFIGURATION = 'name = "a"\n[[models]]\nname = "m"\nmodel = "openai/gpt-4o"\n'


def make_database(path: Path) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE a (b)")
    return path


@pytest.mark.parametrize("output", ["<!doctype html>", "# A page", '{"audit": 1}', "model,r\nm,1\n", b"PAR1x", b""])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("audit.toml", CONFIGURATION),
        ("survey.csv", "country,topic,score\nJapan,divorce,0.1\n"),
        ("survey.jsonl", '{"country": "Japan", "topic": "divorce", "score": 0.1}\n'),
        ("picture.png", "\x89PNG"),
    ],
)
def test_an_output_does_not_replace_a_file_of_another_kind(
    tmp_path: Path, name: str, content: str, output: str | bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(before := content.encode("latin-1"))
    with pytest.raises(UsageError, match="is not replaced"):
        write_atomically(output, path)
    with pytest.raises(UsageError, match="is not replaced"):
        write_files({tmp_path / "other.html": "<p>", path: output})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [name]


def test_several_files_are_all_replaced_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / name for name in ("a.html", "b.html", "c.html")]
    write_files(dict.fromkeys(paths, "<p>old"))
    written: list[int] = []

    def fill_disk(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", fill_disk)
    with pytest.raises(AuditorError, match="Free space on the disk"):
        write_files(dict.fromkeys(paths, "<p>new"))
    assert [path.read_text(encoding="utf-8") for path in paths] == ["<p>old"] * 3
    assert sorted(os.listdir(tmp_path)) == ["a.html", "b.html", "c.html"]


def test_a_file_without_the_mark_of_auditor_is_not_replaced(tmp_path: Path) -> None:
    paths = [tmp_path / "a.html", tmp_path / "b.html"]
    for content in ("<p>first</p><!-- mark -->", f"<p>{'x' * 200_000}</p><!-- mark -->", "<p>last</p><!-- mark -->"):
        write_files(dict.fromkeys(paths, content), dict.fromkeys(paths, "mark"))
    paths[1].write_text("<p>the user's</p>", encoding="utf-8")
    with pytest.raises(UsageError, match=r"b.html: is not recognized as a file of auditor"):
        write_files(dict.fromkeys(paths, "<p>new</p>"), dict.fromkeys(paths, "mark"))
    assert [path.read_text(encoding="utf-8") for path in paths] == ["<p>last</p><!-- mark -->", "<p>the user's</p>"]


def test_a_database_is_not_replaced_under_any_name_nor_by_a_link_to_it(tmp_path: Path) -> None:
    path = make_database(tmp_path / "report.html")
    before = path.read_bytes()
    (tmp_path / "linked.html").symlink_to(path)
    for name in ("report.html", "linked.html", "report.html-wal", "report.html.audit.lock"):
        with pytest.raises(UsageError, match="is not replaced"):
            write_atomically("<!doctype html>", tmp_path / name)
    with pytest.raises(UsageError, match="is not replaced"), open_replacement(path) as temporary_file:
        make_database(temporary_file)
    assert path.read_bytes() == before


def test_an_output_replaces_an_earlier_one_of_its_kind(tmp_path: Path) -> None:
    for name, old, new in (
        ("a.html", "<!doctype html>1", "<!DOCTYPE html>2"),
        ("a.csv", "model,r\nm,1\n", "model,r,p\n"),
        ("a.toml", CONFIGURATION, CONFIGURATION + "# changed\n"),
    ):
        write_atomically(old, tmp_path / name)
        write_atomically(new, tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == new


def test_what_a_command_has_read_it_does_not_replace(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Notes", encoding="utf-8")
    with remember_inputs():
        read_text(path, UsageError)
        with pytest.raises(UsageError, match="is an input of this command"):
            write_atomically("# Report", path)
    write_atomically("# Report", path)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious", encoding="utf-8")
    (tmp_path / "report.md").symlink_to(tmp_path / "precious")
    write_atomically("# Report", tmp_path / "report.md")
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "precious"
    assert not (tmp_path / "report.md").is_symlink()


def test_links_among_the_parents_are_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    write_atomically("# Report", tmp_path / "link" / "report.md")
    assert (tmp_path / "folder" / "report.md").is_file()


@pytest.mark.parametrize("is_library_output", [False, True])
def test_pipes_are_written_in_place(tmp_path: Path, *, is_library_output: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        reader = pool.submit((tmp_path / "pipe").read_text)
        if is_library_output:
            with open_replacement(tmp_path / "pipe") as temporary_file:
                temporary_file.write_text("# Report" * 100_000, encoding="utf-8")
        else:
            write_atomically("# Report" * 100_000, tmp_path / "pipe")
        assert reader.result() == "# Report" * 100_000
    assert (tmp_path / "pipe").is_fifo()


def test_devices_and_open_streams_are_written_in_place(tmp_path: Path) -> None:
    write_atomically("# Report", "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    code = "from auditor.atomic_files import write_atomically; write_atomically('# Report', '/dev/stdout')"
    with (tmp_path / "output").open("w") as output:
        subprocess.run([sys.executable, "-c", code], stdout=output, check=True)
    assert (tmp_path / "output").read_text(encoding="utf-8") == "# Report"
    assert os.path.islink("/dev/stdout")


@pytest.mark.parametrize("listed", ["auditor.db", "audit.toml"])
def test_a_strangers_manifest_deletes_no_database_and_no_configuration(tmp_path: Path, listed: str) -> None:
    make_database(tmp_path / "auditor.db")
    (tmp_path / "audit.toml").write_text(CONFIGURATION, encoding="utf-8")
    manifest = {"format": "f", "files": [{"file": listed}]}
    (tmp_path / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    before = (tmp_path / listed).read_bytes()
    with pytest.raises(UsageError, match="is not deleted"), replace_folder(tmp_path, "f") as folder:
        folder.write(MANIFEST, json.dumps(manifest))
    with pytest.raises(UsageError, match="is not replaced"), replace_folder(tmp_path, "f") as folder:
        folder.write(listed, "x")
    assert (tmp_path / listed).read_bytes() == before
