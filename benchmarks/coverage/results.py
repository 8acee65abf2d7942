"""Results of a run, stored so that a run that was stopped goes on where it ended.

A result is valid as long as the functions that it rests on are unchanged: it is stored with a hash of the modules of
`auditor.metrics` that the study imports, directly or not, and of the study itself.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STORE = Path(__file__).with_name("results.json")
"""Ignored by git."""

Rows = list[dict[str, Any]]


def find_modules(module: str) -> frozenset[str]:
    """The modules of the statistics and of the study that a module imports, directly or not, and itself."""
    pending, visited = [module], set[str]()
    while pending:
        name = pending.pop()
        if name not in visited:
            visited.add(name)
            pending += _imported_modules(name)
    return frozenset(visited)


@cache
def _imported_modules(module: str) -> frozenset[str]:
    """The modules of the statistics and of the study that a module imports."""
    tree = ast.parse(_path_of(module).read_text(encoding="utf-8"))
    return frozenset(name for name in _iterate_imports(tree) if _is_followed(name))


def _iterate_imports(tree: ast.AST) -> Iterator[str]:
    """Names of imported modules, and of what is imported from them, which may be modules too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_followed(module: str) -> bool:
    followed = (
        "auditor.metrics.",
        "auditor.probes.",
        "auditor.reports.data.agreement.",
        "auditor.reports.data.sampling.",
        "benchmarks.coverage.",
    )
    return module.startswith(followed) and _path_of(module).is_file()


def _path_of(module: str) -> Path:
    return ROOT / f"{module.replace('.', '/')}.py"


def fingerprint(*modules: str) -> str:
    """A hash of the sources of these modules and of all that they import."""
    digest = hashlib.sha256()
    for module in sorted(frozenset().union(*map(find_modules, modules))):
        digest.update(_path_of(module).read_bytes())
    return digest.hexdigest()[:16]


class ResultStore:
    """Results by a key of the world and design, with the hash of the sources that they rest on."""

    def __init__(self, path: Path = STORE) -> None:
        self._path = path
        self._entries: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}

    def load(self, key: str, source_hash: str) -> Rows | None:
        """The stored results; None if there are none, or if their sources have changed."""
        entry = self._entries.get(key)
        if entry is None or entry["sources"] != source_hash:
            return None
        rows: Rows = entry["rows"]
        return rows

    def save(self, key: str, source_hash: str, rows: Rows) -> None:
        """Store results, on the disk too."""
        self._entries[key] = {"sources": source_hash, "rows": rows}
        self._path.write_text(json.dumps(self._entries))
