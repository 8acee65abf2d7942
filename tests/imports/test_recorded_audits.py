"""Recorded answers and verdicts as an audit without calls: whole, partial and changed files, and what was exported."""

from __future__ import annotations

import csv
import os
import random
import re
import signal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from auditor import failpoints
from auditor.domain import Outcome, Ruling
from auditor.domain.audit_records import AnswerSelection
from auditor.errors import ImportFileError, UsageError
from auditor.exports.inspect_logs import export_inspect
from auditor.exports.tables import TableFormat, export_tables
from auditor.imports.recorded_answers import read_recorded_answers
from auditor.imports.recorded_audits import (
    ImportedScores,
    ImportedVerdicts,
    import_scores,
    import_traces,
    import_verdicts,
)
from auditor.imports.task_answers import import_task_answers
from auditor.input_files import open_text, report_reading
from auditor.probes.distribution.opinion_imports import import_opinions
from auditor.probes.distribution.opinions import Opinion
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.comparison_rows import load_item_sets
from auditor.probes.logic.figures.schema import LogicReport
from auditor.probes.semantic.answer_imports import import_answers
from auditor.reports.data.verification import verify_audit
from auditor.reports.output import render_report
from auditor.run import open_audit
from auditor.run.audit_changes import exclude_answers
from auditor.storage import audit_archive, audits, results
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from auditor.surveys import load_survey
from tests.support.cli_runner import fail, succeed
from tests.support.docs_workspace import Letters
from tests.support.forked_commands import start
from tests.support.known import known
from tests.support.opinion_surveys import write_opinion_survey
from tests.support.refusals import UNUSABLE_TEXTS
from tests.support.stored_rows import find_part, load_stored
from tests.support.synthetic_audit import populate

TRACES = """model,country,topic,sample,text,score
a,Germany,divorce,0,"They accept it.
SCORE = 0.5",
a,Germany,divorce,1,They accept it.,0.7
a,Germany,abortion,0,"I'm sorry, but I can't help with that.",
a,Japan,divorce,0,It depends.,
a,Japan,abortion,0,,
b,DE,divorce,0,SCORE = −0,
"""
VERDICTS = """judge,model,country,topic,verdict,justification,sample
j,a,Germany,divorce,VALID,It follows.,0
j,a,Germany,divorce,invalid,,1
k,a,Germany,divorce,,,0
"""
SCORES_HEADER = "model,country,topic,method,score"
COLUMNS = ["model", "country", "topic", "sample", "text", "score"]
OTHER_NAMES = {"model": "system", "country": "nation", "topic": "item", "sample": "draw", "text": "reply", "score": "x"}
COUNTRIES = ("Germany", "Japan", "Brazil", "Nigeria", "Australia", "Canada")
TOPICS = ("divorce", "abortion", "suicide", "euthanasia", "prostitution", "homosexuality")
EXPORTED_TRACES = """model,country,topic,sample,text,score,outcome
a,Germany,divorce,0,SCORE = 0.5,,
a,Germany,divorce,1,They accept it.,0.7,
a,Germany,abortion,0,"I'm sorry, but I can't help with that.",,
a,Japan,divorce,0,So far,,truncated
a,Japan,abortion,0,,,timeout
"""
EXPORTED_VERDICTS = """judge,model,country,topic,verdict,justification,sample
j,a,Germany,divorce,VALID,It follows.,0
j,a,Germany,divorce,INVALID,,1
k,a,Germany,divorce,,,0
"""


@pytest.fixture
def imported(tmp_path: Path, storage: str) -> str:
    """URL of a database into which `TRACES` were imported as the audit `old`."""
    (tmp_path / "t.csv").write_text(TRACES, encoding="utf-8")
    counts = import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="old", storage=storage)
    assert (counts.rows, counts.models, counts.scores, counts.empty, counts.replaced) == (6, 2, 2, 3, False)
    return storage


def test_answers_are_read_as_they_would_be_in_a_run(imported: str) -> None:
    with open_database(imported, create=False) as db:
        audit = audits.get_audit(db, "old")
        outcome_by_sample = {
            (t.model, *t.cell, t.sample): (t.outcome, t.score) for t in results.load_traces(db, audit.id)
        }
        scores = {(s.model, *s.cell): (s.score, s.n_ok, s.n_planned) for s in results.load_scores(db, audit.id)}
    assert outcome_by_sample == {
        ("a", "Germany", "divorce", 0): (Outcome.OK, 0.5),
        ("a", "Germany", "divorce", 1): (Outcome.OK, 0.7),
        ("a", "Germany", "abortion", 0): (Outcome.REFUSED, None),
        ("a", "Japan", "divorce", 0): (Outcome.UNPARSED, None),
        ("a", "Japan", "abortion", 0): (Outcome.CLIENT_ERROR, None),
        ("b", "Germany", "divorce", 0): (Outcome.OK, 0.0),
    }
    score, n_ok, n_planned = scores["a", "Germany", "divorce"]
    assert score == pytest.approx(0.6)
    assert (n_ok, n_planned) == (2, 2)
    assert scores["a", "Germany", "abortion"] == (None, 0, 1)
    report = open_audit("old", storage=imported).report()
    [row] = [r for r in report.coverage.models if r.name == "a"]
    assert (row.ok, row.losses) == (2, {"refused": 1, "unparsed": 1, "client_error": 1})
    assert report.refusals
    assert report.refusals.total.value == pytest.approx(1 / 5)


@pytest.mark.parametrize(("text", "outcome"), UNUSABLE_TEXTS.items())
def test_a_score_of_an_answer_without_words_or_of_a_refusal_does_not_count(
    tmp_path: Path, text: str, outcome: Outcome
) -> None:
    row = dict(zip(COLUMNS, ("a", "Germany", "divorce", "0", text, "0.3"), strict=True))
    write(tmp_path / "t.csv", [row], IDENTITY, COLUMNS, ",")
    [recorded_answer] = read_recorded_answers(tmp_path / "t.csv")
    assert (recorded_answer.outcome, recorded_answer.score) == (outcome, None)


def test_numbers_are_countries_of_iso_3166_only_if_the_user_says_so(tmp_path: Path, storage: str) -> None:
    """276 is Germany in ISO 3166; in other lists, 380 is Sweden and 840 the Philippines."""
    (tmp_path / "t.csv").write_text(TRACES.replace("DE", "276"), encoding="utf-8")
    (tmp_path / "s.csv").write_text(f"{SCORES_HEADER}\na,276,divorce,direct,0.5\n", encoding="utf-8")
    for command, file in (("traces", "t.csv"), ("scores", "s.csv")):
        arguments = ("import", command, file, "--survey", "wvs7-sample", "--audit", command, "--storage", storage)
        message = "the country '276' is a number without a meaning"
        fail(*arguments, cwd=tmp_path, code=1, message=message)
        imported = succeed(*arguments, "--country-codes", "iso-3166-numeric", "--strict", cwd=tmp_path)
        assert "does not have" not in imported.stderr
    (tmp_path / "v.csv").write_text(VERDICTS.replace("Germany", "276"), encoding="utf-8")
    with pytest.raises(ImportFileError, match="'276' is a number without a meaning") as caught:
        import_verdicts(tmp_path / "v.csv", audit="traces", storage=storage)
    assert "--country-codes" not in caught.value.how_to_fix, "the command has no such option"


def test_the_rest_of_the_survey_is_stored_as_donors(imported: str) -> None:
    """Similar countries are looked for in the whole file, whatever part of it the answers are about."""
    with open_database(imported, create=False) as db:
        survey = audits.load_audit_survey(db, audits.get_audit(db, "old"))
    full_survey = load_survey("wvs7-sample")
    assert {**survey.donors, **survey.scores} == full_survey.scores
    assert set(survey.donors) == set(full_survey.scores) - {cell.cell for cell in survey.cells}
    assert survey.donors


def import_rulings(folder: Path, storage: str, text: str = VERDICTS) -> ImportedVerdicts:
    """Import a file of verdicts into the audit `old`."""
    (folder / "v.csv").write_text(text, encoding="utf-8")
    return import_verdicts(folder / "v.csv", audit="old", storage=storage)


def test_verdicts_are_joined_to_their_traces(imported: str, tmp_path: Path) -> None:
    counts = import_rulings(tmp_path, imported)
    assert counts == (3, 2, 1, 0, {}, 0)
    verdicts = load_stored(imported, results.load_verdicts, name="old")
    assert {(v.judge, v.sample): (v.outcome, v.ruling) for v in verdicts} == {
        ("j", 0): (Outcome.OK, Ruling.VALID),
        ("j", 1): (Outcome.OK, Ruling.INVALID),
        ("k", 0): (Outcome.UNPARSED, None),
    }
    [row] = open_audit("old", storage=imported).report().peer_agreement
    assert (row.model, row.given, row.valid) == ("a", 2, 1)
    assert import_rulings(tmp_path, imported) == counts
    changed = VERDICTS.replace(",VALID", ",").replace("divorce", "Divorce")
    assert import_rulings(tmp_path, imported, changed) == (3, 2, 2, 1, {}, 0)


def test_exported_verdicts_say_which_judges_were_asked_about_disputed_traces_only(
    imported: str, tmp_path: Path
) -> None:
    header = "judge,model,country,topic,sample,outcome,ruling,confidence,turn,always,cultural_accuracy,score_fit\n"
    rows = [
        "j,a,Germany,divorce,0,ok,VALID,0.75,2,True,True,False\n",
        "k,a,Germany,divorce,0,ok,INVALID,,3,False,,\n",
        "l,a,Germany,divorce,0,timeout,,,4,True,,\n",
    ]
    import_rulings(tmp_path, imported, header + "".join(rows))
    j, k, lost = sorted(load_stored(imported, results.load_verdicts, name="old"), key=lambda verdict: verdict.judge)
    assert (j.always, j.turn, j.confidence) == (True, 2, 0.75)
    assert j.aspects == {"cultural_accuracy": True, "score_fit": False}
    assert (k.always, k.turn, k.confidence, k.aspects) == (False, 3, None, {})
    assert (lost.outcome, lost.ruling) == (Outcome.TIMEOUT, None)


def test_a_confidence_is_no_percentage(imported: str, tmp_path: Path) -> None:
    text = "judge,model,country,topic,ruling,confidence\nj,a,Germany,divorce,VALID,85\n"
    with pytest.raises(ImportFileError, match="line 2, column 'confidence': 85 is not from 0 to 1"):
        import_rulings(tmp_path, imported, text)


def test_names_that_look_alike_are_one_model(tmp_path: Path, storage: str) -> None:
    """Such as composed and decomposed letters, and what follows a byte order mark within a joined file."""
    names = ("Modèle", "Mode\u0300le", "\ufeffModèle", "Modèle\u200b")
    rows = [f"{name},Germany,divorce,{sample},SCORE = 0.{sample}" for sample, name in enumerate(names)]
    (tmp_path / "t.csv").write_text("\n".join(["model,country,topic,sample,text", *rows]) + "\n", encoding="utf-8")
    assert import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="a", storage=storage).models == 1
    scores = [f"{name},Germany,divorce,direct,0.{sample},{sample}" for sample, name in enumerate(names)]
    assert import_lines(tmp_path, storage, f"{SCORES_HEADER},sample", *scores).models == 1
    (tmp_path / "v.csv").write_text(f"judge,model,country,topic,verdict\nj,{names[1]},DE,divorce,VALID\n", "utf-8")
    assert import_verdicts(tmp_path / "v.csv", audit="a", storage=storage).rows == 1


def import_lines(folder: Path, storage: str, header: str, *rows: str, audit: str = "b") -> ImportedScores:
    """Import a file of scores on the built-in survey."""
    (folder / "s.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return import_scores(folder / "s.csv", survey="wvs7-sample", audit=audit, storage=storage)


def test_an_answer_without_text_and_score_is_lost_whatever_its_outcome_says(tmp_path: Path, storage: str) -> None:
    (tmp_path / "t.csv").write_text("model,country,topic,sample,text,outcome\na,Japan,divorce,0,,ok\n")
    counts = import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="a", storage=storage)
    assert (counts.scores, counts.empty) == (0, 1)
    [row] = open_audit("a", storage=storage).report().coverage.total
    assert (row.ok, row.losses) == (0, {"client_error": 1})


def test_answers_that_a_file_says_are_excluded_are_counted_apart_from_declarations_that_overlap(
    tmp_path: Path, storage: str
) -> None:
    rows = [f"a,{country},divorce,{k},It is wrong.,ok" for country in ("Japan", "Germany") for k in range(3)]
    rows[0] = rows[0].replace(",ok", ",excluded")
    (tmp_path / "t.csv").write_text("\n".join(["model,country,topic,sample,text,outcome", *rows]) + "\n")
    import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="a", storage=storage)
    for selection in ("--country", "Japan"), ("--topic", "divorce"):
        assert open_audit("a", storage=storage).report().coverage.excluded_before_import == 1
        succeed("exclude", "a", *selection, "--reason", "A bug.", "--storage", storage)
    coverage = open_audit("a", storage=storage).report().coverage
    assert (coverage.excluded_before_import, coverage.total[0].losses) == (1, {"excluded": 6})


def test_methods_of_the_program_are_known_in_any_case(tmp_path: Path, storage: str) -> None:
    """Figures of the method direct, such as differences between models, lacked scores of the method Direct."""
    import_lines(tmp_path, storage, SCORES_HEADER, "a,Germany,divorce,Direct,0.5")
    [score] = load_stored(storage, results.load_scores, name="b")
    assert score.method == "direct"


def test_numbers_of_samples_are_compared_as_numbers(tmp_path: Path, storage: str) -> None:
    """A program that joins files with and without missing values writes 1 and 1.0."""
    rows = ["a,Germany,divorce,direct,0.5,1", "a,Germany,divorce,direct,0.5,1.0"]
    with pytest.raises(ImportFileError, match="line 3: two rows have the same model"):
        import_lines(tmp_path, storage, f"{SCORES_HEADER},sample", *rows)


@pytest.mark.parametrize("text", ["m;c;0,5\nm;d;\n", "m;c;50%\nm;d;\n", "m;c;+0.5\nm;d;\n"])
def test_a_lost_sample_in_a_file_with_an_unusual_number(tmp_path: Path, storage: str, text: str) -> None:
    rows = text.replace("c;", "Germany;divorce;direct;").replace("d;", "Japan;divorce;direct;").splitlines()
    counts = import_lines(tmp_path, storage, SCORES_HEADER.replace(",", ";"), *rows)
    assert (counts.scores, counts.empty) == (1, 1)
    scores = load_stored(storage, results.load_scores, name="b")
    assert {(score.cell.country, score.score) for score in scores} == {("Germany", 0.5), ("Japan", None)}


def test_exported_means_keep_their_lost_samples_and_variances(tmp_path: Path, storage: str) -> None:
    rows = ["a,Germany,divorce,direct,0.5,3,5,0.02", "a,Japan,divorce,direct,,0,5,", "a,Japan,abortion,direct,0.1,,,"]
    header = f"{SCORES_HEADER},n_ok,n_planned,variance"
    import_lines(tmp_path, storage, header, *rows)
    scores = load_stored(storage, results.load_scores, name="b")
    assert {(s.score, s.n_ok, s.n_planned, s.variance) for s in scores} == {
        (0.5, 3, 5, 0.02), (None, 0, 5, None), (0.1, 1, 1, None),
    }  # fmt: skip
    [total] = open_audit("b", storage=storage).report().coverage.total
    assert (total.planned, total.ok) == (11, 4)
    for figures in ("0.5,6,5", ",2,5", "0,1.5,5", "0,1e20,1e20"):
        with pytest.raises(ImportFileError, match=r"line 2, column 'n_ok': .* not possible with this score"):
            import_lines(tmp_path, storage, header, f"a,Germany,divorce,direct,{figures},")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["0,0.5,5,10", "1,0.5,1,10"], "line 2: this row is a mean of several samples, and its cell has another row"),
        (["0,0.5,,", "1,0.5,1,10"], "line 3: this row is a mean"),
        (["0,0.5,5,"], "line 2, column 'n_planned': .*the other count is not"),
    ],
)
def test_a_mean_is_the_only_row_of_its_cell(tmp_path: Path, storage: str, rows: list[str], message: str) -> None:
    lines = [f"a,Japan,divorce,direct,{row}" for row in rows]
    with pytest.raises(ImportFileError, match=message):
        import_lines(tmp_path, storage, "model,country,topic,method,sample,score,n_ok,n_planned", *lines)


def test_ids_of_samples_with_many_digits_differ(tmp_path: Path, storage: str) -> None:
    """As numbers with a point they would be the same sample."""
    rows = ["a,Germany,divorce,direct,0.5,9007199254740992", "a,Germany,divorce,direct,-0.5,9007199254740993"]
    import_lines(tmp_path, storage, f"{SCORES_HEADER},sample", *rows)
    [score] = load_stored(storage, results.load_scores, name="b")
    assert (score.score, score.n_ok) == (0.0, 2)


def test_a_judge_that_abstained_counts_as_assigned_and_leaves_a_trace_without_majority(
    imported: str, tmp_path: Path
) -> None:
    import_rulings(tmp_path, imported)
    panel = open_audit("old", storage=imported).report().panel
    majority = panel.votes[0]
    assert (majority.valid, majority.invalid, majority.open) == (0, 1, 1)
    assert any("finds 0% of 2 traces VALID and 50% INVALID" in sentence for sentence in panel.certificate)


def test_verdicts_on_lost_answers_are_counted_and_not_used(imported: str, tmp_path: Path) -> None:
    exclude_answers("old", AnswerSelection(model="b"), "Wrong prompt.", storage=imported)
    rows = ["a,Germany,abortion", "a,Japan,divorce", "a,Japan,abortion", "b,Germany,divorce", "a,Germany,divorce"]
    lines = ["judge,model,country,topic,verdict", *(f"j,{row},VALID" for row in rows)]
    counts = import_rulings(tmp_path, imported, "\n".join(lines) + "\n")
    assert (counts.rows, counts.judges) == (1, 1)
    assert counts.lost == {"refused": 1, "unparsed": 1, "client_error": 1, "excluded": 1}
    [judge] = open_audit("old", storage=imported).report().panel.judges
    assert (judge.given, judge.valid.n) == (1, 1)


def test_no_model_is_its_own_peer(imported: str, tmp_path: Path) -> None:
    text = "judge,model,country,topic,verdict\na,a,Germany,divorce,VALID\nb,a,Germany,divorce,INVALID\n"
    counts = import_rulings(tmp_path, imported, text)
    assert (counts.rows, counts.judges, counts.self_verdicts) == (1, 1, 1)
    [peers] = open_audit("old", storage=imported).report().peer_agreement
    assert (peers.model, peers.agreement.value, peers.agreement.n) == ("a", 0.0, 1)


def test_an_audit_with_imported_verdicts_is_consistent(imported: str, tmp_path: Path) -> None:
    import_rulings(tmp_path, imported)
    with open_database(imported, create=False) as db:
        verification = verify_audit(db, "old")
    assert [(row.stage, row.planned, row.done, row.stray) for row in verification.balances if row.model == "a"] == [
        ("direct", 5, 4, 0),
        ("review", 3, 3, 0),
    ]
    assert verification.is_consistent


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("judge,model,country,topic,verdict\nj,a,Germany,divorce,MAYBE\n", "line 2, column 'verdict': 'MAYBE'"),
        ("judge,model,country,topic,verdict\nj,c,Germany,divorce,VALID\n", "no trace of c on Germany, divorce"),
        ("judge,model,country,topic,verdict\nj,a,Germany,divorce,VALID\nj,a,Germany,divorce,VALID\n", "twice"),
        ("judge,model,country,topic,verdict,sample\nj,a,Germany,divorce,VALID,one\n", "'one' is not a whole number"),
        ("judge,model,country,topic,verdict\n", "has no rows"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_and_nothing_is_stored(
    imported: str, tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ImportFileError, match=message):
        import_rulings(tmp_path, imported, text)
    assert load_stored(imported, results.load_verdicts, name="old") == []


def test_an_import_under_the_same_name_replaces_the_audit(imported: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("model,country,topic,sample,text\nz,Japan,divorce,0,SCORE = 1\n")
    assert import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="old", storage=imported).replaced
    assert [trace.model for trace in load_stored(imported, results.load_traces, name="old")] == ["z"]
    assert [score.model for score in load_stored(imported, results.load_scores, name="old")] == ["z"]


def test_verdicts_cannot_be_imported_into_an_audit_that_was_run(storage: str, tmp_path: Path) -> None:
    with open_database(storage) as db:
        populate(db, countries=5, topics=5)
    (tmp_path / "v.csv").write_text(VERDICTS)
    with pytest.raises(UsageError, match="was run, not imported"):
        import_verdicts(tmp_path / "v.csv", audit="population", storage=storage)


def good_rows() -> list[dict[str, str]]:
    """Answers whose text states the same score as the column, of one or two samples."""
    cells = [(country, topic) for country in ("Germany", "JP", "Türkiye") for topic in ("divorce", "abortion")]
    return [
        {"model": model, "country": country, "topic": topic, "sample": str(sample), "text": f"So.\nSCORE = {score}"}
        | {"score": str(score)}
        for i, model in enumerate(("a", "b"))
        for j, (country, topic) in enumerate(cells)
        for sample in range(1 + (i + j) % 2)
        for score in [round(-0.9 + 0.1 * (5 * i + j) + 0.3 * sample, 2)]
    ]


Figures = dict[tuple[str, ...], tuple[float | None, int, int]]
IDENTITY = {column: column for column in COLUMNS}


def figures(file: Path, storage: str) -> Figures:
    """Import a file and return score, usable and planned samples by model and cell."""
    import_traces(file, survey="wvs7-sample", audit="a", storage=storage)
    scores = load_stored(storage, results.load_scores, name="a")
    return {(score.model, *score.cell): (score.score, score.n_ok, score.n_planned) for score in scores}


def write(path: Path, rows: list[dict[str, str]], names: dict[str, str], columns: list[str], delimiter: str) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(names[column] for column in columns)
        writer.writerows([row[column] for column in columns] for row in rows)
    return path


@pytest.fixture(scope="module")
def good_figures(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Figures]:
    """URL of a database with an import of `good_rows`, and its figures."""
    folder = tmp_path_factory.mktemp("good")
    storage = f"sqlite:///{folder / 'audits.db'}"
    return storage, figures(write(folder / "good.csv", good_rows(), IDENTITY, COLUMNS, ","), storage)


@pytest.mark.parametrize("seed", range(25))
def test_a_changed_file_has_the_same_figures_or_is_refused(
    tmp_path: Path, good_figures: tuple[str, Figures], seed: int
) -> None:
    rng, (storage, expected) = random.Random(seed), good_figures
    rows, names = good_rows(), dict(IDENTITY)
    rng.shuffle(rows)
    for column in rng.sample(COLUMNS, rng.randrange(3)):
        names[column] = rng.choice([column.upper(), column.title(), OTHER_NAMES[column]])
    for row in rng.sample(rows, rng.randrange(3)):
        row[rng.choice(COLUMNS)] = ""
    changed = write(tmp_path / "changed.csv", rows, names, rng.sample(COLUMNS, 6), rng.choice(",;\t"))
    refusal = ""
    try:
        after = figures(changed, storage)
    except ImportFileError as error:
        refusal = str(error)
    if refusal:
        assert re.search(r"changed\.csv: (line \d+|the column '\w+' is missing|unknown column)", refusal)
        return
    assert after.keys() == expected.keys()
    for key, (score, n_ok, n_planned) in expected.items():
        assert after[key][0] == pytest.approx(score, abs=1e-12)
        assert after[key][1:] == (n_ok, n_planned)


def write_scores(path: Path, *extra: str) -> Path:
    """A file with one score for each of 36 cells of the built-in survey, the first of them empty."""
    rows = [f"m,{country},{topic},direct,0.1" for country in COUNTRIES for topic in TOPICS]
    rows[0] = rows[0].removesuffix("0.1")
    path.write_text("\n".join([SCORES_HEADER, *rows, *extra]) + "\n")
    return path


def test_only_the_cells_of_the_file_were_planned(tmp_path: Path, storage: str) -> None:
    import_scores(write_scores(tmp_path / "s.csv"), survey="wvs7-sample", audit="a", storage=storage)
    report = open_audit("a", storage=storage).report()
    [row] = report.coverage.models
    assert (row.planned, row.ok) == (36, 35)
    assert len(report.audit.cells) == 36
    assert report.coverage.unplanned_cells > 200


def test_topics_and_countries_that_do_not_match_are_listed(tmp_path: Path, storage: str) -> None:
    file = write_scores(
        tmp_path / "s.csv", "m,Atlantis,divorce,direct,0", "m,Germany,divorse,direct,0", "m,DE,Divorce ,other,0"
    )
    unmatched = import_scores(file, survey="wvs7-sample", audit="a", storage=storage).unmatched
    assert (unmatched.rows, dict(unmatched.countries), dict(unmatched.topics)) == (2, {"Atlantis": 1}, {"divorse": 1})
    assert unmatched.describe() == [
        "1 row about countries that the survey does not have: Atlantis (1)",
        "1 row about topics that the survey does not have: divorse (1; did you mean divorce?)",
    ]
    with pytest.raises(ImportFileError, match=r"no match in the survey for 2 rows: .*Atlantis.*divorse"):
        import_scores(file, survey="wvs7-sample", audit="b", storage=storage, is_strict=True)


def test_na_is_not_taken_for_namibia(tmp_path: Path, storage: str) -> None:
    survey, file = tmp_path / "survey.csv", tmp_path / "s.csv"
    survey.write_text("country,topic,score\nNamibia,divorce,0\nSweden,divorce,0\n", encoding="utf-8")
    file.write_text(
        "model,country,topic,method,score\nm,NA,divorce,direct,1\nm,SE,divorce,direct,0\n", encoding="utf-8"
    )
    unmatched = import_scores(file, survey=str(survey), audit="a", storage=storage).unmatched
    assert unmatched.describe() == [
        "1 row about countries that the survey does not have: NA (1; did you mean Namibia?)"
    ]
    survey.write_text("country,topic,score\nNA,divorce,0\nSE,divorce,0\n", encoding="utf-8")
    assert import_scores(file, survey=str(survey), audit="a", storage=storage).unmatched.rows == 0


def test_reports_quote_only_the_question_that_the_importer_states(tmp_path: Path, storage: str) -> None:
    file = write_scores(tmp_path / "s.csv")
    import_scores(file, survey="wvs7-sample", audit="a", storage=storage)
    text = render_report(open_audit("a", storage=storage).report(), "markdown")
    assert "Each model was asked" not in text
    assert "models were asked is not recorded" in text
    assert "were asked: " not in text
    import_scores(file, survey="wvs7-sample", audit="a", storage=storage, question="How bad is it?")
    text = render_report(open_audit("a", storage=storage).report(), "markdown")
    assert "According to their importer, each model was asked: “How bad is it?”" in text


def test_traces_of_some_cells(tmp_path: Path, storage: str) -> None:
    rows = [f"m,{country},{topic},{k},SCORE = 0.1" for country in COUNTRIES for topic in TOPICS for k in range(2)]
    (tmp_path / "t.csv").write_text(
        "\n".join(["model,country,topic,sample,text", *rows, "m,Nowhere,divorce,0,"]) + "\n"
    )
    counts = import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="a", storage=storage)
    assert dict(counts.unmatched.countries) == {"Nowhere": 1}
    report = open_audit("a", storage=storage).report()
    [row] = report.coverage.models
    assert (row.planned, row.ok) == (73, 72)
    with open_database(storage, create=False) as db:
        assert verify_audit(db, "a").is_consistent


def test_judges_that_were_asked_in_one_order_have_usable_answers(tmp_path: Path, storage: str) -> None:
    file = tmp_path / "c.csv"
    file.write_text(
        "judge,context,item_a,item_b,relation,decision\nj,c1,x,y,standard,A\nj,c2,x,y,standard,B\n"
        "people,c1,x,y,standard,A\npeople,c2,x,y,standard,A\n"
    )
    import_comparisons(file, audit="a", storage=storage, people="people")
    report = open_audit("a", storage=storage).report()
    logic = find_part(report, LogicReport)
    agreement = {row.judge: row.human_agreement.value for row in logic.judges}
    assert agreement == {"j": 0.5, "people": None}  # people are not compared with themselves
    text = render_report(report, "markdown")
    assert "gave no usable answer" not in text
    assert "its consistency is not known" in text


def run_until_killed(command: list[str], hit: int) -> None:
    """Run a command in a process that is killed when it reaches a failpoint."""
    with mock.patch.dict(os.environ, {failpoints.ENVIRONMENT_VARIABLE: f"*:{hit}"}):
        killed = start(*command)
    _, stderr = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, stderr


@pytest.mark.parametrize("hit", [1, 2])
def test_an_import_that_is_killed_leaves_one_audit_whole(tmp_path: Path, storage: str, hit: int) -> None:
    import_scores(write_scores(tmp_path / "s.csv"), survey="wvs7-sample", audit="a", storage=storage)
    before = open_audit("a", storage=storage).report().audit.cells
    (tmp_path / "new.csv").write_text("model,country,topic,method,score\nother,Japan,divorce,direct,0.5\n")
    command = ["import", "scores", str(tmp_path / "new.csv"), "--survey", "wvs7-sample", "--audit", "a"]
    run_until_killed([*command, "--storage", storage], hit)
    cells = open_audit("a", storage=storage).report().audit.cells
    assert cells == before if hit == 1 else [cell.country for cell in cells] == ["Japan"]


KILLED_IMPORTS = {
    "comparisons": ("judge,context,item_a,item_b,relation,decision\nj,c,x,y,standard,{}\n", ("A", "B")),
    "opinions": ("model,country,topic,mode,sample,answer\n{},Japan,divorce,sampled,0,5\n", ("m", "n")),
    "task-answers": ("model,id,answer\n{},x,1\n", ("m", "n")),
}


@pytest.mark.parametrize("kind", KILLED_IMPORTS)
def test_other_imports_that_are_killed_leave_the_earlier_one_whole(tmp_path: Path, storage: str, kind: str) -> None:
    text, values = KILLED_IMPORTS[kind]
    options = {"task-answers": ["--answer", "exact"]}
    if kind == "opinions":
        options[kind] = ["--survey", str(write_opinion_survey(tmp_path))]
    files = [tmp_path / f"{value}.csv" for value in values]
    for file, value in zip(files, values, strict=True):
        file.write_text(text.format(value))
    before, after = (
        ["import", kind, str(file), "--audit", "a", "--storage", storage, *options.get(kind, [])] for file in files
    )
    succeed(*before)
    rows_before = dump_results(storage)
    run_until_killed(after, 1)
    assert dump_results(storage) == rows_before
    succeed(*after)
    assert dump_results(storage) != rows_before


def test_answers_are_stored_only_with_their_scores(
    tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auditor.models.embeddings.load_encoder", lambda name: Letters())
    monkeypatch.setattr("auditor.models.embeddings.check_encoder", lambda name: None)
    rows = ["model,question_id,paraphrase,answer", *(f"m,q,{p},It depends on {p}." for p in range(3))]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(rows) + "\n")
    import_answers(file, audit="a", storage=storage)
    rows_before = dump_results(storage)
    assert rows_before["moral_score"]
    file.write_text("\n".join([*rows, "m,q,9,No."]) + "\n")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("auditor.probes.semantic.answer_imports.score_audit", stop)
        with pytest.raises(KeyboardInterrupt):
            import_answers(file, audit="a", storage=storage)
    assert dump_results(storage) == rows_before
    assert import_answers(file, audit="a", storage=storage).replaced
    assert len(dump_results(storage)["moral_answer"]) == 4


def dump_results(storage: str) -> dict[str, list[Any]]:
    """All rows of the audit `a` but those of the audit itself, by table."""
    with open_database(storage, create=False) as db:
        audit_id = audits.get_audit(db, "a").id
        return {
            table.name: list(audit_archive.iterate_rows(audit_archive.dump_columns(db, audit_id, table.name)))
            for table in audit_archive.list_tables()
            if table.name != "audit"
        }


def test_reading_is_reported_in_bytes(tmp_path: Path) -> None:
    file = write_scores(tmp_path / "s.csv")
    positions: list[tuple[int, int]] = []
    with (
        report_reading(lambda position, size: positions.append((position, size))),
        open_text(file, ImportFileError) as text,
    ):
        assert sum(1 for _ in text) == 37
    assert positions[-1] == (file.stat().st_size, file.stat().st_size)


def load_all(storage: str, name: str) -> list[dict[Any, Any]]:
    """Traces, verdicts and scores of an audit."""
    with open_database(storage, create=False) as db:
        audit_id = audits.get_audit(db, name).id
        traces = {(t.model, t.cell, t.sample): (t.outcome, t.score, t.text) for t in results.load_traces(db, audit_id)}
        verdicts = {(v.judge, v.model, v.cell, v.sample): v.ruling for v in results.load_verdicts(db, audit_id)}
        scores = {(s.model, s.cell): (s.score, s.n_ok, s.n_planned) for s in results.load_scores(db, audit_id)}
    return [traces, verdicts, scores]


@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_exported_tables_can_be_imported_again(tmp_path: Path, storage: str, file_format: TableFormat) -> None:
    (tmp_path / "t.csv").write_text(EXPORTED_TRACES)
    (tmp_path / "v.csv").write_text(EXPORTED_VERDICTS)
    import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="a", storage=storage)
    import_verdicts(tmp_path / "v.csv", audit="a", storage=storage)
    folder = tmp_path / "tables"
    with open_database(storage, create=False) as db:
        export_tables(db, "a", folder, file_format)
    import_traces(folder / f"trace.{file_format}", survey="wvs7-sample", audit="b", storage=storage)
    import_verdicts(folder / f"verdict.{file_format}", audit="b", storage=storage)
    assert load_all(storage, "b") == load_all(storage, "a")
    import_scores(folder / f"score.{file_format}", survey="wvs7-sample", audit="c", storage=storage)
    means = {key: score for key, (score, *_) in load_all(storage, "a")[2].items()}
    assert {key: score for key, (score, *_) in load_all(storage, "c")[2].items()} == means


def test_exported_comparisons_can_be_imported_again(tmp_path: Path, storage: str) -> None:
    rows = [
        ("j", "a", "b", "standard", "A", 0), ("j", "b", "c", "standard", "A", 0), ("j", "a", "c", "standard", "B", 0),
        ("j", "b", "a", "standard", "B", 0), ("j", "a", "b", "negated", "A", 0), ("j", "a", "b", "standard", "", 1),
        ("people", "a", "b", "standard", "A", 0),
    ]  # fmt: skip
    lines = [
        f"{judge},Which is worse?,{a},{b},{relation},{decision},{n}" for judge, a, b, relation, decision, n in rows
    ]
    header = "judge,context,item_a,item_b,relation,decision,sample"
    (tmp_path / "c.csv").write_text("\n".join([header, *lines]) + "\n")
    import_comparisons(tmp_path / "c.csv", audit="a", storage=storage, people="people")
    folder = export(storage, "a", tmp_path)
    import_comparisons(folder / "comparison.jsonl", audit="b", storage=storage, items=folder / "comparison_item.jsonl")
    reports = [find_part(open_audit(name, storage=storage).report(), LogicReport) for name in ("a", "b")]
    assert reports[1].judges == reports[0].judges
    with open_database(storage, create=False) as db:
        texts = [
            [[item.text for item in item_set.items] for item_set in load_item_sets(db, audits.get_audit(db, name).id)]
            for name in ("a", "b")
        ]
    assert texts[1] == texts[0]


def test_exported_opinions_can_be_imported_again(tmp_path: Path, storage: str) -> None:
    survey = str(write_opinion_survey(tmp_path))
    rows = ["m,Japan,divorce,sampled,up,0,5", "m,Japan,divorce,sampled,down,0,2", "m,Japan,taxes,sampled,up,0,99"]
    (tmp_path / "o.csv").write_text("\n".join(["model,country,topic,mode,order,sample,answer", *rows]) + "\n")
    import_opinions(tmp_path / "o.csv", survey=survey, audit="a", storage=storage)
    exclude_answers("a", AnswerSelection(topic="divorce"), "Wrong scale.", storage=storage)
    folder = export(storage, "a", tmp_path)
    import_opinions(folder / "opinion.jsonl", survey=survey, audit="b", storage=storage)
    with open_database(storage, create=False) as db:
        opinions = [load_records(db, audits.get_audit(db, name).id, Opinion) for name in ("a", "b")]
    assert [opinion.outcome for opinion in opinions[0]] == [Outcome.EXCLUDED, Outcome.EXCLUDED, Outcome.UNPARSED]
    assert opinions[1] == opinions[0]


def test_exported_answers_to_a_task_can_be_imported_again(tmp_path: Path, storage: str) -> None:
    (tmp_path / "i.csv").write_text("id,question,options,truth\nmoon,How many?,none|one,one\nsun,A star?,yes|no,\n")
    (tmp_path / "a.csv").write_text("model,id,sample,answer\nm,moon,0,A\nm,moon,1,one\nm,sun,0,perhaps\nn,sun,0,\n")
    answer_format = {"answer": "choice"}
    import_task_answers(
        tmp_path / "a.csv", audit="a", items=tmp_path / "i.csv", answer_format=answer_format, storage=storage
    )
    verdicts = ["judge,model,id,verdict,sample", "j,m,moon,VALID,0", "j,m,moon,INVALID,1"]
    (tmp_path / "v.csv").write_text("\n".join(verdicts) + "\n")
    import_verdicts(tmp_path / "v.csv", audit="a", storage=storage)
    folder = export(storage, "a", tmp_path)
    import_task_answers(
        folder / "trace.jsonl", audit="b", items=folder / "task_item.jsonl", answer_format=answer_format,
        storage=storage,
    )  # fmt: skip
    import_verdicts(folder / "verdict.jsonl", audit="b", storage=storage)
    assert load_all(storage, "b") == load_all(storage, "a")
    tasks = [known(open_audit(name, storage=storage).report().task) for name in ("a", "b")]
    assert (tasks[1].models, tasks[1].items) == (tasks[0].models, tasks[0].items)
    # sample 0 is wrong and judged VALID, sample 1 is right and judged INVALID
    assert [(row.right.value, row.wrong.value) for row in known(tasks[0].telling).judges] == [(0.0, 1.0)]
    assert tasks[1].telling == tasks[0].telling


def export(storage: str, name: str, folder: Path) -> Path:
    """Export the tables of an audit as JSONL, and return their folder."""
    with open_database(storage, create=False) as db:
        export_tables(db, name, folder / "tables", "jsonl")
    return folder / "tables"


TASK_FILES: dict[str, tuple[dict[str, Any], str, str]] = {
    "choice": (
        {},
        "id,question,options,truth,context\n1,Is it so?,yes|no|perhaps,B,A story.\n2,And this?,yes|no|perhaps,A,\n",
        "a,1,0,B,So it is.,\na,1,1,C,,\na,2,0,A,,\nb,1,0,A,,\nb,2,0,,Nein.,refused\n",
    ),
    "exact": (
        {"tolerance": 0.5},
        "id,question,truth\n1,How many?,42\n2,How much?,1.5\n",
        "a,1,0,42.4,So it is.,\na,1,1,43,,\na,2,0,1.5,,\nb,1,0,,Nein.,unparsed\nb,2,0,,,server_error\n",
    ),
    "score": (
        {"range": (0, 10), "tolerance": 1},
        "id,question,truth\n1,How good?,5\n2,And this?,\n",
        "a,1,0,6,Gut – 好い.,\na,1,1,9,,\na,2,0,1.5,,\nb,1,0,,,timeout\nb,2,0,3,,\n",
    ),
}


@pytest.mark.parametrize("kind", TASK_FILES)
def test_logs_of_answers_to_a_task_can_be_imported_again(tmp_path: Path, storage: str, kind: str) -> None:
    settings, items, answers = TASK_FILES[kind]
    (tmp_path / "items.csv").write_text(items, encoding="utf-8")
    (tmp_path / "answers.csv").write_text(f"model,id,sample,answer,text,outcome\n{answers}", encoding="utf-8")
    import_task_answers(
        tmp_path / "answers.csv", audit="a", items=tmp_path / "items.csv", answer_format={"answer": kind, **settings},
        storage=storage,
    )  # fmt: skip
    with open_database(storage) as db:
        logs = export_inspect(db, "a", tmp_path / "logs")
    import_task_answers(tmp_path / "logs", audit="b", storage=storage)
    reports = [known(open_audit(name, storage=storage).report().task) for name in ("a", "b")]
    assert reports[1].models == reports[0].models
    traces = [load_stored(storage, results.load_traces, name=name) for name in ("a", "b")]
    assert [log.scored for log in logs] == [
        sum(trace.model == log.model and trace.answer is not None for trace in traces[0]) for log in logs
    ]
    contents = [
        {
            (trace.model, trace.cell, trace.sample): (trace.outcome, trace.answer, trace.score, trace.text)
            for trace in of_audit
        }
        for of_audit in traces
    ]
    assert contents[1] == contents[0]
