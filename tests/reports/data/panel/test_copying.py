"""The report on judges that depend on each other: from labelled traces, copies, and what copies settle."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from auditor.config.sections import PanelSection
from auditor.domain import (
    AlteredTraceVerdict,
    AnswerKind,
    Cell,
    CellScore,
    Conflict,
    ConflictKind,
    ConflictState,
    Outcome,
    Ruling,
    Task,
    TaskItem,
    Verdict,
)
from auditor.reports.data.build import build_report
from auditor.reports.data.panel.copying import count_copied_conflicts, count_copied_majorities
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix, build_verdict_matrix, build_vote_rows
from auditor.reports.data.report_source import load_source
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.panel import build_copying_tables
from auditor.storage import audits, results
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from auditor.storage.review_queue import ReviewedConflict
from auditor.tasks import survey_from_task
from tests.reports.data.panel.panel_reports import panel_of
from tests.reports.sections.node_text import titled_cells_of
from tests.support.known import known
from tests.support.rater_panels import CopyingWorld
from tests.support.synthetic_audit import populate

JUDGES = ["alder", "birch", "cedar", "dogwood", "elm"]


def copy_judge(db: Database, audit: Audit, copy: str, original: str = "alder") -> None:
    """Give one judge the rulings of another on all traces that both may judge."""
    verdicts = results.load_verdicts(db, audit.id)
    rulings = {(v.model, v.cell, v.sample): v for v in verdicts if v.judge == original}
    copies = [
        replace(v, outcome=source.outcome, ruling=source.ruling)
        for v in verdicts
        if v.judge == copy and (source := rulings.get((v.model, v.cell, v.sample))) is not None
    ]
    save_records(db, audit.id, copies)


def list_planted_faults(world: CopyingWorld, cells: list[Cell]) -> Iterator[AlteredTraceVerdict]:
    """The verdicts of a simulated panel as those on traces with a planted fault."""
    panel = world.draw(0)
    countries, topics = sorted({c.country for c in cells}), sorted({c.topic for c in cells})
    places = list(zip(panel.units["country"], panel.units["topic"], strict=True))
    for (row, judge), (sample, (country, topic)) in product(enumerate(JUDGES), enumerate(places)):
        ruling = Ruling.VALID if panel.verdicts[row, sample] else Ruling.INVALID
        cell = Cell(countries[country], topics[topic])
        yield AlteredTraceVerdict("negated_score", judge, "author", cell, sample, Outcome.OK, ruling)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the database of an audit of five models that judge each other on 8 x 6 cells, two samples each."""
    folder = tmp_path_factory.mktemp("copying")
    with open_database(f"sqlite:///{folder}/audit.db") as db:
        populate(db, models=5, samples=2)
    return folder


@pytest.fixture
def db(folder: Path, tmp_path: Path) -> Iterator[Database]:
    """A copy of the database."""
    shutil.copytree(folder, tmp_path / "copy")
    with open_database(f"sqlite:///{tmp_path}/copy/audit.db") as db:
        yield db


@pytest.fixture
def audit(db: Database) -> Audit:
    return audits.get_audit(db, "population")


def test_verdicts_alone_do_not_show_copying(db: Database, audit: Audit) -> None:
    panel = panel_of(db, audit.name)
    copying = panel.copying
    assert len(copying.pairs) == 10
    assert {pair.verdict for pair in copying.pairs} == {"cannot be told from verdicts"}
    assert {pair.excess.reason for pair in copying.pairs} == {"no labelled traces (run `auditor experiment planted`)"}
    assert (copying.label_source, copying.labels, copying.groups, copying.effective_of) == (None, 0, [], [])
    assert (copying.traces_settled_by_copies, copying.conflicts_settled_by_copies) == (0, 0)
    assert [row.rule for row in panel.votes] == ["majority", "weighted by agreement with the rest", "dawid-skene"]
    reference, *others = [row.differs for row in panel.votes]
    assert (reference.value, reference.reason) == (None, "it is the reference for the other rules")
    assert all(differs.value is not None for differs in others)
    assert (copying.alike, copying.alpha_without_alike) == ([], None)
    pairs, _ = build_copying_tables(copying)
    assert {row["Finding"] for row in titled_cells_of(pairs)} == {"verdicts alone cannot show it"}


def test_judges_that_agree_on_99_percent_are_copies_and_share_one_vote(db: Database, audit: Audit) -> None:
    copy_judge(db, audit, "birch")
    report = build_report(db, audit.name)
    panel = report.panel
    [pair] = [pair for pair in panel.copying.pairs if pair.verdict == "copies"]
    assert (pair.first, pair.second, pair.agreement.value, pair.agreement.n >= 200) == ("alder", "birch", 1.0, True)
    assert panel.copying.groups == [["alder", "birch"]]
    assert panel.votes[1].rule == "copies split"
    assert panel.votes[1].weights == {"alder": 0.5, "birch": 0.5, "cedar": 1, "dogwood": 1, "elm": 1}
    weights = panel.votes[2].weights
    assert max(weights[judge] for judge in JUDGES[:2]) < min(weights[judge] for judge in JUDGES[2:])
    without = known(panel.copying.alpha_without_alike)
    assert (without.value or 1) < (panel.krippendorff_alpha.value or 0)
    [caution] = [text for text in list_cautions(report) if "depend on each other" in text]
    assert "since their verdicts are equal: alder, birch" in caution
    assert f"alpha = {without.value:.2f}" in caution


def test_a_copy_that_judges_alone_has_the_vote_that_both_share_elsewhere(db: Database, audit: Audit) -> None:
    """Of birch and cedar, which are copies, one judges the traces of the other."""
    copy_judge(db, audit, "cedar", "birch")
    row = panel_of(db, audit.name).votes[2]
    verdicts: dict[tuple[str, Cell, int], dict[str, Ruling]] = {}
    for v in results.load_verdicts(db, audit.id):
        if v.ruling is not None:
            verdicts.setdefault((v.model, v.cell, v.sample), {})[v.judge] = v.ruling
    outcomes = Counter[str]()
    for (author, _, _), rulings in verdicts.items():
        weights = {judge: row.weights[judge] for judge in JUDGES if judge != author}
        if author in ("birch", "cedar"):
            weights["birch" if author == "cedar" else "cedar"] *= 2
        half = sum(weights.values()) / 2 * (1 + 1e-9)
        won = [side for side in Ruling if sum(weights[j] for j, ruling in rulings.items() if ruling is side) > half]
        outcomes[won[0] if won else "open"] += 1
    assert (row.valid, row.invalid, row.open) == tuple(outcomes[name] for name in (*Ruling, "open"))


def test_a_majority_of_copies_is_counted(db: Database, audit: Audit) -> None:
    for copy in ("birch", "cedar"):
        copy_judge(db, audit, copy)
    panel = panel_of(db, audit.name)
    assert panel.copying.groups == [["alder", "birch", "cedar"]]
    verdicts = {
        (v.judge, v.model, v.cell, v.sample): v.ruling
        for v in results.load_verdicts(db, audit.id)
        if v.outcome is Outcome.OK
    }
    # On the traces of dogwood and elm there are four judges: three copies, and one other, whose vote is half of all.
    # On the traces of a copy two copies of four judges are no majority, alone or with one vote.
    expected = sum(
        verdicts.get((other, model, cell, sample)) is not ruling
        for model, other in (("dogwood", "elm"), ("elm", "dogwood"))
        for (judge, author, cell, sample), ruling in verdicts.items()
        if (judge, author) == ("alder", model)
    )
    assert panel.copying.traces_settled_by_copies == expected > 0


def test_planted_faults_show_errors_that_are_more_alike_and_keep_both_votes(db: Database, audit: Audit) -> None:
    world = CopyingWorld(countries=8, topics=6, copies=(1, 2))
    cells = [verdict.cell for verdict in results.load_verdicts(db, audit.id)]
    save_records(db, audit.id, list(list_planted_faults(world, cells)))
    panel = panel_of(db, audit.name)
    copying = panel.copying
    assert (copying.label_source, copying.labels) == ("planted faults", 400)
    verdicts = {(pair.first, pair.second): pair.verdict for pair in copying.pairs}
    assert verdicts.pop(("birch", "cedar")) == "errors more alike"
    assert set(verdicts.values()) == {"independent as far as shown"}
    assert (copying.groups, copying.alike, copying.effective_of) == ([], [["birch", "cedar"]], JUDGES)
    assert copying.alpha_without_alike is not None
    assert 2 < (copying.effective_judges.value or 0) < 4.2
    pairs, _ = build_copying_tables(copying)
    assert [row["Finding"] for row in titled_cells_of(pairs)] == ["errors more alike", *["no dependence shown"] * 9]


@pytest.mark.parametrize(("other_side", "expected"), [(True, 1), (False, 0)])
def test_conflicts_that_copies_settle_alone(db: Database, audit: Audit, other_side: bool, expected: int) -> None:
    """alder, birch and cedar are copies; with dogwood and elm in conflict they alone have votes on it."""
    for copy in ("birch", "cedar"):
        copy_judge(db, audit, copy)
    verdicts = [v for v in results.load_verdicts(db, audit.id) if v.outcome is Outcome.OK]
    cell = next(
        v.cell
        for v in verdicts
        if v.judge == "cedar"
        and v.model == "dogwood"
        and any(w.judge == "cedar" and w.model == "elm" and w.cell == v.cell for w in verdicts)
        and any(w.judge == "dogwood" and w.model == "cedar" and w.cell == v.cell for w in verdicts)
    )
    left, right = ("dogwood", "elm") if not other_side else ("cedar", "elm")
    # Between dogwood and elm only the copies vote, who agree; between cedar and elm also dogwood, against two copies.
    rulings = {
        (judge, side): Ruling.VALID if side == left else Ruling.INVALID
        for judge in ("alder", "birch", "cedar")
        for side in (left, right)
    }
    rulings |= {("dogwood", side): Ruling.INVALID if side == left else Ruling.VALID for side in (left, right)}
    new = [
        Verdict(judge, side, cell, sample, Outcome.OK, ruling)
        for (judge, side), ruling in rulings.items()
        if judge != side and not (judge == "dogwood" and side == "dogwood")
        for sample in range(2)
    ]
    save_records(db, audit.id, new)
    conflict = Conflict(
        cell, left, right, 0.5, -0.5, ConflictKind.BINARY, ConflictState.MAJORITY, 3, votes_left=2, votes_right=1,
        winner=left,
    )  # fmt: skip
    results.replace_conflicts(db, audit.id, [conflict])
    assert panel_of(db, audit.name).copying.conflicts_settled_by_copies == expected


def test_of_a_task_verdicts_on_other_answers_are_no_votes_on_a_conflict(db: Database, audit: Audit) -> None:
    """dogwood votes as the copies do: its verdicts on the second samples are on answers that are not in conflict."""
    item = TaskItem("q", "Which one?", options=("a", "b"))
    task = Task("items.csv", AnswerKind.CHOICE, "", items={"q": item})
    conflict = Conflict(
        item.cell, "cedar", "elm", None, None, ConflictKind.ANSWERS, ConflictState.MAJORITY, 3, votes_left=3,
        winner="cedar", answer_left="a", answer_right="b",
    )  # fmt: skip
    rulings = [Ruling.VALID, Ruling.INVALID]
    verdicts = [
        Verdict(judge, side, item.cell, sample, Outcome.OK, rulings[(side == "elm") != (sample == 1 and not is_copy)])
        for judge, is_copy in (("alder", True), ("birch", True), ("dogwood", False))
        for side, sample in product(("cedar", "elm"), range(2))
    ]
    save_records(db, audit.id, verdicts)
    scores = [
        CellScore(side, item.cell, "direct", None, answer=answer) for side, answer in (("cedar", "a"), ("elm", "b"))
    ]
    answers = {
        (side, item.cell, i): answer
        for side, texts in (("cedar", "ab"), ("elm", "ba"))
        for i, answer in enumerate(texts)
    }
    source = replace(
        load_source(db, audit.name),
        survey=survey_from_task(task),
        scores=scores,
        task_answers=answers,
        reviewed_conflicts=[ReviewedConflict(conflict, ConflictStatus.MAJORITY)],
    )
    assert count_copied_conflicts(source, build_verdict_matrix(source), [[0, 1], [2], [3], [4]]) == 0


def test_judges_that_an_adaptive_panel_did_not_ask_are_no_abstentions(db: Database, audit: Audit) -> None:
    """Two copies settle the traces of dogwood and elm before the others are asked, who may agree."""
    for copy in ("birch", "cedar"):
        copy_judge(db, audit, copy)
    source = load_source(db, audit.name)
    config = known(source.config).model_copy(update={"panel": PanelSection(adaptive=True)})
    matrix = build_verdict_matrix(replace(source, config=config))
    groups = [[0, 1, 2], [3], [4]]
    rows = build_vote_rows(matrix=matrix, source=source, groups=groups)
    assert [row.rule for row in rows if row.reason is None] == ["majority", "dawid-skene"]
    assert count_copied_conflicts(replace(source, config=config), matrix, groups) is None
    full = build_verdict_matrix(source)
    others = full.is_assigned & ~np.isnan(full.all_verdicts)
    others[:3] = False
    asked = VerdictMatrix(config, matrix.judges, matrix.votes)
    asked.__dict__["all_verdicts"] = np.where(others, np.nan, full.all_verdicts)
    assert count_copied_majorities(full, groups) > 0
    assert count_copied_majorities(asked, groups) == 0
    failures = [(matrix.judges[judge], matrix.traces[trace]) for judge, trace in np.argwhere(others)]
    failed = replace(asked, missing_votes=failures)
    failed.__dict__["all_verdicts"] = asked.all_verdicts
    assert count_copied_majorities(failed, groups) > 0
