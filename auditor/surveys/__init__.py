"""Ground truth: surveys of what people find morally acceptable, and the countries they come from."""

from __future__ import annotations

from auditor.surveys.countries import country_code, demonyms, groupings, region_of
from auditor.surveys.loading import builtin_surveys, load_survey
from auditor.surveys.selection import select

__all__ = [
    "builtin_surveys",
    "country_code",
    "demonyms",
    "groupings",
    "load_survey",
    "region_of",
    "select",
]
