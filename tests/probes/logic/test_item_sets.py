"""The sets of items that judges compare."""

from __future__ import annotations

import pytest

from auditor.domain import Cell, Survey, SurveyCell
from auditor.errors import ConfigError
from auditor.probes.logic.item_sets import configured_countries
from auditor.probes.logic.settings import LogicProbe

CELLS = tuple(SurveyCell(Cell(country, "divorce"), 0.1) for country in ("Germany", "Japan"))
SURVEY = Survey("s", "s", "s", "{topic} {country}", ("low", "high"), CELLS)


def test_a_country_that_is_listed_twice_has_one_set() -> None:
    """Its second set had the key of the first, so that the run ended with an error of the database."""
    assert configured_countries(LogicProbe(countries=["Japan", "Germany", "Japan"]), SURVEY) == ["Japan", "Germany"]


def test_an_empty_list_of_countries_is_refused() -> None:
    """The run asked nothing, and ended as if all was well."""
    with pytest.raises(ConfigError, match="the list is empty"):
        configured_countries(LogicProbe(countries=[]), SURVEY)
