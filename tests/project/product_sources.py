"""The product's modules, for checks of all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("auditor", "agents", "prompts", "storage", "tui")


def list_sources() -> list[Path]:
    """All modules of the product; the links within `auditor` are left out."""
    return [
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any(parent.is_symlink() for parent in path.parents if ROOT in parent.parents)
    ]


def iterate_modules(pattern: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the parsed modules whose text has a match of a pattern; the others are not parsed."""
    for path in list_sources():
        text = path.read_text(encoding="utf-8")
        if re.search(pattern, text):
            yield path, ast.parse(text)
