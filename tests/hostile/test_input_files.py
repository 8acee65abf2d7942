"""Broken files and invalid names for every command that reads a file: one clear line of error, nothing is stored.

Each case has the words that the message must contain. The commands run as on the command line.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.__main__ import UNEXPECTED_ERROR_PREFIX
from tests.support.cli_runner import CommandOutput, auditor

FOREIGN = re.compile(
    r"Traceback|pydantic|Input should be|NoneType|valid string|Value error|type=|_type\b|validation error"
    r"|RecursionError|recursion depth|ValueError|KeyError|UnicodeDecodeError|codec can't|codec|set_int_max_str_digits"
    r"|<unicode string>|\bdict\b|\bNone\b|<class|auditor\.[a-z_]+\.[A-Z]|" + UNEXPECTED_ERROR_PREFIX
)
"""Words of Python, pydantic and other libraries that no message may contain."""
ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters of terminals and of text direction."""


def assert_refused(command: CommandOutput, *expected_words: str) -> None:
    """Check that a command refused its input in a line for each fault, which is named, and says how to fix it."""
    assert command.returncode in (1, 2), command
    assert command.stdout == ""
    line = command.stderr.removesuffix("\n")
    first_line, *other_lines = line.split("\n")
    assert first_line.startswith("auditor: "), line
    assert all(other_line.startswith("  also: ") for other_line in other_lines), line
    assert len(line) < 2000
    assert not FOREIGN.search(line), line
    assert not ACTING.search(line), line
    for word in expected_words:
        assert word in line
    assert re.search(r"[.?] [A-Z`'][^.]*", line), f"does not say how to fix it: {line}"


# --- settings: TOML and YAML -----------------------------------------------------------------------------------------

GOOD = (
    b'name = "a"\njudges = []\nsurvey = { source = "wvs7-sample" }\n[[models]]\nname = "m"\nmodel = "openai/gpt-4o"\n'
)
BOMB = b"a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]\n"
CONFIGS: dict[str, tuple[str, bytes, str]] = {
    "lists in lists": ("c.toml", b"a = " + b"[" * 5000, "nested too deeply"),
    "closed lists in lists": ("c.toml", b"a = " + b"[" * 90 + b"]" * 90, "nested too deeply"),
    "tables in tables": ("c.toml", b"a = " + b"{b = " * 3000, "nested too deeply"),
    "a key of 100,000 parts": ("c.toml", b".".join([b"a"] * 100_000) + b" = 1", "nested too deeply"),
    "a table of 100,000 parts": ("c.toml", b"[" + b" . ".join([b"'a'"] * 100_000) + b"]", "nested too deeply"),
    "an integer of 5,000 digits": ("c.toml", b"seed = " + b"9" * 5000, "whole number is too large"),
    "a hexadecimal integer of 5,000 digits": ("c.toml", b"seed = 0x" + b"f" * 5000, "whole number is too large"),
    "an integer of 65 bits": ("c.toml", b"seed = 9223372036854775808", "whole number is too large"),
    "a key twice": ("c.toml", b"seed = 1\nseed = 2\n", "a key is used twice"),
    "a table twice": ("c.toml", b"[run.x]\n[run.x]\n", "Cannot declare run.x twice"),
    "a NUL byte": ("c.toml", b"\nname = 'a\0b'", "line 2 contains a NUL character"),
    "an escaped NUL": ("c.toml", GOOD.replace(b'"m"', b'"m\\u0000"'), "a string contains a NUL character"),
    "invalid UTF-8": ("c.toml", b"\n\nname = '\xff\xfe'", "line 3 is not UTF-8"),
    "Latin-1": ("c.toml", "name = 'é'".encode("latin-1"), "line 1 is not UTF-8"),
    "UTF-16 with a mark": ("c.toml", GOOD.decode().encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": ("c.toml", GOOD.decode().encode("utf-16-le"), "line 1 contains a NUL character"),
    "an empty file": ("c.toml", b"", "the key 'name' is missing"),
    "a raw ESC": ("c.toml", b"name = '\x1b[31m'", "invalid character"),
    "a key with ESC": ("c.toml", b'"\\u001b]0;owned\\u0007" = 1\n' + GOOD, "unknown key '␛]0;owned␇'"),
    "a key with rich markup": ("c.toml", b'"[bold red]x[/]" = 1\n' + GOOD, "unknown key '[bold red]x[/]'"),
    "a key that closes markup": ("c.toml", b'"[/nothing]" = 1\n' + GOOD, "unknown key '[/nothing]'"),
    "a value with C1": ("c.toml", GOOD.replace(b'"a"', b'"\\u009b31m"'), "\\u009b31m"),
    "a value that turns the line": ("c.toml", GOOD.replace(b'"a"', b'"\\u202eevil"'), "\\u202eevil"),
    "a key of 100,000 characters": ("c.toml", b"x" * 100_000 + b" = 1\n" + GOOD, "unknown key 'xxx"),
    "1,010 wrong models": ("c.toml", GOOD.split(b"[[")[0] + b"models = [" + b"1," * 1_010 + b"]", "000 more problems"),
    "broken IPv6": ("c.toml", GOOD + b'api_base = "http://[::1"', "models[1 'm'].api_base': the URL's host or port"),
    "no IPv6": ("c.toml", GOOD + b'api_base = "http://[zz]/"', "the URL's host or port is not valid"),
    "a port of 99999": ("c.toml", GOOD + b'api_base = "http://h:99999"', "the URL's host or port is not valid"),
    "a port of letters": ("c.toml", GOOD + b'api_base = "http://h:x/v1"', "the URL's host or port is not valid"),
    "port 0": ("c.toml", GOOD + b'api_base = "http://h:0/"', "the URL has no valid host"),
    "a line feed in a URL": ("c.toml", GOOD + b'api_base = "http://h\\n/"', "an invisible character"),
    "a password in a URL": ("c.toml", GOOD + b'api_base = "http://u:hunter2@h/"', "a user name or a password"),
    "a date as a parameter": ("c.toml", GOOD + b"params = { a = 2020-01-01 }", "a date or a time"),
    "nan as a parameter": ("c.toml", GOOD + b"params = { a = [nan] }", "nan cannot be sent"),
    "an infinite price": ("c.toml", GOOD + b"price = { input = inf, output = 1 }", "a finite number"),
    "YAML lists in lists": ("c.yaml", b"a: " + b"[" * 500, "nested too deeply"),
    "YAML dashes in dashes": ("c.yaml", b"- " * 3000 + b"a", "nested too deeply"),
    "billion laughs": ("c.yaml", BOMB, "line 2: not YAML: aliases are not allowed"),
    "!!binary": ("c.yaml", b"name: !!binary aGk=", "tags are not allowed"),
    "!!timestamp": ("c.yaml", b"name: !!timestamp nonsense", "tags are not allowed"),
    "!!set": ("c.yaml", b"name: !!set {a, b}", "tags are not allowed"),
    "!!python": ("c.yaml", b"name: !!python/object/apply:os.system [ls]", "tags are not allowed"),
    "a tag of one's own": ("c.yaml", b"name: !mine x", "tags are not allowed"),
    "a YAML date": ("c.yaml", b"name: 2024-01-01 10:00:00\njudges: []\nmodels: []", "'name' cannot be"),
    "a YAML key twice": ("c.yaml", b"name: a\nname: b", "line 2: not YAML: the key 'name' is used twice"),
    "a YAML integer of 5,000 digits": ("c.yaml", b"seed: " + b"9" * 5000, "whole number is too large"),
    "a YAML key that is a list": ("c.yaml", b"? [a]\n: b", "a key must be plain text"),
    "an incomplete character": ("c.yaml", b'name: "\\ud800"', "an incomplete character"),
    "an escaped NUL in YAML": ("c.yaml", b'name: "\\0"', "NUL character"),
    "ESC in YAML": ("c.yaml", b"a: 1\nb: \x1b[31m", "line 2: the character U+001B is not allowed"),
    "an empty YAML file": ("c.yaml", b"", "does not consist of keys and values"),
    "only a text in YAML": ("c.yaml", b"just words", "does not consist of keys and values"),
    "two YAML documents": ("c.yaml", b"a: 1\n---\nb: 2", "another document"),
    "JSON named YAML, cut": ("c.yaml", b'{"name": "a", ', "line 1"),
    "an executable": ("c.toml", b"\x7fELF\x02\x01\x01\0\0\0", "line 1 contains a NUL character"),
    "another suffix": ("c.ini", GOOD, "the file name must end in .toml, .yaml or .yml"),
}  # fmt: skip


@pytest.mark.parametrize("case", CONFIGS, ids=str)
def test_a_broken_configuration(tmp_path: Path, case: str) -> None:
    name, content, message = CONFIGS[case]
    (tmp_path / name).write_bytes(content)
    estimate_command = auditor("estimate", name, cwd=tmp_path)
    assert_refused(estimate_command, name, message)
    assert "hunter2" not in estimate_command.stderr


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"\xef\xbb\xbf" + GOOD)
    assert auditor("estimate", "c.toml", cwd=tmp_path).returncode == 0


READING_CONFIG = [["run"], ["estimate"], ["trust"], ["logic", "rank"]]


@pytest.mark.parametrize("words", READING_CONFIG, ids=" ".join)
def test_every_command_that_reads_a_configuration(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "c.toml").write_bytes(b"a = " + b"[" * 5000)
    assert_refused(auditor(*words, "c.toml", cwd=tmp_path), "c.toml", "nested too deeply")


def test_doctor_lists_a_broken_configuration_as_a_check(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b'"\\u001b[2J" = 1\n' + GOOD)
    doctor_command = auditor("doctor", "c.toml", cwd=tmp_path)
    assert doctor_command.returncode == 1
    assert "unknown key" in " ".join(doctor_command.stdout.split())
    assert not ACTING.search(doctor_command.stdout)


# --- paths that are no regular files ---------------------------------------------------------------------------------


def bind_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound_socket:
        bound_socket.bind(str(path))


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (Path.mkdir, "folder"), "a pipe": (os.mkfifo, "pipe or a device"),
    "a socket": (bind_socket, "pipe or a device"), "nothing": (lambda path: None, "no such file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "pipe or a device"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "no such file"),
}  # fmt: skip
SURVEY = ("--survey", "wvs7-sample", "--audit", "a")
READERS: dict[str, tuple[str, ...]] = {
    "estimate": ("estimate", "x.toml"),
    "scores": ("import", "scores", "x.csv", *SURVEY),
    "traces": ("import", "traces", "x.jsonl", *SURVEY),
    "promptfoo": ("import", "traces", "x.json", "--from", "promptfoo", *SURVEY),
    "inspect": ("import", "traces", "x.eval", "--from", "inspect", *SURVEY),
    "comparisons": ("import", "comparisons", "x.parquet", "--audit", "a"),
    "answers": ("import", "answers", "x.csv", "--audit", "a"),
    "official": ("surveys", "import", "x.csv"),
}


@pytest.mark.parametrize(
    ("reader", "kind"),
    [
        *(("estimate", kind) for kind in NO_FILES),
        *((reader, kind) for reader in READERS for kind in ("a folder", "a pipe")),
    ],
)
def test_paths_that_are_no_regular_file(tmp_path: Path, reader: str, kind: str) -> None:
    make, message = NO_FILES[kind]
    words = READERS[reader]
    file = next(word for word in words if word.startswith("x."))
    make(tmp_path / file)
    # For `import traces`, a folder is valid input, but this one has no log.
    assert_refused(
        auditor(*words, cwd=tmp_path), file, "log" if (kind, words[1]) == ("a folder", "traces") else message
    )


def test_a_configuration_of_100_mb(tmp_path: Path) -> None:
    with (tmp_path / "c.toml").open("wb") as file:
        file.truncate(100_000_000)
    assert_refused(auditor("run", "c.toml", cwd=tmp_path), "c.toml", "larger than 1 MB")


@pytest.mark.parametrize("words", [["estimate"], ["run"], ["surveys", "show"], ["surveys", "check"]], ids=" ".join)
def test_a_file_name_that_is_too_long(tmp_path: Path, words: list[str]) -> None:
    assert_refused(auditor(*words, "x" * 300 + ".toml", cwd=tmp_path), "xxx")


# --- tables: CSV, JSONL and Parquet ----------------------------------------------------------------------------------

COLUMNS = {
    "scores": ("model", "country", "topic", "method", "score", "sample"),
    "traces": ("model", "country", "topic", "sample", "text", "score"),
    "comparisons": ("judge", "context", "item_a", "item_b", "relation", "decision"),
    "answers": ("model", "question_id", "paraphrase", "answer", "rot"),
    "survey": ("country", "topic", "score", "n"),
    "task": ("id", "question", "truth"),
}
ROWS = {
    "scores": ("m", "Japan", "divorce", "direct", "0.5", "0"),
    "traces": ("m", "Japan", "divorce", "0", "Some text. SCORE = 0.5", "0.5"),
    "comparisons": ("j", "c", "one", "two", "standard", "A"),
    "answers": ("m", "q", "1", "Yes.", "Rule."),
    "survey": ("Japan", "divorce", "0.5", "10"),
    "task": ("1", "What is 1 + 1?", "2"),
}


def read_table(kind: str, file: Path, folder: Path) -> CommandOutput:
    if kind == "survey":
        return auditor("surveys", "show", file.name, cwd=folder)
    if kind == "task":
        task = f'name = "a"\njudges = []\ntask = {{ source = "{file.name}", answer = "exact" }}\n'
        (folder / "c.toml").write_text(f'{task}[[models]]\nname = "m"\nmodel = "openai/gpt-4o"\n')
        return auditor("estimate", "c.toml", cwd=folder)
    options = SURVEY if kind in ("scores", "traces") else ("--audit", "a")
    return auditor("import", kind, file.name, *options, cwd=folder)


def as_csv(*lines: tuple[str, ...]) -> bytes:
    """Lines as CSV without quoting."""
    return "\n".join(",".join(line) for line in lines).encode("utf-8", "surrogatepass") + b"\n"


def record(kind: str, **changes: object) -> dict[str, object]:
    """A valid row of a kind by column, with some cells changed."""
    return dict(zip(COLUMNS[kind], ROWS[kind], strict=True)) | changes


BROKEN: dict[str, tuple[str, Callable[[str], bytes], str]] = {
    "NUL in a cell": ("csv", lambda k: as_csv(COLUMNS[k], ("a\0b", *ROWS[k][1:])), "NUL character"),
    "invalid UTF-8": ("csv", lambda k: as_csv(COLUMNS[k], ROWS[k]) + b"\xff\xfe,", "line 3 is not UTF-8"),
    "an empty file": ("csv", lambda k: b"", "missing"),
    "only a header": ("csv", lambda k: as_csv(COLUMNS[k]), "no "),
    "a column twice": ("csv", lambda k: as_csv((*COLUMNS[k], COLUMNS[k][0]), (*ROWS[k], "x")), "occurs twice"),
    "a column with ESC": ("csv", lambda k: as_csv(("\x1b[31mx", *COLUMNS[k][1:]), ROWS[k]), "missing"),
    "a column that turns": ("csv", lambda k: as_csv(("\u202ex", *COLUMNS[k][1:]), ROWS[k]), "missing"),
    "a field of 200 kB": ("csv", lambda k: as_csv(COLUMNS[k], ("x" * 200_000, *ROWS[k][1:])), "line 2 has a field"),
    "an open quote": ("csv", lambda k: as_csv(COLUMNS[k], ('"x', *ROWS[k][1:])), "is not valid CSV"),
    "a row too short": ("csv", lambda k: as_csv(COLUMNS[k], ROWS[k][:2]), "line 2 has 2 fields"),
    "bars": ("csv", lambda k: as_csv(COLUMNS[k]).replace(b",", b"|"), "is missing"),
    "a ZIP": ("csv", lambda k: b"PK\x03\x04" + b"\0" * 100, "ZIP"),
    "deep JSON": ("jsonl", lambda k: b'{"a": ' + b"[" * 100_000, "nested too deeply"),
    "a JSON integer of 5,000 digits": ("jsonl",
                                       lambda k: json.dumps(record(k, n="N")).replace('"N"', "9" * 5000).encode(),
                                       "whole number is too large"),
    "a JSON key twice": ("jsonl", lambda k: b'{"model": "a", "model": "b"}', "'model' is used twice"),
    "a list, not an object": ("jsonl", lambda k: b"[1, 2]", "not a JSON object"),
    "an incomplete character": ("jsonl", lambda k: json.dumps(record(k, **{COLUMNS[k][1]: "\ud800"})).encode(),
                                "an incomplete character"),
    "NUL in JSON": ("jsonl", lambda k: json.dumps(record(k, **{COLUMNS[k][1]: "a\0"})).encode(), "NUL character"),
    "a table in a cell": ("jsonl", lambda k: json.dumps(record(k, **{COLUMNS[k][1]: {"a": 1}})).encode(), "a table is"),
    "true in a cell": ("jsonl", lambda k: json.dumps(record(k, **{COLUMNS[k][1]: True})).encode(), "true is neither"),
    "cut JSON": ("jsonl", lambda k: json.dumps(record(k)).encode()[:-5], "line 1 is not valid JSON"),
    "JSON in Latin-1": ("jsonl", lambda k: b'{"a": "\xe9"}', "line 1 is not UTF-8"),
    "an empty JSONL": ("jsonl", lambda k: b"", "no "),
    "no Parquet": ("parquet", lambda k: as_csv(COLUMNS[k], ROWS[k]), "is not valid Parquet"),
    "an empty Parquet": ("parquet", lambda k: b"", "is not valid Parquet"),
    "a Parquet that is only its mark": ("parquet", lambda k: b"PAR1" + b"\xff" * 40 + b"PAR1", ""),
}  # fmt: skip


READ_ALIKE = ("NUL in a cell", "an empty file", "deep JSON", "no Parquet")
"""Cases that show that a command reads its table as `import scores` does, with which all cases are tried."""


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        *(("scores", case) for case in BROKEN),
        *((kind, case) for kind in COLUMNS if kind != "scores" for case in READ_ALIKE),
    ],
)
def test_a_broken_table(tmp_path: Path, kind: str, case: str) -> None:
    suffix, content, message = BROKEN[case]
    file = tmp_path / f"x.{suffix}"
    file.write_bytes(content(kind))
    assert_refused(read_table(kind, file, tmp_path), file.name, message)
    assert not (tmp_path / "auditor.db").exists()


@pytest.mark.parametrize(
    ("kind", "value"),
    [*(("scores", text) for text in ("nan", "inf", "-inf", "1e999", "1_0", "0x1", "0,5.5", "9" * 400, "٠٫٥",
                                     "\x1b[31m1")),
     *((kind, text) for kind in ("traces", "survey") for text in ("nan", "1e999", "\x1b[31m1"))],
)  # fmt: skip
def test_a_score_that_is_not_a_number(tmp_path: Path, kind: str, value: str) -> None:
    row = dict(zip(COLUMNS[kind], ROWS[kind], strict=True)) | {"score": f'"{value}"'}
    file = tmp_path / "x.csv"
    file.write_bytes(as_csv(COLUMNS[kind], tuple(row.values())))
    assert_refused(read_table(kind, file, tmp_path), "x.csv: line 2, column 'score'")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "-1e999", "2"])
def test_a_score_of_json_that_is_out_of_range(tmp_path: Path, value: str) -> None:
    text = json.dumps(record("scores", score="N")).replace('"N"', value)
    (tmp_path / "x.jsonl").write_text(text)
    assert_refused(read_table("scores", tmp_path / "x.jsonl", tmp_path), "x.jsonl: line 1, column 'score'")


@pytest.mark.parametrize("value", ["-1", "1.5", "9" * 5000, "x", "99999999999999999999"])
def test_a_sample_that_is_not_a_whole_number(tmp_path: Path, value: str) -> None:
    row = dict(zip(COLUMNS["traces"], ROWS["traces"], strict=True)) | {"sample": value}
    (tmp_path / "x.csv").write_bytes(as_csv(COLUMNS["traces"], tuple(row.values())))
    assert_refused(read_table("traces", tmp_path / "x.csv", tmp_path), "x.csv: line 2, column 'sample'")


def test_a_parquet_file_that_is_damaged_in_its_middle(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {name: [value + str(n) for n in range(500)] for name, value in record("scores").items()}  # type: ignore[operator]
    pq.write_table(pa.table(rows), tmp_path / "whole.parquet")
    parquet_bytes = bytearray((tmp_path / "whole.parquet").read_bytes())
    parquet_bytes[8:400] = b"\xff" * 392
    (tmp_path / "x.parquet").write_bytes(parquet_bytes)
    assert_refused(read_table("scores", tmp_path / "x.parquet", tmp_path), "x.parquet")


# --- logs of other programs ------------------------------------------------------------------------------------------

LOGS: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"{", "is not valid JSON"),
    "deep": (b"[" * 100_000, "nested too deeply"),
    "giant": (b'{"results": ' + b"9" * 5000 + b"}", "too large"),
    "no list": (b'{"results": {"results": 5}, "evalId": "x"}', "the list of results is missing"),
    "no provider": (b'{"evalId": 1, "results": [{"vars": {"country": "Japan", "topic": "divorce"}}]}', "provider"),
    "a list as a reason": (
        b'{"evalId": 1, "results": [{"provider": "p", "vars": {"country": "Japan", "topic": "divorce"},'
        b' "response": {"finishReason": ["length"], "output": null}, "failureReason": [2]}]}',
        "",
    ),
    "a country with ESC": (b'{"evalId": 1, "results": [{"provider": "p", "vars": {"\\u001b[31m": "x"}}]}', "country"),
    "another program's": (b'{"version": 2}', "neither an Inspect AI log nor a promptfoo result file"),
    "Inspect's, broken": (b'{"version": 2, "eval": 5}', "is not a valid Inspect AI log"),
    "Inspect's, empty": (b'{"version": 2, "eval": {}, "status": "x"}', "is not a valid Inspect AI log"),
}


@pytest.mark.parametrize("case", LOGS, ids=str)
def test_a_broken_log(tmp_path: Path, case: str) -> None:
    content, message = LOGS[case]
    (tmp_path / "x.json").write_bytes(content)
    import_command = auditor("import", "traces", "x.json", *SURVEY, cwd=tmp_path)
    if case == "a list as a reason":
        assert import_command.returncode == 0, import_command.stderr
        return
    assert_refused(import_command, "x.json", message)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04broken", b"{}", b"\0" * 1000], ids=["empty", "zip", "json", "nul"]
)
def test_a_broken_archive_of_inspect(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.eval").write_bytes(content)
    assert_refused(auditor("import", "traces", "x.eval", *SURVEY, cwd=tmp_path), "x.eval")


# --- companion files of a survey -------------------------------------------------------------------------------------

COMPANION_FILES = {
    "description": "x.survey.toml", "facts": "x.facts.json", "regions": "g.toml", "mapping": "m.toml",
    "questions": "q.toml", "prompt": "p.md",
}  # fmt: skip
TOMLS: dict[str, tuple[bytes, str]] = {
    "deep": (b"a = " + b"[" * 5000, "nested too deeply"),
    "digits": (b"a = " + b"9" * 5000, "too large"),
    "NUL": (b"a = '\0'", "NUL"),
    "Latin-1": (b"a = '\xe9'", "not UTF-8"),
    "wrong types": (b"title = 5\nsource = []\nregions = 5\nquestion = 5\n", ""),
}


@pytest.mark.parametrize("file", ["description", "regions", "mapping", "questions"])
@pytest.mark.parametrize("case", TOMLS, ids=str)
def test_broken_settings_of_a_survey(tmp_path: Path, file: str, case: str) -> None:
    content, message = TOMLS[case]
    (tmp_path / "x.csv").write_bytes(as_csv(COLUMNS["survey"], ROWS["survey"]))
    (tmp_path / COMPANION_FILES[file]).write_bytes(content)
    probe = b'[probes.semantic]\nquestions = "q.toml"\n'
    (tmp_path / "c.toml").write_bytes(GOOD + probe)
    command = {
        "description": ("surveys", "show", "x.csv"),
        "regions": ("surveys", "regions", "x.csv", "--regions", "g.toml"),
        "mapping": ("surveys", "import", "x.csv", "--mapping", "m.toml", "-o", "y.csv"),
        "questions": ("estimate", "c.toml"),
    }[file]
    assert_refused(auditor(*command, cwd=tmp_path), COMPANION_FILES[file], message)


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b'{"respondents": "x"}', b"\xff", b"NaN"], ids=range(5))
def test_broken_facts_of_a_survey(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.csv").write_bytes(as_csv(COLUMNS["survey"], ROWS["survey"]))
    (tmp_path / "x.facts.json").write_bytes(content)
    assert_refused(auditor("surveys", "check", "x.csv", cwd=tmp_path), "x.facts.json")


# --- names of audits -------------------------------------------------------------------------------------------------

NAMES = [
    "a\nb", "a\n", "\na", "", "a" * 10_000, "../a", "a/b", "/etc/passwd", "\x1b]0;x\x07", "a\u202eb", ".", "-", "a b",
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("scores", name) for name in NAMES), *((kind, "../a") for kind in ("traces", "comparisons", "answers"))],
    ids=lambda value: repr(value[:20]),
)
def test_an_invalid_audit_name(tmp_path: Path, kind: str, name: str) -> None:
    (tmp_path / "x.csv").write_bytes(as_csv(COLUMNS[kind], ROWS[kind]))
    survey_options = ("--survey", "wvs7-sample") if kind in ("scores", "traces") else ()
    assert_refused(
        auditor("import", kind, "x.csv", *survey_options, f"--audit={name}", cwd=tmp_path), "is not a valid audit name"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_an_unknown_audit_name(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(as_csv(COLUMNS["scores"], ROWS["scores"]))
    assert auditor("import", "scores", "x.csv", *SURVEY, cwd=tmp_path).returncode == 0
    for words in (["report"], ["export", "tables"], ["verify"], ["check"]):
        for name in ("a\n", "../a", "\x1b]0;x\x07", "a" * 10_000) if words == ["report"] else ("a\n", "\x1b]0;x\x07"):
            assert_refused(auditor(*words, name, cwd=tmp_path), "has no audit")


URLS = [
    "nonsense", "postgresql+psycopg://ada:hunter2@h:x/db", "sqlite://", "mysql://h/db", "\x1b]0;x\x07",
    "sqlite:///a\nb/c",
]  # fmt: skip


@pytest.mark.parametrize("url", URLS, ids=[repr(url) for url in URLS])
def test_an_invalid_database_url(tmp_path: Path, url: str) -> None:
    status_command = auditor("status", "--storage", url, cwd=tmp_path)
    assert_refused(status_command)
    assert "hunter2" not in status_command.stderr
