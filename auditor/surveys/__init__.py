"""Ground truth: surveys of what people find morally acceptable, and the countries they come from.

Importing official files is in `auditor.surveys.importer`, which needs numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from auditor.surveys.baselines import (
        compute_baselines as compute_baselines,
        country_mean as country_mean,
        regional_mean as regional_mean,
        topic_mean as topic_mean,
    )
    from auditor.surveys.checks import findings_by_check as findings_by_check
    from auditor.surveys.countries import country_code as country_code, country_name_forms as country_name_forms
    from auditor.surveys.distributions import (
        SurveyDistributions as SurveyDistributions,
        load_distributions as load_distributions,
    )
    from auditor.surveys.loader import builtin_surveys as builtin_surveys, load_survey as load_survey
    from auditor.surveys.mapping import builtin_mappings as builtin_mappings, load_mapping as load_mapping
    from auditor.surveys.regions import (
        builtin_groupings as builtin_groupings,
        get_grouping as get_grouping,
        group_countries as group_countries,
        region_of as region_of,
    )
    from auditor.surveys.selection import limit_cells as limit_cells, select_cells as select_cells
    from auditor.surveys.survey_facts import (
        SurveyFacts as SurveyFacts,
        apply_nonresponse as apply_nonresponse,
        apply_treatment as apply_treatment,
        load_survey_facts as load_survey_facts,
    )
    from auditor.surveys.writer import write_survey as write_survey

if not TYPE_CHECKING:
    __getattr__, __dir__ = import_on_first_use(__name__, __file__)
