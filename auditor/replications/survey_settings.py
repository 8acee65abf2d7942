"""Settings of audits of a survey that published ones are compared with, where they follow from several keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from auditor.agents.model_call import direct_sampling, request_params, review_sampling
from auditor.config import AuditConfig
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import pluralize
from auditor.surveys import builtin_surveys
from auditor.surveys.countries import country_code, country_name

NOT_SET = "not set"


def _read_direct_param(config: AuditConfig, *, param: str) -> Any:
    """A parameter of the requests for direct answers; all values if those of models differ."""
    params = (request_params(model, **direct_sampling(config, model)) for model in config.models)
    return collapse(values.get(param, NOT_SET) for values in params)


def _read_review_param(config: AuditConfig, *, param: str) -> Any:
    """A parameter of the requests for reviews; all values if those of judges differ."""
    params = (request_params(judge, **review_sampling(config, judge)) for judge in config.judge_models)
    return collapse(values.get(param, NOT_SET) for values in params)


def collapse(values: Iterable[Any]) -> Any:
    """The value that all are; sorted values if they differ; `NOT_SET` if there is none."""
    unique_values = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    if not unique_values:
        return NOT_SET
    return unique_values[0] if len(unique_values) == 1 else unique_values


def _describe_judges(config: AuditConfig) -> str:
    """`peers`, or the number of judges."""
    return "peers" if config.judges == "peers" else f"{len(config.judge_models)} judges"


def _describe_survey(config: AuditConfig) -> str:
    """Whether people's answers are the sample that comes with the program, or a file."""
    is_sample = config.survey is not None and config.survey.source in builtin_surveys()
    return "the sample of this program" if is_sample else "a file"


def describe_nonresponse(config: AuditConfig, n_unknown: int) -> Any:
    """The treatment of respondents without an answer, and the number of scores that it could not be applied to."""
    treatment = config.survey.nonresponse if config.survey else NOT_SET
    if treatment != "zero" or not n_unknown:
        return treatment
    return f"{treatment}, except for {pluralize(n_unknown, 'score')} without a known share of nonresponse"


def list_survey_names(report: Report) -> list[str]:
    """Names of the countries, in one spelling, and of the topics that people were asked about."""
    cells = report.audit.cells
    countries = dict.fromkeys(country_name(country_code(cell.country) or "") or cell.country for cell in cells)
    return [*countries, *dict.fromkeys(cell.topic for cell in cells)]


SURVEY_SETTINGS: Mapping[str, Callable[[AuditConfig], Any]] = {
    "direct.temperature": partial(_read_direct_param, param="temperature"),
    "direct.max_tokens": partial(_read_direct_param, param="max_tokens"),
    "direct.top_p": partial(_read_direct_param, param="top_p"),
    "review.temperature": partial(_read_review_param, param="temperature"),
    "review.max_tokens": partial(_read_review_param, param="max_tokens"),
    "review.judges": _describe_judges,
    "survey.data": _describe_survey,
}
"""Readers of settings, by the keys that presets use."""
