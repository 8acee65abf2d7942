"""The page on pressure describes every setting of the probe."""

from __future__ import annotations

import re
from pathlib import Path

from auditor.probes.pressure.settings import PressureSettings

PAGE = Path(__file__).parents[3] / "docs" / "pressure.md"


def test_every_setting_is_in_the_table() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("| figure |")[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", table, flags=re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(PressureSettings.model_fields)
