"""Ground truth: surveys of what people find morally acceptable, and the countries they come from.

Importing official files is in `auditor.surveys.importer`, which needs numpy.
"""

from __future__ import annotations

from auditor.surveys.baselines import baselines, country_mean, regional_mean, topic_mean
from auditor.surveys.checks import check_survey, findings
from auditor.surveys.countries import country_code, demonyms
from auditor.surveys.loader import builtin_surveys, load_survey
from auditor.surveys.mapping import builtin_mappings, load_mapping
from auditor.surveys.nonresponse import apply_nonresponse
from auditor.surveys.regions import grouped, grouping_of, groupings, region_of
from auditor.surveys.selection import select
from auditor.surveys.survey_facts import SurveyFacts, load_facts, treated
from auditor.surveys.writer import write_survey

__all__ = [
    "SurveyFacts",
    "apply_nonresponse",
    "baselines",
    "builtin_mappings",
    "builtin_surveys",
    "check_survey",
    "country_code",
    "country_mean",
    "demonyms",
    "findings",
    "grouped",
    "grouping_of",
    "groupings",
    "load_facts",
    "load_mapping",
    "load_survey",
    "region_of",
    "regional_mean",
    "select",
    "topic_mean",
    "treated",
    "write_survey",
]
