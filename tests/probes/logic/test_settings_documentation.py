"""The page on logic describes every setting of the probe."""

from __future__ import annotations

import re
from pathlib import Path

from auditor.probes.logic.settings import LogicProbe

PAGE = Path(__file__).parents[3] / "docs" / "logic.md"


def test_every_setting_is_in_the_table() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    documented = re.findall(r"`(\w+)`", " ".join(rows))
    assert len(documented) == len(set(documented))
    assert set(LogicProbe.model_fields) <= set(documented)
