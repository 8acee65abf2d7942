"""Audits made of what was measured elsewhere, with no call to any model."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, variance
from typing import NamedTuple

from auditor.config import require_name
from auditor.domain import SCORE_MAX, SCORE_MIN, Cell, CellScore, Survey, canonical_hash
from auditor.errors import ImportFileError, UsageError
from auditor.run import environment, storage_url
from auditor.storage import audits, results
from auditor.storage.database import Database, open_database
from auditor.surveys import country_code, grouped, load_survey
from auditor.surveys.tables import Row, read_rows

SCORE_COLUMNS = ("model", "country", "topic", "method", "score")


class Imported(NamedTuple):
    """What came of a file.

    Attributes:
        rows: rows read; scores: cells x models x methods that have one.
        empty: rows without a score, which are failed samples.
        not_in_survey: rows about cells for which the survey has no score.
        replaced: whether an earlier import of this name was replaced.
    """

    rows: int
    models: int
    scores: int
    empty: int
    not_in_survey: int
    replaced: bool


def import_scores(
    file: Path, *, survey: str, audit: str, storage: str | None = None, regions: str = "western"
) -> Imported:
    """Make an audit of a file of scores; the same name again replaces the scores it had.

    Args:
        file: CSV, JSONL or Parquet with `model,country,topic,method,score[,sample]`; scores in [-1, 1], empty where
            a sample failed. Rows of one model, cell and method are its samples, and are averaged.
        survey: a built-in survey or a file.
        audit: the audit's name.
        storage: database URL.
        regions: groups of countries to compare, as `surveys.region_of` takes them.

    Raises:
        ImportFileError: a row that cannot be used; the message names it. Nothing is stored then.
        UsageError: the name belongs to an audit that was run, or is none that an audit may have.
    """
    require_name(audit)
    truth = grouped(load_survey(survey), regions)
    spell = _speller(truth)
    samples: dict[tuple[str, Cell, str], dict[str, float | None]] = defaultdict(dict)
    rows = outside = empty = 0
    for row in read_rows(file, SCORE_COLUMNS, ["sample"]):
        rows += 1
        cell = Cell(spell(_text(row, "country")), _text(row, "topic"))
        outside += cell not in truth.scores
        group = samples[_text(row, "model"), cell, _text(row, "method")]
        sample = row.cells["sample"] or "0"
        if sample in group:
            raise ImportFileError(
                f"{row.where}: this model, cell, method and sample is there twice.", "Number samples."
            )
        group[sample] = _score(row)
        empty += group[sample] is None
    if not rows:
        raise ImportFileError(f"{file}: has no rows.", "Is it the right file?")
    scores = [_cell_score(*who, list(group.values())) for who, group in samples.items()]
    with open_database(storage_url(storage)) as db:
        replaced = _save(db, audit, truth, scores)
    usable = [s for s in scores if s.score is not None]
    return Imported(rows, len({s.model for s in scores}), len(usable), empty, outside, replaced)


def _save(db: Database, name: str, survey: Survey, scores: list[CellScore]) -> bool:
    """Whether there was an import of this name, which this one replaces."""
    old = audits.find(db, name)
    if old is not None and old.config is not None:
        raise UsageError(f"audit '{name}' was run, not imported.", "Choose another name with --audit.")
    digest = canonical_hash([[s.model, *s.cell, s.method, s.score, s.n_ok, s.n_planned] for s in scores])
    saved = audits.save(db, name=name, config=None, config_hash=digest, survey=survey, environment=environment())
    results.save_scores(db, saved.id, scores)
    audits.set_stage(db, saved.id, audits.DONE)
    return old is not None


def _speller(survey: Survey) -> Callable[[str], str]:
    """A country's name as the survey spells it, from any spelling of the same country."""
    by_code = {code: country for country in survey.countries if (code := country_code(country))}
    known = set(survey.countries)

    def spell(name: str) -> str:
        return name if name in known else by_code.get(country_code(name) or "", name)

    return spell


def _text(row: Row, column: str) -> str:
    if not row.cells[column]:
        raise ImportFileError(f"{row.where}: the column '{column}' is empty.", "Fill it.")
    return row.cells[column]


def _score(row: Row) -> float | None:
    text = row.cells["score"]
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not SCORE_MIN <= value <= SCORE_MAX:
        raise ImportFileError(
            f"{row.where}, column 'score': '{text}' is no number in [-1, 1].", "Rescale it, or leave it empty."
        )
    return value


def _cell_score(model: str, cell: Cell, method: str, samples: list[float | None]) -> CellScore:
    ok = [s for s in samples if s is not None]
    return CellScore(
        model=model,
        cell=cell,
        method=method,
        score=fmean(ok) if ok else None,
        variance=variance(ok) if len(ok) > 1 else None,
        n_ok=len(ok),
        n_planned=len(samples),
    )
