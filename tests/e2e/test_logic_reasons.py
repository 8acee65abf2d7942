"""Figures of logic's tables that are not run: the reason is true, and what it names fills them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor.replications.definitions import MeasuredAudit
from auditor.replications.joining import join_figures
from auditor.replications.presets import load_paper
from tests.support.planted_comparisons import SIZES, ask, linear, make_wording, measure


def list_reasons(
    measured: list[MeasuredAudit], table: str, column: str, **models: str
) -> dict[str, set[tuple[str | None, str]]]:
    """Why published figures of a column have none of ours, and what is said about it, by row; None if they have one."""
    cells, _ = join_figures(load_paper("logic"), table, measured, models)
    reasons: dict[str, set[tuple[str | None, str]]] = {}
    for cell in cells:
        if cell.published.column == column:
            reasons.setdefault(cell.published.row, set()).add((cell.not_run, "" if cell.recomputed else cell.detail))
    return reasons


def ask_all(model: str = "linear") -> list[tuple[Any, ...]]:
    return [row for name in SIZES for row in ask(model, name, linear)]


def test_a_figure_of_a_data_set_needs_an_audit_of_it(tmp_path: Path) -> None:
    summaries = measure(tmp_path, "SummEval", ["linear"], ask_all())
    passages = measure(tmp_path, "NovelEval", ["linear"], ask_all())
    row, column, model_by_row = "Gemma-2-9B, direct", "NovelEval, H.", {"Gemma-2-9B": "linear"}
    assert list_reasons([summaries], "1", column, **model_by_row)[row] == {("no_audit", "NovelEval")}
    assert list_reasons([summaries, passages], "1", column, **model_by_row)[row] == {(None, "")}


def test_a_published_row_without_a_model_of_ours_is_not_run(tmp_path: Path) -> None:
    summaries = measure(tmp_path, "SummEval", ["linear"], ask_all())
    row = "Mistral-7B"
    assert list_reasons([summaries], "4", "PairS")[row] == {("no_counterpart", "Mistral-7B")}
    assert list_reasons([summaries], "4", "PairS", **{"Mistral-7B": "linear"})[row] == {(None, "")}


def test_agreement_with_people_needs_their_scores_or_labels(tmp_path: Path) -> None:
    model_by_row = {"Mistral-7B": "linear"}
    for column in ("H.", "PairS", "PairS calibrated"):
        without = measure(tmp_path, "SummEval", ["linear"], ask_all(), has_people=False)
        [reason, *_] = list_reasons([without], "4", column, **model_by_row)["Mistral-7B"]
        assert reason[0] == "no_value"
        assert "people" in reason[1]
        scored = measure(tmp_path, "SummEval", ["linear"], ask_all())
        assert list_reasons([scored], "4", column, **model_by_row)["Mistral-7B"] == {(None, "")}


@pytest.mark.parametrize(("wordings", "reason"), [(2, ("no_value", "it needs three wordings")), (3, (None, ""))])
def test_a_correlation_over_wordings_needs_three(tmp_path: Path, wordings: int, reason: tuple[str | None, str]) -> None:
    rows = [row for w in range(wordings) for n in SIZES for row in ask("linear", n, make_wording(n, w), w)]
    audit = measure(tmp_path, "SummEval-wordings", ["linear"], rows)
    reasons = list_reasons([audit], "figure-5", "SummEval, r of s_comm and H.")["linear"]
    assert {(not_run, detail.rpartition(": ")[2]) for not_run, detail in reasons} == {reason}


def test_wordings_that_do_not_differ_are_named(tmp_path: Path) -> None:
    """Here commutativity is 1 and agreement is 1 in each wording."""
    rows = [row for w in range(3) for n in SIZES for row in ask("linear", n, linear, w)]
    audit = measure(tmp_path, "SummEval-wordings", ["linear"], rows)
    [*reasons] = list_reasons([audit], "figure-5", "SummEval, r of s_comm and H.")["linear"]
    words = "all wordings have the same commutativity and the same agreement with people"
    assert {reason.rpartition(": ")[2] for _, reason in reasons} == {words}


def test_a_dash_has_a_figure_of_ours_only_with_a_model_and_a_misprint_too(tmp_path: Path) -> None:
    passages = measure(tmp_path, "MS-MARCO", ["linear"], ask_all())
    marco = list_reasons([passages], "5", "PairS", **{"zero-shot": "linear"})
    assert marco["REPAIR-ed data + Neg."] == {("not_published", "")}
    assert marco["Zero-shot inference"] == {(None, "")}
    marco = list_reasons([passages], "5", "PairS", **{"repaired-negated-marco": "linear"})
    assert marco["REPAIR-ed data + Neg."] == {(None, "")}
    events = measure(tmp_path, "CaTeRS-CoT", ["linear"], ask_all())
    reasons = list_reasons([events], "1", "CaTeRS, s_neg", **{"Phi-3-mini": "linear"})
    assert reasons["Phi-3-mini, CoT"] == {(None, "")}  # 78,7
