"""One declaration of a person's decision, or of a kind of conflict, is enough."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, get_args

import pytest

from auditor.domain import ConflictKind, ConflictSides, Decision
from auditor.metrics.people.conflict import ConflictKindName


@pytest.mark.parametrize("decision", Decision)
def test_exchanged_sides_mirror_what_a_decision_upholds(decision: Decision) -> None:
    assert decision.mirrored.mirrored is decision
    assert (decision.mirrored.needs_score, decision.mirrored.resolves_conflict) == (
        decision.needs_score,
        decision.resolves_conflict,
    )
    upholds = decision.spec.upholds
    assert decision.mirrored.spec.upholds == (upholds and upholds[::-1])
    if decision.upheld_side:
        assert {decision.upheld_side, decision.mirrored.upheld_side} == {"left", "right"}


def test_keys_of_decisions_differ() -> None:
    keys = [key for decision in Decision for key in decision.spec.keys.split(",")]
    assert len(keys) == len(set(keys))


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of decisions and kinds that are declared at run time."""
    program = [sys.executable, "-m", "tests.domain.made_up_members", str(tmp_path_factory.mktemp("made-up"))]
    completed = subprocess.run(program, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    figures: dict[str, Any] = json.loads(completed.stdout)
    return figures


def test_a_declared_decision_works_everywhere(made_up: dict[str, Any]) -> None:
    shown = made_up["decisions"]
    for words in ("9 lean_left", "w later", "✓ saved: ~ left is rather right", "✓ saved: ~ the question is unclear"):
        assert words in shown["screens"]
    assert "w put off" in shown["screens"]
    for words in (
        "lean_left, lean_right, unclear, or later.", "Saved: right is rather right.", "Put off.",
        "Saved: the question is unclear.", "lean_left: left is rather right.", "later: decide later.",
    ):  # fmt: skip
        assert words in shown["transcript"]
    assert "| `8` | the question is unclear. (`unclear`) | `conflict.unclear` |" in shown["keys"]
    assert sorted(shown["settled"]) == [
        ["person", "lean_left", True], ["person", "lean_right", True],
        ["person", "unclear", False], ["person", "unclear", False],
    ]  # fmt: skip
    assert sorted(shown["winners"]) == sorted(side for side, _ in shown["upheld"])
    assert sorted(shown["exported"]) == ["later", "later", "lean_left", "lean_right", "unclear", "unclear"]
    assert shown["decided"] == {"ada": 2, "grace": 2}
    assert shown["judged_cells"] == 2
    assert sorted(shown["json"]) == ["lean_left", "lean_right", "unclear", "unclear"]
    assert shown["page"].count(" decided: the question is unclear.") == 2
    for side, rater in shown["upheld"]:
        assert f"{rater} decided: {side} is right." in shown["page"]


def test_the_kinds_that_the_metrics_distinguish_are_declared() -> None:
    """`auditor.metrics` imports nothing of ours, so it names its kinds by value."""
    kinds = [ConflictKind(name) for name in get_args(ConflictKindName)]
    assert kinds == [kind for kind in ConflictKind if kind.spec.sides is ConflictSides.SCORES]


def test_a_declared_kind_shows_up_everywhere(made_up: dict[str, Any]) -> None:
    shown = made_up["kinds"]
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
