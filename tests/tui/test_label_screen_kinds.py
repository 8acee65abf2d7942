"""The labelling screen on pairs of answers, on comparisons, and on traces of a task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.domain.labels import LabelKind
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession
from auditor.storage import audits, labels
from auditor.storage.database import Database, open_database
from auditor.tui import rating_screen
from auditor.tui.label_screen import LabelApp
from auditor.tui.settings import ReviewSettings
from tests.support.label_audits import (
    PAIR_AUDIT,
    SURVEY_AUDIT,
    TASK_AUDIT,
    run_pair_audit,
    run_survey_audit,
    run_task_audit,
)
from tests.tui.app_driver import Driver


@pytest.fixture(scope="module")
def shared_db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder: Path = tmp_path_factory.mktemp("label-kinds")
    url = f"sqlite:///{folder}/audits.db"
    run_survey_audit(url, samples=1)
    run_task_audit(url, folder)
    run_pair_audit(url, folder)
    with open_database(url) as db:
        yield db


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
@pytest.mark.parametrize(
    ("audit_name", "kind", "keys", "values", "words"),
    [
        (
            PAIR_AUDIT,
            LabelKind("answer_pair"),
            "1234",
            ["yes", "no", "unsure"],
            ["   1 yes   2 no   3 unsure", "First answer:", "Second answer:"],
        ),
        (
            SURVEY_AUDIT,
            LabelKind("comparison"),
            "1234",
            ["A", "B", "TIE", "unsure"],
            ["question?   1 A   2 B   3 neither   4 unsure", "Country: ", "A: ", "B: "],
        ),
        (
            TASK_AUDIT,
            LabelKind.TRACE,
            "123",
            ["VALID", "INVALID", "unsure"],
            ["Can reasoning and answer stand?   1 valid   2 invalid   3 unsure", "What is ", "y logic: –   z score: –"],
        ),
    ],
    ids=["answer_pair", "comparison", "task"],
)
async def test_each_kind_has_its_text_and_its_keys(
    shared_db: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    audit_name: str,
    kind: LabelKind,
    keys: str,
    values: list[str],
    words: list[str],
    size: tuple[int, int],
) -> None:
    monkeypatch.setattr(rating_screen, "DECISION_DELAY_S", 0.0)
    audit = audits.get_audit(shared_db, audit_name)
    draw_label_sample(shared_db, audit, kind, 6)
    rater = f"rater {size[0]}"
    session = LabellingSession(shared_db, audit, rater, kind, second_rater_share=1.0)
    app = LabelApp(session, ReviewSettings(tmp_path))
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, pilot)
        await driver.settle()
        for word in words:
            assert word in driver.text
        assert max(map(len, driver.text.splitlines())) <= size[0]
        assert ("optional:" in driver.text) == (kind is LabelKind.TRACE)
        await driver.press(*keys)
    stored = [label for label in labels.load_labels(shared_db, audit.id, kind) if label.rater == rater]
    assert [label.value for label in stored] == values
    assert all(label.text_hash for label in stored)
