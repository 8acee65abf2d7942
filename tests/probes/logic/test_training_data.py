"""Rows for preference tuning, and the data card that says how each stage was made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from auditor.domain.terms import short_id
from auditor.errors import UsageError
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.comparisons import Relation
from auditor.probes.logic.repair import RepairStage, list_flips, repair_comparisons, select_stage, summarize_stages
from auditor.probes.logic.repair_command import summarize_repairs
from auditor.probes.logic.training_data import (
    AnswerFormat,
    RepairSettings,
    build_data_card,
    build_training_rows,
    check_item_texts,
    write_training_rows,
)
from auditor.reports.document import Document
from auditor.reports.output import render_document
from auditor.storage.database import Database, open_database
from tests.support.markdown_html import render_pages

RANKED = "every pair was given the answer that follows from the ranking, in both orders"
REVERSED = (
    "Of each judge's decided answers to the standard question, 10% were drawn at random and reversed, to simulate "
    "errors (seed 3)."
)


@pytest.mark.parametrize("form", ["preference", "chat"])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_rows_for_preference_tuning(db: Database, tmp_path: Path, form: str, suffix: str) -> None:
    with db:
        repair_outcome = repair_comparisons(db, "judged")
    rows = build_training_rows(select_stage(repair_outcome, "repaired"))
    known = int((~np.isnan(repair_outcome[0].repair.preferences)).sum())
    assert len(rows) == 2 * known
    assert sum(row.flipped for row in rows) == len(list_flips(repair_outcome))
    card = Document("Data card", "Rows", "", [])
    write_training_rows(rows, tmp_path / f"rows{suffix}", form, card)  # type: ignore[arg-type]
    file = tmp_path / f"rows{suffix}"
    read = (
        pq.read_table(file).to_pylist() if suffix == ".parquet" else list(map(json.loads, file.open(encoding="utf-8")))
    )
    assert len(read) == len(rows)
    for record, row in zip(read, rows, strict=True):
        text = record["prompt"] if form == "preference" else record["prompt"][-1]["content"]
        chosen = record["chosen"] if form == "preference" else record["chosen"][0]["content"]
        assert f"A: {row.item_a}\nB: {row.item_b}\n" in text
        assert ("worse" in text) == (row.relation is Relation.NEGATED)
        assert chosen == row.chosen != row.rejected


def test_answers_as_letters_ask_for_a_letter(db: Database) -> None:
    with db:
        answers = select_stage(repair_comparisons(db, "judged"), "repaired", negated=False)
    rows = build_training_rows(answers, "letter")
    assert {row.relation for row in rows} == {Relation.STANDARD}
    assert {(row.chosen, row.rejected) for row in rows} == {("A", "B"), ("B", "A")}
    assert all("Answer with one letter only" in row.messages[0].content for row in rows)


def test_items_whose_text_is_only_a_shortened_id_are_refused(storage: str, tmp_path: Path) -> None:
    """Comparisons of an older file have shortened ids instead of texts; a file of items has the texts."""
    long = {name: f"{name} " + " ".join(f"word{i}" for i in range(40)) for name in ("one", "two")}
    ids = {name: short_id(text) for name, text in long.items()}
    rows = tmp_path / "rows.csv"
    rows.write_text(
        f"judge,context,item_a,item_b,relation,decision\npeople,post,{ids['one']},{ids['two']},standard,A\n", "utf-8"
    )
    items = tmp_path / "items.csv"
    items.write_text("context,item,text\n" + "".join(f"post,{ids[name]},{long[name]}\n" for name in long), "utf-8")
    for file, is_refused in ((None, True), (items, False)):
        import_comparisons(rows, audit="old", storage=storage, items=file)
        with open_database(storage, create=False) as db:
            repaired = repair_comparisons(db, "old")
        if is_refused:
            with pytest.raises(UsageError, match="only the beginning of the item 'one word0"):
                check_item_texts(repaired)
        else:
            check_item_texts(repaired)
            prompt = build_training_rows(select_stage(repaired, "raw"))[0].messages[-1].content
            assert all(text in prompt for text in long.values())


@dataclass(frozen=True)
class Case:
    """A stage and the sentences that its card has, and has not."""

    stage: RepairStage
    noise: float
    sentences: tuple[str, ...]
    absent: tuple[str, ...]


def make_card(
    db: Database, stage: RepairStage, noise: float, *, is_negated: bool = True, answers: AnswerFormat = "letter"
) -> str:
    """The card of the rows of one stage, as text in one line."""
    with db:
        repaired = repair_comparisons(db, "judged", noise=noise, seed=3)
    rows = build_training_rows(select_stage(repaired, stage, negated=is_negated, seed=3), answers)
    stages = summarize_stages(repaired, k=4, seed=3)
    source = RepairSettings(stage, "win-loss", noise, 4, 3, is_negated, answers)
    card = render_document(
        build_data_card("judged", rows, source, summarize_repairs(repaired, stages), stages), "markdown"
    )
    assert f"{len(rows)} rows for preference tuning" in card
    assert card.count("transitivity (K = 4)") == 1
    return " ".join(card.split())


@pytest.mark.parametrize(
    "case",
    [
        Case("raw", 0.0, ("Nothing was repaired",), (RANKED, "reversed, to simulate", "agree with itself")),
        Case("raw", 0.1, ("Nothing was repaired",), (RANKED, REVERSED)),
        Case("perturbed", 0.1, ("Nothing was repaired", REVERSED), (RANKED, "agree with itself")),
        Case("repaired", 0.0, (RANKED, "agree with itself, not with people"), ("reversed, to simulate",)),
        Case("repaired", 0.1, (RANKED, REVERSED), ("Nothing was repaired",)),
        Case("size-matched", 0.1, (RANKED, REVERSED, "drawn at random (seed 3). `flipped`"), ("Nothing was",)),
    ],
)
def test_the_text_is_that_of_the_stage(db: Database, case: Case) -> None:
    card = make_card(db, case.stage, case.noise)
    assert [sentence for sentence in case.sentences if sentence not in card] == []
    assert [sentence for sentence in case.absent if sentence in card] == []
    assert f"Settings: stage {case.stage}, method win-loss, noise {case.noise:g}, seed 3, negated yes," in card


def test_names_from_outside_stay_texts(db: Database) -> None:
    with db:
        repaired = repair_comparisons(db, "judged", noise=0.0, seed=3)
    stages = summarize_stages(repaired, k=4, seed=3)
    summaries = [
        summary._replace(judge="<img src=x> | [x](http://evil.example)")
        for summary in summarize_repairs(repaired, stages)
    ]
    source = RepairSettings("raw", "win-loss", 0.0, 4, 3, True, "letter")
    card = build_data_card("<script>alert(1)</script>", [], source, summaries, stages)
    for page in render_pages(render_document(card, "markdown")):
        assert not {element.tag for element in page.elements} & {"script", "img", "a"}
        assert "<script>alert(1)</script>" in page.text
        assert "<img src=x> | [x](http://evil.example)" in page.text


def test_the_negated_form_is_named_where_it_is_written(db: Database) -> None:
    assert "in both orders and in its negated form" in make_card(db, "repaired", 0.0)
    assert "negated form" not in make_card(db, "repaired", 0.0, is_negated=False)


def test_the_form_of_the_answers_and_their_prompt_are_named(db: Database) -> None:
    assert "Answers are letters, `A` or `B`." in make_card(db, "repaired", 0.0)
    assert "which also allows TIE" in make_card(db, "repaired", 0.0, answers="json")
