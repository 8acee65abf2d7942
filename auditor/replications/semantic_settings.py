"""Settings of the probe `semantic` that follow from several keys of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from auditor.agents.semantic.call_builders import PAPER_JUDGE_TEMPERATURE, PAPER_JUDGE_TOKENS
from auditor.config import AuditConfig
from auditor.config.semantic import BUILT_IN_QUESTIONS, SemanticProbe

OWN_RULES = "each model its own"
NO_JUDGE = "no judge"


def _describe_questions(_config: AuditConfig, probe: SemanticProbe) -> str:
    """Whether the questions are those of the program, or of a file."""
    return "built-in questions" if probe.questions == BUILT_IN_QUESTIONS else "a file"


def _read_temperature(config: AuditConfig, probe: SemanticProbe) -> float | list[float]:
    """The temperature of the answers; all of them if the models' own differ."""
    defaults = [probe.temperature if model.temperature is None else model.temperature for model in config.models]
    return _collapse(
        model.params.get("temperature", default) for model, default in zip(config.models, defaults, strict=True)
    )


def _read_sample_temperature(config: AuditConfig, probe: SemanticProbe) -> float | list[float]:
    """The temperature of the answers that a judge compares; all of them if the models' own differ."""
    default = probe.consistency.temperature if probe.consistency else 0.0
    return _collapse(model.params.get("temperature", default) for model in config.models)


def _collapse(values: Iterable[float]) -> float | list[float]:
    """The value that all are; sorted values if they differ."""
    unique_values = sorted(set(values))
    return unique_values[0] if len(unique_values) == 1 else unique_values


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
    """A parameter of the judge's calls in the published form; its own `params` take precedence."""
    section = probe.consistency
    if section is None:
        return NO_JUDGE
    if section.form != "paper":
        return "as in the standard form"
    published = {"temperature": PAPER_JUDGE_TEMPERATURE, "max_tokens": PAPER_JUDGE_TOKENS}
    return config.models_by_name[section.judge].params.get(param, published[param])


SEMANTIC_SETTINGS: Mapping[str, Callable[[AuditConfig, SemanticProbe], Any]] = {
    "semantic.source": _describe_questions,
    "semantic.temperature": _read_temperature,
    "semantic.encoder": _read_encoder,
    "semantic.bertscore": _read_bertscore_model,
    "semantic.rot_model": lambda _config, probe: probe.rot_model or OWN_RULES,
    "consistency.temperature": _read_sample_temperature,
    "consistency.judge": _read_judge_model,
    "consistency.judge_temperature": partial(_read_judge_param, param="temperature"),
    "consistency.judge_tokens": partial(_read_judge_param, param="max_tokens"),
}
"""Readers of settings, by the keys that presets use."""
