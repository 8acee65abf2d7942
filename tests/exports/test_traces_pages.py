"""The pages of answers: their content, their links, their safety, and what happens if there are too many."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from auditor.domain import AnswerKind, Outcome, Survey, Task, TaskItem, Trace
from auditor.errors import UsageError
from auditor.exports.traces import INDEX_FILE, WrittenPages, write_trace_pages
from auditor.reports.data.build import build_report
from auditor.reports.output import render_report
from auditor.reports.render.escaping import escape_html
from auditor.reports.render.html import CONTENT_SECURITY_POLICY, build_script_policy, load_search_script
from auditor.storage import audits, results
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from auditor.tasks import survey_from_task
from tests.reports.hostile_report import EVIL, hostile_report
from tests.support.html_page import Page, assert_well_formed_and_inert
from tests.support.inspect_logs import SyntheticDatabase
from tests.support.synthetic_audit import populate


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('pages')}/audit.db") as db:
        populate(db, models=3, countries=4, topics=3)
        yield db


@pytest.fixture(scope="module")
def written(db: Database, tmp_path_factory: pytest.TempPathFactory) -> WrittenPages:
    return write_trace_pages(db, "population", tmp_path_factory.mktemp("out") / "a report-traces", "a report.html")


def read_links(path: Path) -> set[str]:
    """The pages that a page links to."""
    targets = {str(link["href"]) for link in Page(path.read_text()).all("a")}
    return {target.split("#")[0] for target in targets} - {""}


def test_every_cell_with_answers_has_a_page_that_shows_all_of_them(db: Database, written: WrittenPages) -> None:
    audit = audits.get_audit(db, "population")
    traces = results.load_traces(db, audit.id)
    assert set(written.links.by_cell) == {trace.cell for trace in traces}
    for cell, link in written.links.by_cell.items():
        page = (written.folder.parent / unquote(link)).read_text()
        for trace in (trace for trace in traces if trace.cell == cell and trace.text):
            assert escape_html(trace.text or "") in page
        assert escape_html(f"direct {cell.topic} {cell.country}") in page
        answers = [trace for trace in traces if trace.cell == cell]
        assert page.count(">Answer </span>") + page.count("<summary><span>Answer ") == len(answers)


def test_all_links_lead_to_pages(written: WrittenPages) -> None:
    files = {path.name for path in written.folder.glob("*.html")}
    assert len(files) == len(written.links.by_cell) + 1
    assert read_links(written.folder / INDEX_FILE) == {*files - {INDEX_FILE}, "../a%20report.html"}
    for path in written.folder.glob("*.html"):
        assert read_links(path) <= {*files, "../a%20report.html"}
        script = load_search_script() if path.name == INDEX_FILE else ""
        assert_well_formed_and_inert(path.read_text(), read_links(path) | {f"#{i}" for i in range(9)}, script)


def test_the_report_links_to_the_pages(db: Database, written: WrittenPages) -> None:
    report = build_report(db, "population")
    html = render_report(report.with_trace_pages(written.links), "html")
    targets = {str(link["href"]) for link in Page(html).all("a")}
    assert {*written.links.by_cell.values(), written.links.index} <= targets
    assert "trace_pages" not in report.with_trace_pages(written.links).model_dump_json()
    plain = {str(link["href"]) for link in Page(render_report(report, "html")).all("a")}
    assert all(target.startswith("#") for target in plain)
    assert render_report(report.with_trace_pages(written.links), "markdown").count(".html") == 0


def test_hostile_texts_stay_texts_and_only_the_list_of_pages_has_a_script(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/hostile.db") as db:
        hostile_report(db)
        pages = write_trace_pages(db, "hostile", tmp_path / "out", 'x" onclick="y.html')
    paths = sorted(pages.folder.glob("*.html"))
    assert len(paths) == 7
    names = {path.name for path in paths}
    assert all(re.fullmatch(r"[\w.-]+", name, flags=re.ASCII) for name in names)
    for path in paths:
        html = path.read_text(encoding="utf-8")
        page = Page(html)
        script = load_search_script() if path.name == INDEX_FILE else ""
        assert_well_formed_and_inert(html, names | {"../x%22%20onclick%3D%22y.html"}, script)
        policy = f"{CONTENT_SECURITY_POLICY}; {build_script_policy()}" if script else CONTENT_SECURITY_POLICY
        assert [meta["content"] for meta in page.all("meta") if "http-equiv" in meta] == [policy]
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", html)
    assert any(escape_html(EVIL) in path.read_text() for path in paths)


def test_too_many_cells_have_a_page_for_some_and_say_so(db: Database, tmp_path: Path) -> None:
    first = write_trace_pages(db, "population", tmp_path / "out")
    limited = write_trace_pages(db, "population", tmp_path / "out", max_pages=4)
    assert limited.n_omitted_cells == len(first.links.by_cell) - 4
    assert len({cell.country for cell in limited.links.by_cell}) == 4
    assert len(list((tmp_path / "out").glob("*.html"))) == 5  # pages of the first time are gone
    text = Page((tmp_path / "out" / INDEX_FILE).read_text()).text
    assert f"{limited.n_omitted_cells} cells have no page" in text
    repeated = write_trace_pages(db, "population", tmp_path / "again", max_pages=4)
    assert list(repeated.links.by_cell) == list(limited.links.by_cell)


def test_judges_are_not_named_while_conflicts_are_open(
    written: WrittenPages, made_audit: SyntheticDatabase, tmp_path: Path
) -> None:
    judge_names = re.compile(r"(alder|birch|cedar): (VALID|INVALID|no verdict)")
    for path in written.folder.glob("0*.html"):  # all conflicts are resolved
        assert judge_names.search(Page(path.read_text()).text)
    blinded = write_trace_pages(made_audit.db, "population", tmp_path / "out", max_pages=5)
    for path in blinded.folder.glob("0*.html"):
        text = Page(path.read_text()).text
        assert "Judges are not named until all conflicts are resolved." in text
        assert "judge 1: " in text
        assert not judge_names.search(text)


def test_a_folder_with_other_files_is_left_alone(db: Database, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="the folder contains other files"):
        write_trace_pages(db, "population", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_audit_without_answers_has_no_pages(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/empty.db") as db:
        survey = Survey("s", "", "", "", ("", ""), ())
        audits.save_audit(db, name="empty", config=None, config_hash=None, survey=survey, environment={})
        with pytest.raises(UsageError, match="'empty' has no answers"):
            write_trace_pages(db, "empty", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_task_has_a_page_for_each_item(tmp_path: Path) -> None:
    items = {name: TaskItem(name, f"What is {name}?", truth="4") for name in ("2+2", "1+3")}
    survey = survey_from_task(Task("sums.jsonl", AnswerKind.SCORE, "digest", range=(0, 10), items=items))
    with open_database(f"sqlite:///{tmp_path}/task.db") as db:
        audit = audits.save_audit(db, name="sums", config=None, config_hash=None, survey=survey, environment={})
        answers = [Trace("m", item.cell, 0, Outcome.OK, -0.2, "So 4.", answer="4") for item in items.values()]
        save_records(db, audit.id, answers)
        pages = write_trace_pages(db, "sums", tmp_path / "out")
    assert pages.links.find("", "2+2") == "out/1-2-2.html"
    text = Page((tmp_path / "out" / "1-2-2.html").read_text()).text
    for expected in ("Answers to one item", "What is 2+2?", "correct answer", "answer 4", "So 4."):
        assert expected in text
    assert "people’s" not in text
