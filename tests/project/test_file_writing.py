"""Only `auditor/atomic_files.py` writes files for users: completely or not at all, and nothing of another kind is lost.

Caches, weights, locks, databases and the program's own state are apart: `WRITES_ELSEWHERE` names their calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.project.product_sources import ROOT, iterate_modules

WRITER = "auditor/atomic_files.py"
WRITES_ELSEWHERE = {
    "auditor/__main__.py": {"os.open"},  # the null device for closed standard streams
    "auditor/console/output.py": {"os.open"},  # the null device
    "auditor/config/trust.py": {"open", "mkdir"},  # the list of trusted addresses
    "auditor/exports/tracker_runs.py": {
        "tempfile.TemporaryDirectory"
    },  # uploaded by MLflow; uploaded by Weights & Biases
    "auditor/exports/evidence.py": {
        "tempfile.TemporaryDirectory", "mkdir", "write_text", "write_bytes", "open",
    },  # temporary
    "auditor/models/fetch.py": {"open", "shutil.copyfile"},  # downloads of weights
    "auditor/models/llama_server_process.py": {"os.open", "os.fdopen"},  # pipes
    "auditor/models/weights.py": {
        "open", "mkdir", "tempfile.TemporaryDirectory", "os.replace", "shutil.rmtree",
    },  # weights
    "auditor/run/batches/collection.py": {"tempfile.TemporaryFile"},  # results while they are read
    "storage/sqlite_file.py": {
        "sqlite3.connect", "os.open", "os.fdopen", "mkdir",
    },  # of the writer's temporary file; databases, and who runs an audit
    "storage/derived_rows.py": {"tempfile.TemporaryDirectory"},  # a database of the program's own, then deleted
}  # fmt: skip
LIBRARY_WRITERS = {
    "auditor/exports/inspect_logs.py": {"write_eval_log"},
    "auditor/exports/tables.py": {"ParquetWriter", "write_table"},
    "auditor/exports/training.py": {"write_table"},
}
"""Libraries that write a file of the writer: within `open_replacement` or `replace_folder`."""
METHODS = {"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "rename", "mkdir"}
LIBRARY_METHODS = {"write_eval_log", "ParquetWriter", "write_table", "to_csv", "to_parquet", "savez", "save_file"}
FUNCTIONS = {
    "os": {"open", "fdopen", "replace", "rename", "link", "symlink", "truncate", "mkfifo"},
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move", "rmtree"},
    "tempfile": {"mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile"},
    "sqlite3": {"connect"},
}
MENTIONS = "|".join({"open", "replace", *METHODS, *LIBRARY_METHODS}.union(*FUNCTIONS.values()))


def iterate_writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each call that may create, change, move or replace a file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id == "open" and _writes(node, 1):
            yield node.lineno, "open"
        if isinstance(function, ast.Name) and function.id in LIBRARY_METHODS:
            yield node.lineno, function.id
        if not isinstance(function, ast.Attribute):
            continue
        module = function.value.id if isinstance(function.value, ast.Name) else ""
        if function.attr in FUNCTIONS.get(module, ()):
            yield node.lineno, f"{module}.{function.attr}"
        elif function.attr in METHODS | LIBRARY_METHODS and module != "os":
            yield node.lineno, function.attr
        elif function.attr == "replace" and len(node.args) == 1 and not node.keywords:  # of a path, not of a text
            yield node.lineno, "replace"
        elif function.attr == "open" and _writes(node, 0):
            yield node.lineno, "open"


def _writes(call: ast.Call, position: int) -> bool:
    """Whether the mode of a call of `open` is one for writing."""
    mode = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), None)
    if mode is None and len(call.args) > position:
        mode = call.args[position]
    if isinstance(mode, ast.IfExp):
        return True
    return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and bool(set(mode.value) & set("wax+"))


def test_only_the_writer_writes_files() -> None:
    problems = []
    used: dict[str, set[str]] = {}
    for path, module in iterate_modules(MENTIONS):
        name = path.relative_to(ROOT).as_posix()
        if name == WRITER:
            continue
        allowed = WRITES_ELSEWHERE.get(name, set()) | LIBRARY_WRITERS.get(name, set())
        for line, call in iterate_writes(module):
            used.setdefault(name, set()).add(call)
            if call not in allowed:
                problems.append(f"{name}:{line}: {call}. How to fix: write with auditor.atomic_files.")
    assert not problems, "\n".join(problems)
    declared = {
        name: WRITES_ELSEWHERE.get(name, set()) | LIBRARY_WRITERS.get(name, set())
        for name in WRITES_ELSEWHERE | LIBRARY_WRITERS
    }
    assert declared == used


@pytest.mark.parametrize(
    "code",
    [
        "open(p, 'w')", "open(p, mode='ab')", "p.open('x')", "p.write_text('')", "p.replace(q)", "os.replace(p, q)",
        "shutil.copy(p, q)", "tempfile.mkstemp()", "pq.write_table(t, p)", "os.open(p, os.O_WRONLY)", "p.open('r+')",
    ],
)  # fmt: skip
def test_calls_that_write_are_found(code: str) -> None:
    assert list(iterate_writes(ast.parse(code)))


@pytest.mark.parametrize("code", ["open(p)", "p.open('rb')", "t.replace('a', 'b')", "p.read_text()"])
def test_calls_that_read_are_not_found(code: str) -> None:
    assert not list(iterate_writes(ast.parse(code)))
