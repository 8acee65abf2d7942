"""Comparisons: pairs as asked for, directions the right way round, corrections and flips against outside references."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from auditor.domain import (
    Cell,
    CellScore,
    Conflict,
    ConflictKind,
    ConflictState,
    Decision,
    Outcome,
    Rating,
    Ruling,
    Trace,
    Verdict,
)
from auditor.errors import UsageError
from auditor.metrics.bootstrap import holm
from auditor.reports.comparison.compare import compare_targets
from auditor.reports.comparison.comparison_page import build_comparison_page
from auditor.reports.comparison.series_pairs import parse_target
from auditor.reports.pages.report_page import render_page_html, render_page_markdown
from auditor.storage import audits, results
from auditor.storage.database import Database
from tests.reports.conftest import survey_of

COUNTRIES = ["Germany", "Japan", "Nigeria", "Brazil", "Egypt", "Turkey", "Mexico"]
TOPICS = ["divorce", "abortion", "suicide", "gambling", "euthanasia", "casual sex"]
NOW = datetime(2026, 1, 2, tzinfo=UTC)
CELLS = [(c, t) for c in COUNTRIES for t in TOPICS]
TRUTH = dict(zip(CELLS, np.random.default_rng(5).uniform(-0.9, 0.9, len(CELLS)).round(3).tolist(), strict=True))


def make(
    db: Database,
    name: str,
    noise: Mapping[str, float],
    *,
    drop: int = 0,
    worse_in: str = "",
    method: str = "direct",
) -> None:
    """An audit of imported scores; each model is off by its noise, and `worse_in` one country by 0.8 more."""
    audit = audits.save_audit(
        db, name=name, config=None, config_hash=None, survey=survey_of(TRUTH), environment={"auditor": "0.1.0"}
    )
    rng = np.random.default_rng(len(name))
    rows = []
    for model, size in noise.items():
        for i, (cell, people) in enumerate(TRUTH.items()):
            off = size * rng.choice([-1, 1]) * rng.uniform(0.8, 1.2) - (
                0.8 * np.sign(people) if cell[0] == worse_in else 0.0
            )
            score = None if i < drop else float(np.clip(people + off, -1, 1))
            rows.append(CellScore(model, Cell(*cell), method, score, n_ok=int(score is not None), n_planned=1))
    results.save_scores(db, audit.id, rows)
    audits.set_stage(db, audit.id, audits.FINISHED)


def test_stretched_scores_are_compared_by_r_alone(db: Database) -> None:
    make(db, "one", {"near": 0.05, "far": 0.5}, method="logprob")
    comparison = compare_targets(db, [parse_target("one:far"), parse_target("one:near")])
    found = comparison.pairs[0]
    assert (found.pearson_r.change, found.mae.change, found.mae.difference.value) == ("better", "not measurable", None)
    assert found.regions == found.by_country == found.by_topic == []
    page = render_page_markdown(build_comparison_page(comparison))
    assert "by r, which differs by" in page
    assert "mean errors cannot be compared" in page


def test_the_nearer_model_is_better_and_the_other_way_round_worse(db: Database) -> None:
    make(db, "one", {"near": 0.05, "far": 0.5})
    found = compare_targets(db, [parse_target("one:far"), parse_target("one:near")]).pairs[0]
    assert (found.mae.change, found.pearson_r.change) == ("better", "better")
    assert found.mae.difference.value is not None
    assert found.mae.difference.value < -0.3
    turned = compare_targets(db, [parse_target("one:near"), parse_target("one:far")]).pairs[0]
    assert turned.mae.change == "worse"
    assert turned.mae.difference.value == pytest.approx(-found.mae.difference.value)
    assert found.mae.first == pytest.approx(turned.mae.second)


def test_one_audit_is_all_its_pairs_and_two_are_matched_by_model(db: Database) -> None:
    make(db, "before", {"a": 0.2, "b": 0.2, "c": 0.2})
    make(db, "afterwards", {"a": 0.2, "b": 0.2})
    alone = compare_targets(db, [parse_target("before")])
    assert [(p.first, p.second) for p in alone.pairs] == [
        ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip
    both = compare_targets(db, [parse_target("before"), parse_target("afterwards")])
    assert [(p.first, p.second) for p in both.pairs] == [("before:a", "afterwards:a"), ("before:b", "afterwards:b")]
    assert re.findall(r'class="label end"[^>]*>([^<]*)<', render_page_html(build_comparison_page(both)))[:2] == [
        "a",
        "b",
    ]
    names = re.findall(r'class="label end"[^>]*>(?:<title>)?([^<]*)<', render_page_html(build_comparison_page(alone)))
    assert names[: len(alone.pairs)] == [f"{p.second} – {p.first}" for p in alone.pairs]


def test_a_tuned_model_of_another_name_is_paired_when_named(db: Database) -> None:
    make(db, "before", {"base": 0.4})
    make(db, "afterwards", {"tuned": 0.05})
    for second in ("afterwards", "afterwards:tuned"):
        assert compare_targets(db, [parse_target("before"), parse_target(second)]).pairs[0].mae.change == "better"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["one"], "nothing to compare"),
        (["one", "one"], "nothing to pair"),
        (["one:nobody", "two"], "no scores of 'nobody'"),
        (["one", "two"], "nothing to pair"),
    ],
)
def test_what_cannot_be_paired_says_what_there_is(db: Database, words: list[str], message: str) -> None:
    make(db, "one", {"a": 0.1})
    make(db, "two", {"b": 0.1, "c": 0.1})
    with pytest.raises(UsageError, match=message):
        compare_targets(db, [parse_target(word) for word in words])


def test_the_country_that_got_worse_is_named_first_and_corrected_by_holm(db: Database) -> None:
    make(db, "before", {"a": 0.05})
    make(db, "afterwards", {"a": 0.05}, worse_in="Nigeria")
    pair = compare_targets(db, [parse_target("before"), parse_target("afterwards")]).pairs[0]
    assert pair.by_country[0].name == "Nigeria"
    assert pair.by_country[0].change == "worse"
    p = [part.p_value for part in pair.by_country if part.p_value is not None]
    adjusted = [part.p_holm for part in pair.by_country if part.p_holm is not None]
    assert adjusted == pytest.approx(multipletests(p, method="holm")[1].tolist())


def test_unequal_coverage_is_bounded_and_said(db: Database) -> None:
    make(db, "before", {"a": 0.2})
    make(db, "afterwards", {"a": 0.2}, drop=10)
    found = compare_targets(db, [parse_target("before"), parse_target("afterwards")])
    pair = found.pairs[0]
    assert (pair.shared, pair.only_first) == (len(CELLS) - 10, 10)
    assert pair.bounds is not None
    assert pair.mae.difference.value is not None
    assert pair.bounds[0] < pair.mae.difference.value < pair.bounds[1]
    assert any("different shares" in warning for warning in build_comparison_page(found).warnings)


def test_cells_with_another_truth_are_not_compared(db: Database) -> None:
    make(db, "one", {"a": 0.1})
    other = {cell: (value if cell[0] != "Japan" else -value) for cell, value in TRUTH.items()}
    audit = audits.save_audit(db, name="two", config=None, config_hash=None, survey=survey_of(other), environment={})
    rows = [CellScore("a", Cell(*cell), "direct", 0.0, n_ok=1, n_planned=1) for cell in TRUTH]
    results.save_scores(db, audit.id, rows)
    pair = compare_targets(db, [parse_target("one"), parse_target("two")]).pairs[0]
    assert pair.truth_differs == len(TOPICS)
    assert pair.shared == len(CELLS) - len(TOPICS)


def _verdicts(db: Database, audit: str, rulings: Mapping[str, list[bool]]) -> None:
    rows = [
        Verdict(judge, "a", Cell(*cell), 0, Outcome.OK, Ruling.VALID if yes else Ruling.INVALID)
        for judge, said in rulings.items()
        for cell, yes in zip(CELLS, said, strict=False)
    ]
    results.save_verdicts(db, audits.get_audit(db, audit).id, rows)


def test_two_judges_on_the_same_traces(db: Database) -> None:
    make(db, "one", {"a": 0.1})
    _verdicts(db, "one", {"x": [True] * 10 + [False] * 5, "y": [False] * 8 + [True] * 2 + [False] * 4 + [True]})
    found = compare_targets(db, [parse_target("one")], judges=["x", "y"], max_listed=3).judges[0]
    assert (found.n, found.both_valid, found.both_invalid, found.to_valid, found.to_invalid) == (15, 2, 4, 1, 8)
    assert found.p_value == pytest.approx(binomtest(1, 9).pvalue)
    assert (len(found.flips), found.not_listed) == (3, 6)
    assert found.change.value == pytest.approx(-7 / 15)
    with pytest.raises(UsageError, match="no trace has a valid verdict"):
        compare_targets(db, [parse_target("one")], judges=["x", "nobody"])


def test_flips_between_audits_are_of_the_same_judge(db: Database) -> None:
    make(db, "one", {"a": 0.1})
    make(db, "two", {"a": 0.1})
    _verdicts(db, "one", {"x": [True, True], "y": [True, True]})
    _verdicts(db, "two", {"x": [True, False], "z": [False, False]})
    verdicts = compare_targets(db, [parse_target("one"), parse_target("two")]).pairs[0].verdicts
    assert verdicts is not None
    assert [(f.judge, f.country, f.topic, f.first, f.second) for f in verdicts.flips] == [
        ("x", *CELLS[1], "VALID", "INVALID")
    ]


def test_the_page_holds_no_markup_of_others(db: Database) -> None:
    make(db, "one", {"<script>a|b": 0.1, "near": 0.1})
    page = build_comparison_page(compare_targets(db, [parse_target("one")]))
    assert "<script>" not in render_page_html(page)
    assert "&lt;script&gt;" in render_page_html(page)
    assert "\\<script>a\\|b" in render_page_markdown(page)


def _answers(db: Database, audit: str, texts: Sequence[str]) -> None:
    rows = [Trace("a", Cell(*cell), 0, Outcome.OK, 0.5, text) for cell, text in zip(CELLS, texts, strict=False)]
    results.save_traces(db, audits.get_audit(db, audit).id, rows)


def test_a_flip_says_whether_the_judge_changed_or_the_answer(db: Database) -> None:
    for name, answers, said in (("one", "stu", [True] * 4), ("two", "sxy", [False, False, True, False])):
        make(db, name, {"a": 0.1})
        _answers(db, name, answers)
        _verdicts(db, name, {"x": said})
    found = compare_targets(db, [parse_target("one"), parse_target("two")])
    verdicts = found.pairs[0].verdicts
    assert verdicts is not None
    assert (verdicts.about, verdicts.n, verdicts.traces, verdicts.to_invalid) == ("answers", 1, 1, 1)
    assert verdicts.other_answers == 3
    assert {(f.country, f.topic): f.same_answer for f in verdicts.flips} == {
        CELLS[0]: True, CELLS[1]: False, CELLS[3]: None,
    }  # fmt: skip
    told = render_page_markdown(build_comparison_page(found))
    assert "3 verdicts more are on other answers, and in none of these figures" in told
    assert "| the same |" in told.replace("  ", " ")


def test_verdicts_on_other_answers_are_called_so_and_judges_are_no_traces(db: Database) -> None:
    for name, answers, said in (("one", "stuvw", True), ("two", "abcde", False)):
        make(db, name, {"a": 0.1})
        _answers(db, name, answers)
        _verdicts(db, name, {"x": [said] * 5, "y": [said] * 5})
    found = compare_targets(db, [parse_target("one"), parse_target("two")])
    verdicts = found.pairs[0].verdicts
    assert verdicts is not None
    assert (verdicts.about, verdicts.n, verdicts.traces, verdicts.other_answers) == ("cells", 10, 5, 0)
    told = render_page_markdown(build_comparison_page(found))
    assert "10 verdicts on the same cell, of 5 traces" in told
    assert "No answer is the same in both, so not only the judges changed." in told


def test_what_an_adaptive_panel_asked_of_disputed_traces_is_not_compared(db: Database) -> None:
    make(db, "one", {"a": 0.1})
    _verdicts(db, "one", {"x": [True] * 8, "y": [False] * 8})
    audit = audits.get_audit(db, "one").id
    mixed = [replace(v, always=v.cell != CELLS[0]) for v in results.load_verdicts(db, audit)]
    results.save_verdicts(db, audit, mixed)
    [found] = compare_targets(db, [parse_target("one")], judges=["x", "y"]).judges
    assert (found.about, found.n, found.traces) == ("answers", 7, 7)


def test_every_kind_of_place_is_one_family_over_all_pairs(db: Database) -> None:
    make(db, "one", {"a": 0.1, "b": 0.3, "c": 0.6})
    pairs = compare_targets(db, [parse_target("one")], all_pairs=True).pairs
    assert len(pairs) == 3
    for kind in ("by_country", "by_topic"):
        parts = [part for pair in pairs for part in getattr(pair, kind) if part.p_value is not None]
        assert len(parts) > len(getattr(pairs[0], kind))
        assert [part.p_holm for part in parts] == pytest.approx(holm([part.p_value for part in parts]).tolist())


def _conflicts(db: Database, audit: str, models: tuple[str, str], winners: Sequence[str | None]) -> None:
    left, right = models
    rows = [
        Conflict(
            Cell(*cell), left, right, 0.5, -0.5, ConflictKind.BINARY,
            ConflictState.OPEN if winner is None else ConflictState.MAJORITY, winner=winner,
        )
        for cell, winner in zip(CELLS, winners, strict=False)
    ]  # fmt: skip
    results.replace_conflicts(db, audits.get_audit(db, audit).id, rows)


def test_conflicts_settled_the_other_way_are_counted_and_listed_whichever_side_stands_left(db: Database) -> None:
    make(db, "one", {"base": 0.1, "other": 0.1})
    make(db, "two", {"tuned": 0.1, "other": 0.1})
    _conflicts(db, "one", ("base", "other"), ["base", "base", "other", None, "base", None])
    _conflicts(db, "two", ("other", "tuned"), ["tuned", "other", "other", "other", None, None])
    found = compare_targets(db, [parse_target("one"), parse_target("two")], renamed_models={"base": "tuned"})
    assert [(p.first, p.second) for p in found.pairs] == [("one:base", "two:tuned"), ("one:other", "two:other")]
    [part] = found.settlements
    assert (part.shared, part.n, part.flipped) == (6, 3, 1)
    assert (part.only_first, part.only_second, part.neither) == (1, 1, 1)
    assert part.share.value == pytest.approx(1 / 3)
    assert [(f.country, f.topic, f.first_winner, f.second_winner) for f in part.flips] == [(*CELLS[1], "base", "other")]
    told = render_page_markdown(build_comparison_page(found))
    assert "of 3 that both settled for a side, 1 (33%, 95% interval 6% to 79%)" in told
    assert "Settlement flips: one and two" in told
    assert (
        compare_targets(db, [parse_target("one"), parse_target("two")], renamed_models={"base": "tuned"}, max_listed=0)
        .settlements[0]
        .not_listed
        == 1
    )


def test_a_person_goes_before_the_judges_in_what_was_settled(db: Database) -> None:
    for name in ("one", "two"):
        make(db, name, {"a": 0.1, "b": 0.1})
        _conflicts(db, name, ("a", "b"), ["a"])
    audit, cell = audits.get_audit(db, "two").id, Cell(*CELLS[0])
    results.add_rating(db, audit, Rating(cell, "a", "b", 0.5, -0.5, "ann", Decision.RIGHT, NOW))
    [part] = compare_targets(db, [parse_target("one"), parse_target("two")]).settlements
    assert [(f.first_by, f.second_winner, f.second_by) for f in part.flips] == [("majority", "b", "person")]


def test_a_name_that_became_nothing_is_named(db: Database) -> None:
    make(db, "one", {"base": 0.1, "other": 0.1})
    make(db, "two", {"tuned": 0.1, "other": 0.1})
    with pytest.raises(UsageError, match="no 'bse' on the first side"):
        compare_targets(db, [parse_target("one"), parse_target("two")], renamed_models={"bse": "tuned"})
