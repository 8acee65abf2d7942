"""The file of a survey's shares of answers, and surveys without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Cell
from auditor.errors import SurveyError
from auditor.surveys import load_distributions, load_survey
from auditor.surveys.distributions import DISTRIBUTIONS_SUFFIX

CELL: dict[str, Any] = {
    "country": "Japan", "topic": "divorce", "shares": [0.25, 0.75], "n": 100, "n_effective": 90.0,
    "cut_variances": [0.002],
}  # fmt: skip
CONTENT: dict[str, Any] = {
    "points": [{"name": "no", "score": -1}, {"name": "yes", "score": 1}],
    "is_ordered": True,
    "cells": [CELL],
}


def write(folder: Path, content: dict[str, Any]) -> Path:
    """A survey with this file of shares."""
    survey = folder / "my.csv"
    survey.write_text("country,topic,score\nJapan,divorce,0.5\n", encoding="utf-8")
    survey.with_name(f"my{DISTRIBUTIONS_SUFFIX}").write_text(json.dumps(content), encoding="utf-8")
    return survey


def test_the_file_is_read(tmp_path: Path) -> None:
    shares = load_distributions(write(tmp_path, CONTENT))
    assert shares.by_cell()[Cell("Japan", "divorce")].shares == (0.25, 0.75)
    assert shares.by_cell("sex", "women") == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": [CELL | {"shares": [1.0]}]}, "has 1 shares, but the scale has 2 points"),
        ({"cells": [CELL | {"shares": [0.5, 0.6]}]}, "add up to 1.1, not to 1"),
        ({"cells": [CELL | {"cut_variances": []}]}, "does not have 1 cut_variances"),
        ({"cells": [CELL, CELL]}, "Japan × divorce occurs twice"),
        ({"points": CONTENT["points"][::-1]}, "must increase"),
        ({"scale": "x"}, "scale"),
    ],
)
def test_an_invalid_file_is_named_with_the_problem(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SurveyError, match=message) as error:
        load_distributions(write(tmp_path, CONTENT | changes))
    assert f"my{DISTRIBUTIONS_SUFFIX}" in str(error.value)


def test_a_survey_that_was_imported_before_says_what_to_run(tmp_path: Path) -> None:
    survey = write(tmp_path, CONTENT)
    survey.with_name(f"my{DISTRIBUTIONS_SUFFIX}").unlink()
    with pytest.raises(SurveyError, match="has no shares of answers") as error:
        load_distributions(survey)
    assert "auditor surveys import OFFICIAL_FILE -o OUT.csv --force" in str(error.value)
    with pytest.raises(SurveyError, match=r"wvs7-sample\.distributions\.json"):
        load_distributions("wvs7-sample")


def test_the_sample_of_pew_has_the_shares_of_its_choices() -> None:
    shares = load_distributions("pew2013-sample")
    assert not shares.is_ordered
    survey = load_survey("pew2013-sample")
    assert len(shares.by_cell()) == len(survey.scores)
    cell = survey.cells[0]
    assert cell.acceptable is not None
    assert cell.not_a_moral_issue is not None
    assert cell.unacceptable is not None
    total = cell.acceptable + cell.not_a_moral_issue + cell.unacceptable
    assert shares.by_cell()[cell.cell].shares == pytest.approx(
        [cell.unacceptable / total, cell.not_a_moral_issue / total, cell.acceptable / total]
    )
