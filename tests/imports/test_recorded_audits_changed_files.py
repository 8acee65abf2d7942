"""A good file of recorded answers with columns renamed, rows and columns reordered and cells emptied.

Either the figures stay the same, or the import is refused with the row or the column.
"""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

import pytest

from auditor.errors import ImportFileError
from auditor.imports.recorded_audits import import_traces
from auditor.storage import audits, results
from auditor.storage.database import open_database

COLUMNS = ["model", "country", "topic", "sample", "text", "score"]
OTHER_NAMES = {"model": "system", "country": "nation", "topic": "item", "sample": "draw", "text": "reply", "score": "x"}


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


def figures(file: Path, storage: str) -> dict[tuple[str, ...], tuple[float | None, int, int]]:
    """Import a file and return score, usable and planned samples by model and cell."""
    import_traces(file, survey="wvs7-sample", audit="a", storage=storage)
    with open_database(storage, create=False) as db:
        scores = results.load_scores(db, audits.get_audit(db, "a").id)
    return {(score.model, *score.cell): (score.score, score.n_ok, score.n_planned) for score in scores}


def write(path: Path, rows: list[dict[str, str]], names: dict[str, str], columns: list[str], delimiter: str) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(names[column] for column in columns)
        writer.writerows([row[column] for column in columns] for row in rows)
    return path


@pytest.mark.parametrize("seed", range(40))
def test_a_changed_file_has_the_same_figures_or_is_refused(tmp_path: Path, seed: int) -> None:
    storage, rng = f"sqlite:///{tmp_path / 'audits.db'}", random.Random(seed)
    identity = {column: column for column in COLUMNS}
    expected = figures(write(tmp_path / "good.csv", good_rows(), identity, COLUMNS, ","), storage)
    rows, names = good_rows(), dict(identity)
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
