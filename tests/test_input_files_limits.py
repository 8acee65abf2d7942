"""What a small file unpacks to is counted while it is read: a bomb ends with an error, soon and in little memory."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import openpyxl
import openpyxl.utils
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from auditor import input_files
from auditor.errors import ImportFileError
from auditor.imports.published import read_records
from auditor.input_files import (
    DEFAULT_LIMITS,
    LIMIT_OPTION,
    InputLimits,
    get_limits,
    open_text,
    read_numbered_lines,
    read_text,
    set_limit_factor,
)
from auditor.packed_files import ZSTANDARD_METHOD, check_archive, iterate_parquet
from auditor.surveys.column_reader import read_columns
from auditor.surveys.row_reader import read_rows
from tests.support.cli_runner import auditor, succeed

COLUMNS = ("model", "country", "topic", "sample", "text")
HEADER = json.dumps({"version": 2, "eval": {}})
MAX_CPU_S, MAX_MEMORY_BYTES = 10, 1_000_000_000
# Runs commands one after another, and measures each: its exit code, seconds of the processor, peak memory and messages.
MEASURE = """\
import contextlib, gc, io, json, sys, time
from auditor.__main__ import main
commands, sys.stdin = sys.stdin, io.StringIO()
for line in commands:
    sys.argv = json.loads(line)
    gc.collect()
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts again
    messages, begin = io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(messages):
        try:
            main()
        except SystemExit as ended:
            exit_code = ended.code
    used_s = time.process_time() - begin
    with open("/proc/self/status") as status:
        [peak_kb] = [int(line.split()[1]) for line in status if line.startswith("VmHWM:")]
    print(json.dumps([exit_code, used_s, peak_kb, messages.getvalue()]), flush=True)
"""
MEGABYTE = b" " * (1 << 20)
SMALL_LIMITS = InputLimits(
    unpacked_bytes=40_000_000, member_bytes=1_000_000, ratio=50, members=3, columns=8, json_values=100
)


@pytest.fixture(scope="module")
def measured_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """A process that runs and measures the commands that are written to it."""
    folder = tmp_path_factory.mktemp("bombs")
    with subprocess.Popen(
        [sys.executable, "-c", MEASURE], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test reaches soon."""
    monkeypatch.setattr(input_files, "DEFAULT_LIMITS", SMALL_LIMITS)
    monkeypatch.setattr(input_files, "MAX_WHOLE_FILE_BYTES", SMALL_LIMITS.member_bytes)


def deflate_repeated(n_megabytes: int) -> bytes:
    """A raw deflate stream of so many megabytes of spaces: one packed block, repeated."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * n_megabytes + b"\x03\0"


def write_archive(path: Path, n_megabytes: int, name: str = "header.json", stated_size: int | None = None) -> Path:
    """Write a ZIP archive whose only member unpacks to so many megabytes, and states a size."""
    packed = deflate_repeated(n_megabytes)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(name, packed)
    content = path.read_bytes()
    size = (n_megabytes << 20) if stated_size is None else stated_size
    for signature, method, sizes in ((b"PK\x03\x04", 8, 18), (b"PK\x01\x02", 10, 20)):
        start = content.index(signature) if signature == b"PK\x03\x04" else content.rindex(signature)
        content = content[: start + method] + b"\x08\0" + content[start + method + 2 :]
        unpacked = start + sizes + 4
        content = content[:unpacked] + (size & 0xFFFFFFFF).to_bytes(4, "little") + content[unpacked + 4 :]
    path.write_bytes(content)
    return path


def write_gzip(path: Path, n_megabytes: int) -> Path:
    path.write_bytes(gzip.compress(MEGABYTE) * n_megabytes)
    return path


def read_lines(path: Path) -> None:
    with open_text(path, ImportFileError) as file:
        while file.read(1 << 16):
            pass


def write_repeated_text(path: Path, n_characters: int, n_rows: int) -> Path:
    """A Parquet file in which all rows have the same long text, stored once."""
    texts = pa.array(["x" * n_characters])
    column = pa.DictionaryArray.from_arrays(pa.array([0] * n_rows, pa.int32()), texts)
    others = {name: pa.array(["1"] * n_rows) for name in COLUMNS[:-1]}
    pq.write_table(pa.table({**others, "text": column}), path)
    return path


def test_the_limits_are_the_documented_ones() -> None:
    assert get_limits() == DEFAULT_LIMITS == InputLimits(10**9, 64 * 10**6, 200, 100_000, 10_000, 5_000_000, 20_000_000)


@pytest.mark.parametrize(
    ("write", "limit"),
    [
        (lambda path: write_archive(path / "a.eval", 3 << 10), "more than 1 GB"),
        (lambda path: write_archive(path / "a.eval", 100), "more than 200 times its size"),
        (lambda path: write_archive(path / "a.eval", 70, stated_size=10), "more than 200 times its size"),
        (lambda path: write_repeated_text(path / "a.parquet", 1_000_000, 100_000), "more than 1 GB"),
        (lambda path: write_wide_csv(path / "a.csv", 200_000), "more than 10,000 columns"),
        (lambda path: write_text(path / "a.csv", "," * 60_000_000), "more than 10,000 columns"),
        (lambda path: write_repeated_rows(path / "a.csv.gz", 150_000_000), "more than 200 times its size"),
        (lambda path: write_sparse_sheet(path / "a.xlsx", 9_990, 60_000), "more than 20,000,000 cells"),
        (lambda path: write_sparse_sheet(path / "a.xlsx", 16_000, 9), "more than 10,000 columns"),
        (lambda path: write_sparse_sheet(path / "a.xlsx", 16_384, 1, first_row=1_048_576), "more than 10,000 columns"),
        (lambda path: write_archive(path / "a.xlsx", 3 << 10, "xl/worksheets/sheet1.xml"), "more than 1 GB"),
        (lambda path: write_text(path / "a.json", "[" + "[]," * 6_000_000 + "0]"), "more than 5,000,000 values"),
    ],
)
def test_a_bomb_ends_soon_in_little_memory(
    measured_commands: subprocess.Popen[str], tmp_path: Path, write: Callable[[Path], Path], limit: str
) -> None:
    """The time is the processor's, so that the test does not depend on other programs."""
    path = write(tmp_path)
    words = ["auditor", "import", "traces", str(path), "--survey", "wvs7-sample", "--audit", "a"]
    assert measured_commands.stdin is not None
    assert measured_commands.stdout is not None
    measured_commands.stdin.write(json.dumps(words) + "\n")
    measured_commands.stdin.flush()
    exit_code, cpu_s, memory_kb, message = json.loads(measured_commands.stdout.readline())
    assert exit_code == 1
    assert message.startswith(f"auditor: {path}: ")
    assert limit in message
    assert LIMIT_OPTION in message
    assert cpu_s < MAX_CPU_S
    assert memory_kb * 1024 < MAX_MEMORY_BYTES


def write_repeated_rows(path: Path, n_bytes: int) -> Path:
    """A packed table of one row, repeated."""
    header, row = f"{','.join(COLUMNS)}\n".encode(), b"m,Japan,divorce,1,SCORE = 0.5\n" * 100_000
    path.write_bytes(gzip.compress(header) + gzip.compress(row) * (n_bytes // len(row)))
    return path


def write_sparse_sheet(path: Path, column: int, n_rows: int, first_row: int = 2) -> Path:
    """A spreadsheet whose rows, the header apart, have one cell each, in a column far to the right."""
    workbook = openpyxl.Workbook()
    workbook.active.append(COLUMNS)
    workbook.save(path)
    name = openpyxl.utils.get_column_letter(column)
    with zipfile.ZipFile(path) as source:
        members = {member: source.read(member) for member in source.namelist()}
    sheet = members["xl/worksheets/sheet1.xml"].decode()
    rows = "".join(f'<row r="{n}"><c r="{name}{n}"><v>1</v></c></row>' for n in range(first_row, first_row + n_rows))
    members["xl/worksheets/sheet1.xml"] = sheet.replace("</sheetData>", f"{rows}</sheetData>").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for member, content in members.items():
            target.writestr(member, content)
    return path


def write_text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def write_wide_csv(path: Path, n_columns: int) -> Path:
    header = ",".join([*COLUMNS, *(f"c{number}" for number in range(n_columns - len(COLUMNS)))])
    return write_text(path, f"{header}\nm,Japan,divorce,1,x{',' * (n_columns - len(COLUMNS))}\n")


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(
    ("write", "read", "limit"),
    [
        (lambda p: write_gzip(p / "a.csv.gz", 20), read_lines, "more than 50 times its size"),
        (lambda p: write_gzip(p / "a.json.gz", 2), lambda p: read_text(p, ImportFileError), "more than 1 MB"),
        (lambda p: write_text(p / "a.json", " " * 1_000_001), lambda p: read_text(p, ImportFileError), "than 1 MB"),
        (lambda p: write_text(p / "a.csv", "x" * 1_000_001), lambda p: list(read_rows(p, COLUMNS)), "a line of more"),
        (lambda p: write_wide_csv(p / "a.csv", 9), lambda p: list(read_rows(p, COLUMNS)), "more than 8 columns"),
        (lambda p: write_wide_csv(p / "a.csv", 9), lambda p: read_columns(p, [["country"]]), "more than 8 columns"),
        (lambda p: write_text(p / "a.jsonl", json.dumps({f"c{number}": 1 for number in range(9)})),
         lambda p: list(read_rows(p, ["c1"])), "more than 8 columns"),
        (lambda p: write_text(p / "a.json", "[" * 10 + "0," * 91), lambda p: list(read_records(p)),
         "than 100 values"),
        (lambda p: write_text(p / "a.jsonl", "x" * 1_000_001),
         lambda p: list(read_numbered_lines(p, ImportFileError)), "a line of more than 1 MB"),
        (lambda p: write_repeated_text(p / "a.parquet", 1_000, 20_000),
         lambda p: list(iterate_parquet(p, ImportFileError)), "more than 50 times its size"),
    ],
)  # fmt: skip
def test_each_limit_is_named_with_the_option_that_raises_it(
    tmp_path: Path, write: Callable[[Path], Path], read: Callable[[Path], object], limit: str
) -> None:
    with pytest.raises(ImportFileError, match=limit) as caught:
        read(write(tmp_path))
    assert LIMIT_OPTION in caught.value.how_to_fix


@pytest.mark.usefixtures("small_limits")
def test_an_archive_is_measured_before_it_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(4):
            archive.writestr(str(number), "")
    with pytest.raises(ImportFileError, match="more than 3 files in it"):
        check_archive(tmp_path / "many.zip", ImportFileError)
    with pytest.raises(ImportFileError, match="a file of more than 1 MB in it"):
        check_archive(write_archive(tmp_path / "whole.zip", 2), ImportFileError)
    check_archive(tmp_path / "whole.zip", ImportFileError, is_streamed=lambda name: name == "header.json")
    with pytest.raises(ImportFileError, match="states a wrong size of a file in it"):
        check_archive(write_archive(tmp_path / "wrong.zip", 1, stated_size=5), ImportFileError, is_streamed=bool)


def test_members_packed_by_inspect_are_measured(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    pytest.importorskip("inspect_ai.log")  # lets zipfile write Zstandard
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w", ZSTANDARD_METHOD) as archive:
        archive.writestr("header.json", b" " * 100_000)
    check_archive(path, ImportFileError)
    packed = zstandard.ZstdCompressor().compress(MEGABYTE * 70)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("header.json", packed)
    content = path.read_bytes()
    for signature, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = content.rindex(signature)
        content = content[: start + method] + b"\x5d\0" + content[start + method + 2 :]
    path.write_bytes(content)
    with pytest.raises(ImportFileError, match="200 times its size"):
        check_archive(path, ImportFileError)


@pytest.mark.parametrize("content", [b"PK\x03\x04 not really", b"", b"\x1f\x8b" + b"x" * 40])
def test_a_damaged_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    (tmp_path / "a.csv.gz").write_bytes(content + b"x")
    with pytest.raises(ImportFileError, match="is not a valid ZIP archive"):
        check_archive(tmp_path / "a.zip", ImportFileError)
    with pytest.raises(ImportFileError, match="is not a complete gzip file"):
        read_lines(tmp_path / "a.csv.gz")


@pytest.mark.usefixtures("small_limits")
def test_the_option_raises_all_limits_wherever_it_stands(tmp_path: Path) -> None:
    write_wide_csv(tmp_path / "a.csv", 9)
    command = ["import", "traces", "a.csv", "--survey", "wvs7-sample", "--audit", "a"]
    refused = auditor(*command, cwd=tmp_path)
    option = refused.stderr.rsplit(": ", 1)[1].strip().rstrip(".").split()
    assert option == [LIMIT_OPTION, "2"]
    succeed(*command, *option, cwd=tmp_path)
    succeed(f"{LIMIT_OPTION}=2", *command, cwd=tmp_path)
    assert auditor(*command, cwd=tmp_path).returncode == 1
    assert "must be" in auditor(*command, LIMIT_OPTION, "0.5", cwd=tmp_path).stderr.replace("is not in", "must be")


def test_a_factor_below_one_does_not_lower_the_limits() -> None:
    set_limit_factor(0.1)
    assert get_limits() == DEFAULT_LIMITS


@pytest.mark.parametrize("suffix", [".sav", ".zsav", ".dta"])
def test_rows_of_statistics_programs_are_limited(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / f"a{suffix}"
    frame = pd.DataFrame({"country": [392.0] * 100})
    if suffix == ".dta":
        pyreadstat.write_dta(frame, str(path))
    else:
        pyreadstat.write_sav(frame, str(path), compress=suffix == ".zsav")
    assert read_columns(path, [["country"]])[0].value_index.size == 100
    monkeypatch.setattr(input_files, "DEFAULT_LIMITS", InputLimits(unpacked_bytes=32 * 99))
    with pytest.raises(ImportFileError, match="has more than 99 rows") as caught:
        read_columns(path, [["country"]])
    assert LIMIT_OPTION in caught.value.how_to_fix
