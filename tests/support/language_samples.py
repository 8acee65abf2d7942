"""Sentences of each language that has prompts, for tests: refusals, addresses to judges, and ordinary traces."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "prompts" / "languages"
SAMPLES: dict[str, dict[str, Any]] = {
    file.stem: tomllib.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.iterdir())
}
"""The file of each language, by its code."""
