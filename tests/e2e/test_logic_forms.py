"""The probe `logic` on sets from a file: people's labels, drawn sets, repeats beside letters, and the paper's form."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.config import AuditConfig
from auditor.domain import Answer, ComparisonChoice, Outcome
from auditor.errors import ImportFileError
from auditor.metrics.logic.consistency import decisions
from auditor.probes.logic import comparison_rows as comparisons
from auditor.probes.logic.comparisons import Comparison, Item, ItemSet
from auditor.probes.logic.item_sets import draw_sets
from auditor.probes.logic.questions import LogicQuestion, parse_comparison
from auditor.probes.logic.settings import LogicProbe
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.joining import join_figures
from auditor.replications.presets import load_paper
from auditor.run import run_audit
from auditor.run.fingerprints import fingerprint
from auditor.storage.records import load_records
from tests.e2e.test_logic import section
from tests.support.audit_configs import config
from tests.support.comparison_judge import choice_reply, letter_reply, read_question, scripted
from tests.support.fake_server import FakeServer, Reply, Request
from tests.support.planted_comparisons import SIZES, ask, linear, make_wording, measure
from tests.support.stored_rows import load_stored

FRUIT = ("apple", "cherry", "pear", "plum")
N_PAIRS = len(FRUIT) * (len(FRUIT) - 1) // 2


def file_config(
    url: str, folder: Path, models: int = 1, n_sets: int = 1, human: bool = False, **probe: Any
) -> AuditConfig:
    """Config of an audit whose only probe compares the fruit of a file; the best is the last in `FRUIT`.

    Args:
        n_sets: number of sets with the same items.
        human: whether the file has scores, by which the best is the first in `FRUIT`.
    """
    rows = [f"set {i},{item},{-FRUIT.index(item) if human else ''}" for i in range(n_sets) for item in FRUIT]
    file = folder / "items.csv"
    file.write_text("\n".join(["context,item,human", *rows]) + "\n", encoding="utf-8")
    logic = {"items": str(file), "samples": 0, "negated": False} | probe
    return config(url, models, survey=None, judges=[], probes={"logic": logic})


def write_labels(folder: Path, *rows: str) -> str:
    file = folder / "people.csv"
    file.write_text("\n".join(["context,item_a,item_b,decision", *rows]) + "\n", encoding="utf-8")
    return str(file)


def test_labels_of_people_are_compared_with_answers(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = scripted(FRUIT.index)
    # People agree with the judge on two pairs, contradict it on one, and tie on one; two have no label.
    labels = ["set 0,plum,apple,A", "set 0,apple,cherry,B", "set 0,pear,plum,A", "set 0,cherry,pear,TIE"]
    asking = file_config(server.url, tmp_path, people=write_labels(tmp_path, *labels))
    run_audit(asking, storage=storage)
    agreement = section(storage).judges[0].human_agreement
    assert agreement.value == pytest.approx(4 / 6)
    assert (agreement.n, section(storage).labelled_pairs) == (6, 4)
    # Other labels are used without a question.
    n_requests = len(server.requests)
    run_audit(file_config(server.url, tmp_path, people=write_labels(tmp_path, *labels[:2])), storage=storage)
    assert len(server.requests) == n_requests
    row = section(storage).judges[0]
    assert (row.human_agreement.value, row.human_agreement.n, section(storage).labelled_pairs) == (1.0, 4, 2)
    # Without labels there is no agreement.
    run_audit(file_config(server.url, tmp_path), storage=storage)
    assert len(server.requests) == n_requests
    assert (section(storage).judges[0].human_agreement.value, section(storage).labelled_pairs) == (None, 0)


def test_a_label_takes_precedence_over_scores(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = scripted(FRUIT.index)
    people = write_labels(tmp_path, "set 0,plum,apple,A")
    run_audit(file_config(server.url, tmp_path, human=True, people=people), storage=storage)
    row = section(storage).judges[0]
    # The scores contradict the judge on every pair.
    assert (row.human_agreement.value, row.human_agreement.n) == (1 / N_PAIRS, 2 * N_PAIRS)


def test_unusable_labels_are_refused_before_the_first_call(server: FakeServer, storage: str, tmp_path: Path) -> None:
    people = write_labels(tmp_path, "set 0,plum,apple,A", "set 0,plum,grape,A")
    with pytest.raises(ImportFileError, match="line 3: the context 'set 0' has no item 'grape'"):
        run_audit(file_config(server.url, tmp_path, people=people), storage=storage)
    with pytest.raises(ImportFileError, match=r"missing\.csv"):
        run_audit(file_config(server.url, tmp_path, people=str(tmp_path / "missing.csv")), storage=storage)
    with pytest.raises(ValueError, match=r"probes\.logic\.people: labels are for a file of items"):
        config(server.url, probes={"logic": {"people": people}})
    assert not server.requests


def test_sets_are_drawn_by_seed(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = scripted(FRUIT.index)
    asking = file_config(server.url, tmp_path, n_sets=8, sets=3)
    run_audit(asking, storage=storage)
    logic, n_requests = section(storage), len(server.requests)
    assert (logic.sets, logic.max_sets, n_requests) == (3, 3, 3 * 2 * N_PAIRS)
    run_audit(asking, storage=storage)
    assert len(server.requests) == n_requests
    assert section(storage).contexts == logic.contexts
    # A larger sample asks about the additional sets only.
    run_audit(file_config(server.url, tmp_path, n_sets=8, sets=4), storage=storage)
    assert set(logic.contexts) < set(section(storage).contexts)
    assert len(server.requests) == 4 * 2 * N_PAIRS


def test_drawn_sets_depend_on_the_seed_and_keep_their_order() -> None:
    sets = [ItemSet(f"set {i}", "", "preference", (Item("a", ""), Item("b", ""))) for i in range(50)]
    drawn = [draw_sets(sets, 10, seed) for seed in range(200)]
    assert all(sorted(part, key=sets.index) == part and len(part) == 10 for part in drawn)
    counts = Counter(item_set.context for part in drawn for item_set in part)
    assert len(counts) == 50
    assert max(counts.values()) < 65  # expected 40, with a standard deviation of 5.7
    assert set(map(id, draw_sets(sets[::-1], 10, 3))) == set(map(id, drawn[3]))
    assert draw_sets(sets, None, 0) == draw_sets(sets, 60, 0) == sets


def letters_and_reasons(request: Request) -> Reply:
    """Judge a names the better item; b and c err more often where they reason, and in some letters."""
    question = read_question(request)
    noise = {"scripted-a": 0.0, "scripted-b": 0.2, "scripted-c": 0.4}[request.body["model"]]
    is_first_better = FRUIT.index(question.first) > FRUIT.index(question.second)
    names_first = is_first_better != (request.draw("noise") < noise)
    if request.schema is None:
        return letter_reply(0.9 if names_first else 0.1)
    return choice_reply(request, "A" if names_first else "B")


def test_repeats_reason_where_first_answers_are_letters(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = letters_and_reasons
    probe: dict[str, Any] = {"answer": "probability", "k": [3], "samples": 10, "sampled_pairs": 3}
    asking = file_config(server.url, tmp_path, 3, n_sets=3, **probe, sample_answer="cot", form="paper")
    run_audit(asking, storage=storage)
    letters = [r for r in server.requests if r.schema is None]
    reasoned = [r for r in server.requests if r.schema is not None]
    assert len(letters) == 3 * 3 * 2 * N_PAIRS
    assert len(reasoned) == 3 * 3 * 3 * 10
    assert {r.schema for r in reasoned} == {"ReasonedBinaryPreference"}
    assert {r.body["temperature"] for r in reasoned} == {0.7}
    stored = load_stored(storage, load_records, Comparison)
    assert all((c.probability is None) == (c.sample > 0) for c in stored)
    logic = section(storage)
    assert [row.self_agreement.n for row in logic.judges] == [9] * 3
    agreement = [row.self_agreement.value or 0 for row in logic.judges]
    assert agreement[0] == 1.0 > agreement[1] > agreement[2]
    links = {link.averaged: link.r.value for link in logic.links if link.x == "transitivity (K = 3)"}
    pooled = [(row.transitivity[0].share.value, row.self_agreement.value) for row in logic.judges]
    means = [(row.transitivity[0].instances.value, row.instances.self_agreement.value) for row in logic.judges]
    for r, figures in ((links["pooled"], pooled), (links["instances"], means)):
        assert r == pytest.approx(np.corrcoef(np.array(figures, dtype=float).T)[0, 1])
    # Without the setting the same letters are asked, and nothing is repeated.
    n_requests = len(server.requests)
    run_audit(file_config(server.url, tmp_path, 3, n_sets=3, **probe), storage=storage)
    assert len(server.requests) == n_requests


def test_the_form_of_the_paper_has_no_tie(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = lambda request: choice_reply(request, "TIE" if read_question(request).first == "apple" else "A")
    run_audit(file_config(server.url, tmp_path, form="paper", cot=True), storage=storage)
    # Unreadable answers make the program ask for text instead of a schema too.
    assert {r.schema for r in server.requests} - {None} == {"ReasonedBinaryPreference"}
    assert not [r for r in server.requests if "TIE" in r.text or "words" in r.text]
    row = section(storage).judges[0]
    assert (row.ties, row.losses) == (0, {Outcome.UNPARSED.value: len(FRUIT) - 1})


@pytest.mark.parametrize(
    ("form", "n_ties", "commutativity", "transitivity"),
    [("paper", 0, (0.0, 0.0, 2 * N_PAIRS), True), ("standard", 4 * N_PAIRS, (None, None, 0), False)],
)
def test_equal_probabilities_name_the_first_item_in_the_form_of_the_paper(
    server: FakeServer, storage: str, tmp_path: Path, form: str, n_ties: int, commutativity: Any, transitivity: bool
) -> None:
    """Algorithm 1: P >= 1/2 is a preference for the first item; so is P = 1/2 in the negated form."""
    server.script = lambda _: letter_reply(0.5)
    asking = file_config(server.url, tmp_path, form=form, answer="probability", negated=True, k=[3])
    run_audit(asking, storage=storage)
    stored = load_stored(storage, load_records, Comparison)
    assert {c.probability for c in stored} == {0.5}
    assert {c.decision for c in stored} == {ComparisonChoice.FIRST if form == "paper" else ComparisonChoice.TIE}
    assert len(stored) == 4 * N_PAIRS
    row = section(storage).judges[0]
    assert (row.commutativity.value, row.negation.value, row.negation.n) == commutativity
    assert row.ties == n_ties
    assert (row.transitivity[0].share.value is not None) == transitivity


@pytest.mark.parametrize(
    ("probability", "decision"), [(0.5, "A"), (0.5 - 1e-12, "A"), (0.5 + 1e-12, "A"), (0.4999, "B"), (0.5001, "A")]
)
def test_rounding_errors_do_not_decide_in_the_form_of_the_paper(probability: float, decision: str) -> None:
    comparison = parse_letter(probability, LogicProbe(form="paper", answer="probability"))
    value = comparisons.preference_value(comparison)
    assert comparison.decision == decision
    assert (decisions(np.array(value)) == 1) == (decision == "A")
    assert value == pytest.approx(probability, abs=1e-8)
    ordinary = parse_letter(probability, LogicProbe(answer="probability"))
    assert comparisons.preference_value(ordinary) == ordinary.probability


def parse_letter(probability: float, probe: LogicProbe) -> Comparison:
    """The comparison from an answer by the probabilities of its letters."""
    text = json.dumps([("A", math.log(probability)), ("B", math.log(1 - probability))])
    answer = Answer("key", Outcome.OK, text)
    item_set = ItemSet("set", "", "preference", (Item("a", "a"), Item("b", "b")))
    return parse_comparison(answer, probe, "judge", item_set, LogicQuestion(0, 0, 1))


def test_summaries_are_compared_by_coherence_in_english(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = scripted(FRUIT.index)
    asking = file_config(server.url, tmp_path, relation="coherence", negated=True)
    assert fingerprint(asking) != fingerprint(file_config(server.url, tmp_path, relation="relevance", negated=True))
    run_audit(asking, storage=storage)
    assert all("Text: set 0\nA: " in r.text for r in server.requests)
    questions = {r.text.rsplit("\n", 1)[-1] for r in server.requests}
    assert questions == {f"Which of the two is the {word} coherent summary of the text?" for word in ("more", "less")}
    assert section(storage).judges[0].negation.value == 1.0
    for settings in ({"relation": "coherence"}, {"form": "paper"}):
        with pytest.raises(ValueError, match=r"exists in English only\. How to fix: Set language = 'en', or remove"):
            config(server.url, language="de", survey=None, probes={"logic": {"items": "items.csv", **settings}})


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
