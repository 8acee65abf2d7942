"""Files of JSON Lines for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_json_lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path
