"""One declaration of a person's decision is enough."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from auditor.domain import Decision


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


def test_a_declared_decision_works_everywhere(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.domain.made_up_decisions", str(tmp_path)]
    completed = subprocess.run(program, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    shown = json.loads(completed.stdout)
    for words in (
        "9 lean_left",
        "w later",
        "✓ saved: ~ left is rather right",
        "✓ saved: ~ the question is unclear",
    ):
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
