"""The small form of each paper on the embedded model, as users run it, fills its tables (`make small-forms`)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from auditor.models import weights
from tests.support.cli_runner import succeed
from tests.support.replicated_audits import list_missing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("AUDITOR_SMALL_FORMS" not in os.environ, reason="takes ten minutes: run `make small-forms`"),
]
FILLED = {
    "evalmoraal": (
        *("1", "tiers", "self-consistency", "variance", "peer", "conflicts", "regions", "countries", "topics"),
        "errors",
    ),
    "logic": ("1", "2", "4", "figure-4", "figure-5", "figure-9"),
    "sage": ("1", "4", "figure-3"),
    "sge": ("models",),
    "consistency": ("example", "questions"),
}
"""Tables in which no figure of our models is missing, by paper."""
ALLOWED = ("no_counterpart", "not_published", "definition")
"""Why a cell has no figure of ours: it is of a published model, blank in the paper, or a definition."""


def run_small(paper: str, storage: str) -> dict[str, Any]:
    """The document that the command prints as JSON."""
    result = succeed("replicate", paper, "--small", "--json", AUDITOR_STORAGE=storage)
    document: dict[str, Any] = json.loads(result.stdout) | {"messages": result.stderr}
    return document


@pytest.mark.parametrize("paper", FILLED)
def test_the_embedded_model_fills_the_tables_and_is_asked_once(paper: str, tmp_path: Path) -> None:
    weights.pull_weights("smollm2-135m")
    first, second = (run_small(paper, f"sqlite:///{tmp_path}/small.db") for _ in range(2))
    cells = [cell for cell in first["cells"] if cell["published"]["table"] in FILLED[paper]]
    assert list_missing(cells, FILLED[paper], ALLOWED) == []
    assert {cell["published"]["table"] for cell in cells if cell["recomputed"]} == set(FILLED[paper])
    assert second["cells"] == first["cells"]
    assert "Asking models" not in second["messages"]
