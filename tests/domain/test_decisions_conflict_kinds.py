"""One declaration of a kind of conflict is enough."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

from auditor.domain import ConflictKind, ConflictSides
from auditor.metrics.people.conflict import ConflictKindName


def test_the_kinds_that_the_metrics_distinguish_are_declared() -> None:
    """`auditor.metrics` imports nothing of ours, so it names its kinds by value."""
    kinds = [ConflictKind(name) for name in get_args(ConflictKindName)]
    assert kinds == [kind for kind in ConflictKind if kind.spec.sides is ConflictSides.SCORES]


def test_a_declared_kind_shows_up_everywhere(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.domain.made_up_kinds", str(tmp_path)]
    shown = json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout)
    assert shown["filter"] == "kind:hair_splitting kind:moods"
    assert {line.split(": ")[1].split(",")[0] for line in shown["lines"]} == {"hair splitting", "moods"}
    kind_column = slice(shown["header"].index("kind"), shown["header"].index("country"))
    assert {cells[kind_column].strip() for cells in shown["cells"]} == {"hair splitting", "moods"}
    assert (shown["voted"], shown["unvoted"]) == (shown["total"] - 1, ["moods"])
    assert shown["settled_of"] == shown["voted"]
    totals = {row["kind"]: row["total"] for row in shown["kinds"]}
    assert (totals["hair_splitting"], totals["moods"]) == (1, 1)
    assert sum(pair["hair_splitting"] for pair in shown["pairs"]) == 1
    assert all("moods" not in pair for pair in shown["pairs"])
    assert "hair splitting (the scores differ by a hair)" in shown["page"]
    assert "moods (one model in two moods)" in shown["page"]
    assert "Further conflicts are 1 between two moods of one model. Judges do not vote on them." in shown["page"]
