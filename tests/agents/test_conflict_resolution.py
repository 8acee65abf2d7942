"""Votes counted one each and by weight; a weight that was not cast stays in the denominator."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from auditor.agents.conflict_resolution import find_method_conflicts, outcome_can_change, resolve_conflicts
from auditor.config import AuditConfig, PanelSection
from auditor.domain import (
    Cell,
    CellScore,
    Conflict,
    ConflictKind,
    ConflictState,
    Outcome,
    Ruling,
    Verdict,
    parse_method_side,
)

CELL = Cell("Japan", "divorce")
CONFLICT = Conflict(CELL, "m", "n", 0.5, -0.5, ConflictKind.BINARY)


def audit(models: Iterable[str] = "mn", judges: Iterable[str] = "pqr", **panel: Any) -> AuditConfig:
    """An audit with models and judges of these names; without judges, its models judge each other."""

    def sections(names: Iterable[str]) -> list[dict[str, str]]:
        return [{"name": name, "model": f"openai/{name}-large"} for name in names]

    data = {"name": "a", "survey": {"source": "wvs7-sample"}, "panel": panel, "models": sections(models)}
    return AuditConfig.model_validate(data | ({"judges": sections(judges)} if judges else {}))


def ruled(judge: str, model: str, valid: bool, cell: Cell = CELL) -> Verdict:
    return Verdict(judge, model, cell, 0, Outcome.OK, Ruling.VALID if valid else Ruling.INVALID)


def verdicts(**votes: str) -> list[Verdict]:
    """Verdicts of judges that find one side VALID and the other not; `failed` has none on either."""
    return [
        Verdict(judge, model, CELL, 0, Outcome.TIMEOUT) if vote == "failed" else ruled(judge, model, vote == side)
        for judge, vote in votes.items()
        for model, side in (("m", "left"), ("n", "right"))
    ]


LEFT, OPEN, RIGHT = "m", None, "n"


@pytest.mark.parametrize(
    ("votes", "weights", "plain", "weighted"),
    [
        ({"p": "left", "q": "right", "r": "right"}, (3, 1, 1), RIGHT, LEFT),
        ({"p": "left", "q": "right", "r": "right"}, (2, 1, 1), RIGHT, OPEN),  # half is not more than half
        ({"p": "left", "q": "right", "r": "failed"}, (1, 1, 0), OPEN, OPEN),
        ({"p": "left", "q": "right", "r": "failed"}, (2, 1, 0.5), OPEN, LEFT),
        ({"p": "left", "q": "failed", "r": "failed"}, (1, 1, 1), OPEN, OPEN),
        ({"p": "left", "q": "failed", "r": "failed"}, (0.3, 0.1, 0.2), OPEN, OPEN),  # half, in decimal fractions
        ({"p": "left", "q": "left", "r": "failed"}, (1, 1, 2), LEFT, OPEN),  # what was not cast still counts
        ({"p": "right", "q": "left", "r": "left"}, (0, 1, 1), LEFT, LEFT),
    ],
)
def test_the_two_rules(
    votes: dict[str, str], weights: tuple[float, ...], plain: str | None, weighted: str | None
) -> None:
    panel = {"vote": "weighted", "weights": dict(zip("pqr", weights, strict=True))}
    for config, winner in ((audit(), plain), (audit(**panel), weighted)):
        (resolved,) = resolve_conflicts(config, [CONFLICT], verdicts(**votes))
        assert resolved.winner == winner
        assert resolved.state is (ConflictState.MAJORITY if winner else ConflictState.OPEN)
        rulings = list(votes.values())
        votes_cast = (rulings.count("left"), rulings.count("right"))
        assert (resolved.votes_left, resolved.votes_right, resolved.seats) == (*votes_cast, 3)


def test_weights_without_weighted_voting_change_nothing() -> None:
    votes = verdicts(p="left", q="right", r="right")
    (resolved,) = resolve_conflicts(audit(weights={"p": 9, "q": 1, "r": 1}), [CONFLICT], votes)
    assert resolved.winner == "n"


@pytest.mark.parametrize("weights", [{"p": 1.0, "q": 1.0}, {}])
def test_a_judge_without_a_weight_is_named(weights: dict[str, float]) -> None:
    config = audit(vote="weighted", weights={"p": 1, "q": 1, "r": 1})
    config = config.model_copy(update={"panel": config.panel.model_copy(update={"weights": weights})})
    missing_judge = "r" if weights else "p"
    for count in (
        lambda: resolve_conflicts(config, [CONFLICT], verdicts(p="left", q="left", r="right")),
        lambda: outcome_can_change(config, ["p", "q", "r"], {"p": "left"}),
    ):
        with pytest.raises(ValueError, match=f"the judge '{missing_judge}' has no weight. How to fix: Add a weight"):
            count()


def test_a_pair_that_only_benched_judges_may_judge_stays_open() -> None:
    config = audit(vote="weighted", weights={"p": 1, "q": 0, "r": 0})
    config = config.model_copy(update={"judges": [*config.judge_models[1:], config.model("m")]})
    (resolved,) = resolve_conflicts(config, [CONFLICT], verdicts(q="left", r="left"))
    assert (resolved.winner, resolved.state, resolved.seats) == (None, ConflictState.OPEN, 2)


def test_a_models_two_methods_are_in_conflict_as_two_models_are() -> None:
    cells = [Cell("Japan", topic) for topic in ("abortion", "divorce", "suicide")]
    by_method = {"direct": (0.5, 0.1, 0.2), "logprob": (0.12, 0.3, None)}
    scores = [
        CellScore("alder", cell, method, value)
        for method, values in by_method.items()
        for cell, value in zip(cells, values, strict=True)
    ]
    [conflict] = find_method_conflicts([*scores, CellScore("birch", cells[0], "direct", -1.0)], 0.38)
    assert (conflict.cell, conflict.left, conflict.right) == (cells[0], "alder (direct)", "alder (logprob)")
    assert (conflict.kind, conflict.seats, conflict.state) == (ConflictKind.METHODS, 0, ConflictState.OPEN)
    assert parse_method_side(conflict.left) == ("alder", "direct")


def test_dawid_and_skene_may_side_with_the_few_who_know() -> None:
    """Three judges flip coins and agree by chance; two agree with each other on everything else."""
    rng = random.Random(3)
    names = [f"coin{i}" for i in range(3)] + ["knows1", "knows2"]
    config = audit(judges=names, vote="dawid_skene")
    known_verdicts = []
    for i in range(60):
        cell = Cell("Japan", f"t{i}")
        for model in "mn":
            is_sound = rng.random() < 0.5
            for name in names:
                valid = is_sound if name.startswith("knows") else rng.random() < 0.5
                known_verdicts.append(ruled(name, model, valid, cell))
    # On the cell in question all coins fall against the side that is sound.
    for name in names:
        known_verdicts += [ruled(name, model, (model == "m") == name.startswith("knows")) for model in "mn"]
    [by_model] = resolve_conflicts(config, [CONFLICT], known_verdicts)
    assert (by_model.winner, by_model.votes_left, by_model.votes_right) == ("m", 2, 3)
    plain = config.model_copy(update={"panel": PanelSection()})
    [by_majority] = resolve_conflicts(plain, [CONFLICT], known_verdicts)
    assert by_majority.winner == "n"


def test_dawid_and_skene_settle_nothing_where_no_model_fits() -> None:
    config = audit(vote="dawid_skene")
    [resolved] = resolve_conflicts(config, [CONFLICT], verdicts(p="mn", q="mn"))
    assert resolved.state is ConflictState.OPEN


def test_dawid_and_skene_need_all_verdicts() -> None:
    with pytest.raises(ValueError, match="needs all verdicts"):
        audit(vote="dawid_skene", adaptive=True)


def test_dawid_and_skene_do_not_let_rivals_judge_each_other() -> None:
    """Four peers: a and b are in conflict, and each rules on the other's trace, but only c and d have a seat."""
    config = audit("abcd", (), vote="dawid_skene")
    rng = random.Random(5)
    known = [
        ruled(judge, model, sound, Cell("Japan", f"t{i}"))
        for i in range(40)
        for model in "abcd"
        for sound in [rng.random() < 0.5]
        for judge in "abcd"
        if judge != model
    ]
    author_verdicts = [ruled("b", "a", True), ruled("a", "b", False)]
    conflict = Conflict(CELL, "a", "b", 0.5, -0.5, ConflictKind.BINARY)
    [unheard] = resolve_conflicts(config, [conflict], known + author_verdicts)
    assert (unheard.winner, unheard.votes_left, unheard.votes_right) == (None, 0, 0)

    judge_verdicts = [ruled(judge, model, model == "b") for judge in "cd" for model in "ab"]
    [heard] = resolve_conflicts(config, [conflict], known + author_verdicts + judge_verdicts)
    assert (heard.winner, heard.votes_left, heard.votes_right) == ("b", 0, 2)
