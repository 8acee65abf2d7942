"""Reports that several test modules share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from auditor.domain import Cell, CellScore, Survey, SurveyCell
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import ReportSource, load_source
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from tests.support.synthetic_audit import populate


@pytest.fixture(scope="session")
def population(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, Audit]]:
    """A database with the synthetic audit, and the audit; read-only, since the session shares it."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('population')}/audit.db") as db:
        yield db, populate(db)


@pytest.fixture(scope="session")
def report(population: tuple[Database, Audit]) -> Report:
    """The report of `population`; read-only."""
    return build_report(population[0], population[1].name)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        yield db


def survey_of(truth: Mapping[tuple[str, str], float | None]) -> Survey:
    """A survey with these scores and placeholder texts."""
    return Survey(
        name="own", title="A survey of one's own", source="made up",
        wording="How justifiable is {topic} in {country}?", scale=("never", "always"),
        cells=tuple(SurveyCell(Cell(*cell), score) for cell, score in truth.items()),
    )  # fmt: skip


def save_rows(db: Database, survey: Survey, rows: Iterable[CellScore], name: str = "a") -> ReportSource:
    """Save rows of scores as a finished audit of imported ones, and load what the report of it is built from."""
    audit = audits.save_audit(
        db, name=name, config=None, config_hash=None, survey=survey, environment={"auditor": "0.1.0"}
    )
    save_records(db, audit.id, list(rows))
    audits.set_stage(db, audit.id, audits.FINISHED)
    return load_source(db, name)


def save_scores(
    db: Database,
    truth: Mapping[tuple[str, str], float | None],
    scores: Mapping[tuple[str, str, str], float | None],
    method: str = "direct",
    name: str = "imported",
) -> ReportSource:
    """Save imported scores, keyed by (model, country, topic), and load what the report of their audit is built from."""
    rows = [
        CellScore(model, Cell(country, topic), method, score, n_ok=int(score is not None), n_planned=1)
        for (model, country, topic), score in scores.items()
    ]
    return save_rows(db, survey_of(truth), rows, name)


def import_scores(
    db: Database,
    truth: Mapping[tuple[str, str], float | None],
    scores: Mapping[tuple[str, str, str], float | None],
    method: str = "direct",
) -> Report:
    """The report of an audit of imported scores."""
    return build_report(db, save_scores(db, truth, scores, method).audit.name)
