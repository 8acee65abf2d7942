"""Ground truth: surveys of what people find morally acceptable, and the countries they come from.

Importing official files is in `auditor.surveys.importer`, which needs numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from auditor.surveys.baselines import compute_baselines, country_mean, regional_mean, topic_mean
    from auditor.surveys.checks import findings_by_check
    from auditor.surveys.countries import country_code, country_name_forms
    from auditor.surveys.distributions import SurveyDistributions, load_distributions
    from auditor.surveys.loader import builtin_surveys, load_survey
    from auditor.surveys.mapping import builtin_mappings, load_mapping
    from auditor.surveys.nonresponse import apply_nonresponse
    from auditor.surveys.regions import builtin_groupings, get_grouping, group_countries, region_of
    from auditor.surveys.selection import limit_cells, select_cells
    from auditor.surveys.survey_facts import SurveyFacts, apply_treatment, load_survey_facts
    from auditor.surveys.writer import write_survey

__all__ = [
    "SurveyDistributions",
    "SurveyFacts",
    "apply_nonresponse",
    "apply_treatment",
    "builtin_groupings",
    "builtin_mappings",
    "builtin_surveys",
    "compute_baselines",
    "country_code",
    "country_mean",
    "country_name_forms",
    "findings_by_check",
    "get_grouping",
    "group_countries",
    "limit_cells",
    "load_distributions",
    "load_mapping",
    "load_survey",
    "load_survey_facts",
    "region_of",
    "regional_mean",
    "select_cells",
    "topic_mean",
    "write_survey",
]

if not TYPE_CHECKING:
    __getattr__ = import_on_first_use(
        __name__,
        {
            "baselines": ("compute_baselines", "country_mean", "regional_mean", "topic_mean"),
            "checks": ("findings_by_check",),
            "countries": ("country_code", "country_name_forms"),
            "distributions": ("SurveyDistributions", "load_distributions"),
            "loader": ("builtin_surveys", "load_survey"),
            "mapping": ("builtin_mappings", "load_mapping"),
            "nonresponse": ("apply_nonresponse",),
            "regions": ("builtin_groupings", "get_grouping", "group_countries", "region_of"),
            "selection": ("limit_cells", "select_cells"),
            "survey_facts": ("SurveyFacts", "apply_treatment", "load_survey_facts"),
            "writer": ("write_survey",),
        },
    )
