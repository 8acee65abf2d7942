"""The data card says how the rows of each stage were made."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from auditor.probes.logic.repair import RepairStage, repair_comparisons, select_stage, summarize_stages
from auditor.probes.logic.repair_command import summarize_repairs
from auditor.probes.logic.training_data import AnswerFormat, RepairSettings, build_data_card, build_training_rows
from auditor.reports.output import render_document
from auditor.storage.database import Database
from tests.support.markdown_html import render_pages

RANKED = "every pair was given the answer that follows from the ranking, in both orders"
REVERSED = (
    "Of each judge's decided answers to the standard question, 10% were drawn at random and reversed, to simulate "
    "errors (seed 3)."
)


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
