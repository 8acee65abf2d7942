"""Settings of audits that published ones are compared with, where they follow from several keys."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

from auditor.agents.call_builders import direct_sampling, request_params, review_sampling
from auditor.config import AuditConfig
from auditor.metrics.logic.ranking_methods import PAIRS_GREEDY
from auditor.probes.logic.figures.schema import LogicReport
from auditor.probes.logic.settings import LogicProbe
from auditor.probes.semantic.call_builders import build_answer_call, build_pair_call
from auditor.probes.semantic.records import CONSISTENCY_PURPOSE
from auditor.probes.semantic.settings import BUILT_IN_QUESTIONS, SemanticProbe
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import pluralize
from auditor.surveys import builtin_surveys
from auditor.surveys.countries import country_code, country_name


def _describe_answers(probe: LogicProbe, _report: Report) -> str:
    """The form of an answer about two items."""
    if probe.answer == "probability":
        return "letter"
    return "JSON after reasoning" if probe.cot else "JSON"


def _describe_choices(probe: LogicProbe, _report: Report) -> str:
    """The answers that a model may give to any question."""
    asks_json = probe.answer == "structured" or probe.sample_answer == "cot"
    return "A, B, TIE" if asks_json and probe.form == "standard" else "A, B"


def _describe_pairs(probe: LogicProbe, _report: Report) -> str:
    """Which pairs of a set are compared."""
    return "all" if probe.max_pairs is None else f"at most {probe.max_pairs} of a set"


def _count_sets(_probe: LogicProbe, report: Report) -> int:
    """Number of sets of items."""
    return logic.sets if (logic := report.find(LogicReport)) else 0


def _describe_sizes(_probe: LogicProbe, report: Report) -> str:
    """Number of items of a set; of sets of several sizes, the smallest."""
    sizes = {row.items for row in logic.contradictions} if (logic := report.find(LogicReport)) else {0}
    return f"{min(sizes)}" if len(sizes) == 1 else f"{min(sizes)} or more"


def _count_starts(_probe: LogicProbe, report: Report) -> int:
    """Number of starting orders of PairS in each set; 0 where it was not computed."""
    rows = logic.rankings if (logic := report.find(LogicReport)) else []
    return next((row.runs for row in rows if row.method == PAIRS_GREEDY), 0)


LOGIC_SETTINGS: Mapping[str, Callable[[LogicProbe, Report], Any]] = {
    "logic.answer": _describe_answers,
    "logic.choices": _describe_choices,
    "logic.pairs": _describe_pairs,
    "logic.sets": _count_sets,
    "logic.items": _describe_sizes,
    "logic.starts": _count_starts,
}
"""Readers of the probe's settings and of the audit's report, by the keys that presets use."""


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
    return "peers" if config.judges == "peers" else pluralize(len(config.judge_models), "judge")


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


OWN_RULES = "each model its own"
NO_JUDGE = "no judge"
OF_FILE = "from a file"
GIVEN_WORDINGS = "those of the file"
MADE_UP_RULES = "sage-rules.csv"
"""File of rules to follow that comes with the program."""
PAIR_PROMPTS = {"standard": "the question and two answers", "paper": "two answers as context and sentence"}
"""What a judge of the consistency score is shown, by `form`."""


def _describe_questions(_config: AuditConfig, probe: SemanticProbe) -> str:
    """Whether the questions are those of the program, or of a file."""
    return "built-in" if probe.questions == BUILT_IN_QUESTIONS else OF_FILE


def _describe_wordings(_config: AuditConfig, probe: SemanticProbe) -> str:
    """Who wrote the wordings of the questions."""
    if probe.paraphraser is None:
        return GIVEN_WORDINGS
    return f"{GIVEN_WORDINGS}, and by {probe.paraphraser} where it has fewer"


def describe_followed_rules(trials: Mapping[str, Any]) -> str:
    """Whether the rules that models followed are those of the program, or of a file; the file's content says it."""
    own_rules = files("auditor.replications") / "presets" / "data" / MADE_UP_RULES
    is_own = trials["rules"][0].rules_sha256 == hashlib.sha256(own_rules.read_bytes()).hexdigest()
    return "made up for this program" if is_own else OF_FILE


def _describe_pair_prompt(_config: AuditConfig, probe: SemanticProbe) -> str:
    """What the judge of the consistency score is shown."""
    return NO_JUDGE if probe.consistency is None else PAIR_PROMPTS[probe.consistency.form]


def _read_answer_param(config: AuditConfig, _probe: SemanticProbe, *, param: str) -> Any:
    """A parameter of the calls for answers; all values if the models' own differ."""
    return collapse(build_answer_call(config, model, "").params[param] for model in config.models)


def _read_sample_temperature(config: AuditConfig, probe: SemanticProbe) -> Any:
    """The temperature of the answers that a judge compares; all values if the models' own differ."""
    if probe.consistency is None:
        return NO_JUDGE
    calls = (build_answer_call(config, model, "", temperature=probe.consistency.temperature) for model in config.models)
    return collapse(call.params["temperature"] for call in calls)


def _read_encoder(config: AuditConfig, probe: SemanticProbe) -> str:
    """Name of the sentence encoder, without its organisation or folder."""
    return (probe.encoder or config.embedding.model).rpartition("/")[2]


def _read_bertscore_model(_config: AuditConfig, probe: SemanticProbe) -> str:
    """Weights that BERTScore is computed from, without their organisation or folder."""
    return probe.used_bertscore_model.rpartition("/")[2] or "the sentence encoder"


def _read_judge_model(config: AuditConfig, probe: SemanticProbe) -> str:
    """Name of the model that judges the consistency of answers, without its provider."""
    section = probe.consistency
    return NO_JUDGE if section is None else config.models_by_name[section.judge].model.rpartition("/")[2]


def _read_judge_param(config: AuditConfig, probe: SemanticProbe, *, param: str) -> Any:
    """A parameter of the judge's calls."""
    if probe.consistency is None:
        return NO_JUDGE
    judge = config.models_by_name[probe.consistency.judge]
    return build_pair_call(config, judge, CONSISTENCY_PURPOSE, "", "", "").params[param]


SEMANTIC_SETTINGS: Mapping[str, Callable[[AuditConfig, SemanticProbe], Any]] = {
    "semantic.source": _describe_questions,
    "semantic.wordings": _describe_wordings,
    "semantic.temperature": partial(_read_answer_param, param="temperature"),
    "semantic.max_tokens": partial(_read_answer_param, param="max_tokens"),
    "semantic.encoder": _read_encoder,
    "semantic.bertscore": _read_bertscore_model,
    "semantic.rot_model": lambda _config, probe: probe.rot_model or OWN_RULES,
    "consistency.temperature": _read_sample_temperature,
    "consistency.prompt": _describe_pair_prompt,
    "consistency.judge": _read_judge_model,
    "consistency.judge_temperature": partial(_read_judge_param, param="temperature"),
    "consistency.judge_tokens": partial(_read_judge_param, param="max_tokens"),
}
"""Readers of settings, by the keys that presets use."""
