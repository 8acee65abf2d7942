"""No code below the probes names one of them, but for values that are published."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from auditor.config.installed_probes import list_built_in_names, list_folder_probes

ROOT = Path(__file__).parents[2]
ABOVE_PROBES = ("auditor/cli/", "auditor/replications/", "auditor/probes/")
HISTORY = "storage/migrations/"
"""A migration is about the tables of its day."""
ORDINARY_WORDS = {"reasoning"}
"""Names of probes that the program uses for something else: what models write before their answers."""
NAMES = {*list_built_in_names(), *(probe.name for probe in list_folder_probes())}
WORD = re.compile(rf"(?<![a-z.:-])(?:auditor\.)?(probes\.)?({'|'.join(sorted(NAMES))})(?![a-z])")
ALLOWED = {
    ("auditor/config/result_settings.py", "semantic"): "the hashes of stored audits have the key whatever its value is",
    ("auditor/config/result_settings.py", "logic"): "the hashes of stored audits have the key whatever its value is",
    ("auditor/domain/decisions.py", "logic"): "the English word, for an aspect of reasoning",
    ("auditor/reports/sections/baselines.py", "memory"): "a caution names the probe that tests it",
}


def list_core_files() -> Iterator[Path]:
    """Yield the modules below the probes."""
    for folder in ("auditor", "agents", "storage", "tui"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.relative_to(ROOT).as_posix().startswith((*ABOVE_PROBES, HISTORY)):
                yield path


def list_names(path: Path) -> Iterator[str]:
    """Yield the probes that the strings, names and imports of a module name; docstrings and prose name none."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("auditor.probes"):
            yield from NAMES & {*(node.module or "").split(".")}
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        is_text = " " in node.value and not re.fullmatch(r"[a-z_ ]+", node.value)
        for prefix, name in WORD.findall(node.value):
            if prefix or not (is_text or name in ORDINARY_WORDS):
                yield name


def test_core_names_no_probe() -> None:
    named = {(path.relative_to(ROOT).as_posix(), name) for path in list_core_files() for name in list_names(path)}
    assert named == set(ALLOWED)
