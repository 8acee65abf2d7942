"""The page on reasoning describes every setting and every intervention of the probe."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from auditor.probes.reasoning.settings import Kind, ReasoningSettings

PAGE = Path(__file__).parents[3] / "docs" / "reasoning.md"


def read_first_column(first: str, last: str) -> set[str]:
    """Names in the first column of the table between two headings."""
    table = PAGE.read_text(encoding="utf-8").partition(first)[2].partition(last)[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+)", table, flags=re.MULTILINE)
    return set(re.findall(r"`(\w+)`", " ".join(rows)))


def test_every_setting_and_every_intervention_is_in_its_table() -> None:
    assert read_first_column("| setting |", "| figure |") == set(ReasoningSettings.model_fields)
    assert read_first_column("| intervention |", "| setting |") == set(get_args(Kind))
