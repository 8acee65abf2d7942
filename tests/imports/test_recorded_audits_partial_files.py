"""Files about some cells of a survey: what they name was planned, and what does not match the survey is listed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import ImportFileError
from auditor.imports.recorded_audits import import_scores, import_traces
from auditor.input_files import open_text, report_reading
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.figures.schema import LogicReport
from auditor.probes.semantic.answer_imports import import_answers
from auditor.reports.output import render_report
from auditor.run import open_audit
from auditor.storage import audit_archive, audits
from auditor.storage.database import open_database
from tests.support.cli_runner import auditor
from tests.support.docs_workspace import Letters
from tests.support.opinion_surveys import write_opinion_survey

COUNTRIES = ("Germany", "Japan", "Brazil", "Nigeria", "Australia", "Canada")
TOPICS = ("divorce", "abortion", "suicide", "euthanasia", "prostitution", "homosexuality")


def write_scores(path: Path, *extra: str) -> Path:
    """A file with one score for each of 36 cells of the built-in survey, the first of them empty."""
    rows = [f"m,{country},{topic},direct,0.1" for country in COUNTRIES for topic in TOPICS]
    rows[0] = rows[0].removesuffix("0.1")
    path.write_text("\n".join(["model,country,topic,method,score", *rows, *extra]) + "\n")
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
    rows = [f"m,{country},{topic},0,SCORE = 0.1" for country in COUNTRIES for topic in TOPICS]
    (tmp_path / "t.csv").write_text(
        "\n".join(["model,country,topic,sample,text", *rows, "m,Nowhere,divorce,0,"]) + "\n"
    )
    counts = import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="a", storage=storage)
    assert dict(counts.unmatched.countries) == {"Nowhere": 1}
    report = open_audit("a", storage=storage).report()
    [row] = report.coverage.models
    assert (row.planned, row.ok) == (37, 36)


def test_judges_that_were_asked_in_one_order_have_usable_answers(tmp_path: Path, storage: str) -> None:
    file = tmp_path / "c.csv"
    file.write_text(
        "judge,context,item_a,item_b,relation,decision\nj,c1,x,y,standard,A\nj,c2,x,y,standard,B\n"
        "people,c1,x,y,standard,A\npeople,c2,x,y,standard,A\n"
    )
    import_comparisons(file, audit="a", storage=storage, people="people")
    report = open_audit("a", storage=storage).report()
    logic = report.find(LogicReport)
    assert logic is not None
    agreement = {row.judge: row.human_agreement.value for row in logic.judges}
    assert agreement == {"j": 0.5, "people": None}  # people are not compared with themselves
    text = render_report(report, "markdown")
    assert "gave no usable answer" not in text
    assert "its consistency is not known" in text


@pytest.mark.parametrize("hit", [1, 2])
def test_an_import_that_is_killed_leaves_one_audit_whole(tmp_path: Path, storage: str, hit: int) -> None:
    import_scores(write_scores(tmp_path / "s.csv"), survey="wvs7-sample", audit="a", storage=storage)
    before = open_audit("a", storage=storage).report().audit.cells
    (tmp_path / "new.csv").write_text("model,country,topic,method,score\nother,Japan,divorce,direct,0.5\n")
    command = ["import", "scores", str(tmp_path / "new.csv"), "--survey", "wvs7-sample", "--audit", "a"]
    environment = {**os.environ, "AUDITOR_FAILPOINT": f"*:{hit}"}
    killed = subprocess.run(
        [sys.executable, "-m", "auditor", *command, "--storage", storage],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert killed.returncode != 0
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
    assert auditor(*before).returncode == 0
    rows_before = dump_results(storage)
    killed = subprocess.run(
        [sys.executable, "-m", "auditor", *after],
        env={**os.environ, "AUDITOR_FAILPOINT": "*:1"},
        capture_output=True,
        check=False,
    )
    assert killed.returncode != 0
    assert dump_results(storage) == rows_before
    assert auditor(*after).returncode == 0
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
            table.name: [row for batch in audit_archive.dump_rows(db, audit_id, table.name) for row in batch]
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
