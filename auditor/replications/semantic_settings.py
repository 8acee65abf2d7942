"""Settings of the probe `semantic` that follow from several keys of a configuration, such as those of its calls."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

from auditor.config import AuditConfig
from auditor.probes.semantic.call_builders import build_answer_call, build_pair_call
from auditor.probes.semantic.records import CONSISTENCY_PURPOSE
from auditor.probes.semantic.settings import BUILT_IN_QUESTIONS, SemanticProbe
from auditor.replications.survey_settings import collapse

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
