"""The pages of probes describe every setting, and that of `reasoning` every intervention."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import get_args

import pytest

from auditor.probes.logic.settings import LogicProbe
from auditor.probes.pressure.settings import PressureSettings
from auditor.probes.reasoning.settings import Kind, ReasoningSettings

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "heading", "names"), [
    ("logic.md", "setting", LogicProbe.model_fields), ("pressure.md", "setting", PressureSettings.model_fields),
    ("reasoning.md", "setting", ReasoningSettings.model_fields), ("reasoning.md", "intervention", get_args(Kind)),
])  # fmt: skip
def test_every_setting_is_in_its_table(page: str, heading: str, names: Collection[str]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    table = text.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    documented = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| ((?:`\w+`(?:, )?)+)", table, re.MULTILINE)))
    assert sorted(documented) == sorted(names)
