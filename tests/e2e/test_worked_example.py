"""The worked example: what was planted in simulated models is found in them and in no others, with every seed."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.cli.demo import DEFAULT_SEED, build_demo_config, find_planted_properties, run_worked_example
from auditor.cli.init import read_starter
from auditor.config import AuditConfig
from auditor.metrics.intervals.jackknife_interval import MIN_UNITS
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from tests.support import docs_pictures
from tests.support.cli_runner import CommandOutput, auditor
from tests.support.docs_pictures import BROWSER_PICTURE, LABEL_PICTURE, REPORT_PICTURE, REVIEW_PICTURE, TABLET_SIZE
from tests.support.known import known

SEEDS = (DEFAULT_SEED, *range(1, 6)) if os.environ.get("AUDITOR_SMALL_FORMS") else (DEFAULT_SEED,)
"""`make small-forms` runs all."""
EXPECTED = (
    {"knows-every-culture", "agrees-with-everybody", "inconsistent"},
    {"western-everywhere"},
    {"agrees-with-everybody"},
    {"inconsistent"},
    {"lenient-judge"},
    {"careful-judge-1 and copying-judge"},
    {"agrees-with-everybody"},
    {"agrees-with-everybody"},
    {"knows-every-culture"},
)
"""Who has each planted property, in the order of the findings."""
ABSENT = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Figure of a model or judge without the property; the sign agreement of a consistent model is 1."""


@pytest.mark.parametrize("seed", SEEDS)
def test_each_planted_property_is_found_where_it_was_planted_and_nowhere_else(
    seed: int, worked_example: tuple[Path, CommandOutput], storage: str
) -> None:
    config = build_demo_config(seed)
    if seed == DEFAULT_SEED:
        report = open_audit(config.name, storage=f"sqlite:///{worked_example[0]}/auditor.db").report()
    else:
        report = run_worked_example(config, storage)
    findings = list(find_planted_properties(report))
    assert [set(finding.planted_in) for finding in findings] == [*EXPECTED]
    assert [set(finding.found_in) for finding in findings] == [*EXPECTED]
    for finding, absent in zip(findings, ABSENT, strict=True):
        assert set(finding.figures) == set(finding.planted_in)
        for _, low, high in finding.figures.values():
            assert not known(low) <= absent <= known(high), finding
    assert report.conflicts.states["open"] > 10  # for `auditor review`
    assert report.conflicts.states["majority"] > report.conflicts.states["open"]
    assert report.cost.total.usd == 0.0


def test_the_command_writes_the_report_and_says_what_was_found(worked_example: tuple[Path, CommandOutput]) -> None:
    folder, result = worked_example
    assert result.returncode == 0, result.stderr
    assert "all models are simulated" in result.stderr.lower()
    assert result.stderr.count("as planted") == len(EXPECTED)
    for name in set().union(*EXPECTED):
        assert re.search(rf" {name} +\d\.\d\d \(\d\.\d\d to ", result.stderr), name
    assert "auditor review simulated-demo" in result.stderr
    page = (folder / "simulated-demo.html").read_text(encoding="utf-8")
    assert "Worked example: simulated models" in page


def test_another_seed_makes_an_audit_of_another_name() -> None:
    names = [build_demo_config(seed).name for seed in (DEFAULT_SEED, 12)]
    assert names == ["simulated-demo", "simulated-demo-12"]


def test_a_file_that_is_no_page_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    result = auditor("demo", "-o", "report.pdf", cwd=tmp_path)
    assert result.returncode == 2
    assert "ends in .html" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_another_survey_changes_the_report(storage: str) -> None:
    document = build_demo_config().model_dump(exclude_none=True)
    smaller = document | {"models": document["models"][:2], "probes": {"direct": {"samples": 2}}, "judges": []}
    countries = ["Australia", "Germany", "Brazil", "China", "Indonesia", "Japan", "Nigeria", "Turkey"]
    wvs_survey = {"source": "wvs7-sample", "countries": countries, "topics": document["survey"]["topics"][:6]}
    audits = [
        smaller | {"survey": wvs_survey},
        smaller | {"survey": {"source": "pew2013-sample", "countries": countries}},
    ]
    wvs, pew = (run_audit(AuditConfig.model_validate(audit), storage=storage).report() for audit in audits)
    assert {cell.topic for cell in wvs.audit.cells} != {cell.topic for cell in pew.audit.cells}
    gaps = [{row.model: row.mae_gap.value for row in report.regions.gaps} for report in (wvs, pew)]
    assert gaps[0]["western-everywhere"] != gaps[1]["western-everywhere"]
    assert all(report.gain and report.gain[0].within_topics.value for report in (wvs, pew))


def test_the_starting_configurations_are_large_enough_for_a_result() -> None:
    for text in (read_starter(), Path("examples/quickstart.toml").read_text(encoding="utf-8")):
        survey = known(AuditConfig.model_validate(tomllib.loads(text)).survey)
        assert len(survey.countries) >= MIN_UNITS
        assert len(survey.topics) >= MIN_UNITS


HOW_TO_FIX = "the picture is out of date. How to fix: make pictures"


@pytest.fixture(scope="module")
def example(worked_example: tuple[Path, CommandOutput]) -> tuple[str, str]:
    """URL of the database with the worked example, and the HTML of its report."""
    storage = f"sqlite:///{worked_example[0]}/auditor.db"
    return storage, render_report(open_audit(build_demo_config().name, storage=storage).report(), "html")


@pytest.mark.slow
def test_the_picture_of_the_report_has_its_current_words(example: tuple[str, str]) -> None:
    shown = REPORT_PICTURE.with_suffix(".txt").read_text(encoding="utf-8")
    assert "Do the models know what people accept?" in shown
    assert shown == docs_pictures.read_report_text(example[1]), HOW_TO_FIX
    assert REPORT_PICTURE.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "draw", "words"),
    [
        (REVIEW_PICTURE, docs_pictures.draw_review, "Hidden until you decide"),
        (LABEL_PICTURE, docs_pictures.draw_labelling, "VALID"),
    ],
    ids=["review", "labelling"],
)
def test_the_picture_of_a_screen_has_its_current_words(
    example: tuple[str, str], tmp_path: Path, path: Path, draw: Callable[[str, Path], tuple[str, str]], words: str
) -> None:
    picture, text = draw(example[0], tmp_path)
    assert words in text
    assert path.with_suffix(".txt").read_text(encoding="utf-8") == text, HOW_TO_FIX
    svg_words, current_words = map(docs_pictures.read_svg_words, (path.read_text(encoding="utf-8"), picture))
    assert svg_words == current_words, HOW_TO_FIX


def test_the_picture_of_the_browser_shows_what_the_app_shows(example: tuple[str, str], tmp_path: Path) -> None:
    shown = BROWSER_PICTURE.with_suffix(".txt").read_text(encoding="utf-8")
    assert shown == docs_pictures.draw_review(example[0], tmp_path, TABLET_SIZE)[1], HOW_TO_FIX
