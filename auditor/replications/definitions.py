"""Whether an audit measured as a paper describes: derived from the audit's stored configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from auditor.config import AuditConfig, LogicProbe
from auditor.config.semantic import SemanticProbe
from auditor.replications.experiment import Experiment, FigureSource, Part, PublishedSetting
from auditor.replications.logic_settings import LOGIC_SETTINGS
from auditor.replications.semantic_settings import SEMANTIC_SETTINGS, describe_followed_rules
from auditor.reports.data.replication import Departure, Mark
from auditor.reports.data.report_schema import Report

NOT_SET = "not set"
TRIALS_PREFIX = "trials."


@dataclass(frozen=True)
class MeasuredAudit:
    """An audit behind a table.

    Attributes:
        name: of its survey or data set, as the paper has it.
        stored_config: the configuration that the database holds for it; None for imported comparisons.
        trials: results of the trials on it, by name: the data that `auditor experiment NAME --json` prints.
    """

    name: str
    stored_config: AuditConfig | None
    report: Report
    trials: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> AuditConfig:
        """The stored configuration of an audit that was run."""
        assert self.stored_config is not None
        return self.stored_config

    @property
    def models(self) -> list[str]:
        """Names of the audited models; empty for imported comparisons."""
        return [] if self.stored_config is None else [model.name for model in self.stored_config.models]


def _read_temperatures(sections: Iterable[Any], default: float) -> float | list[float]:
    """The temperature of models, whose own setting takes precedence; all of them if they differ."""
    values = {default if section.temperature is None else section.temperature for section in sections}
    return values.pop() if len(values) == 1 else sorted(values)


def _describe_judges(audit: MeasuredAudit) -> str:
    """`peers`, or the number of judges."""
    return "peers" if audit.config.judges == "peers" else f"{len(audit.config.judge_models)} judges"


def _logic_probe(audit: MeasuredAudit) -> LogicProbe:
    """The settings of the probe `logic`; its defaults without it."""
    return audit.config.probes.logic or LogicProbe()


def _read_logic_setting(read: Callable[[LogicProbe, Report], Any], audit: MeasuredAudit) -> Any:
    """A setting of the probe `logic`."""
    return read(_logic_probe(audit), audit.report)


def _read_semantic_setting(read: Callable[[AuditConfig, SemanticProbe], Any], audit: MeasuredAudit) -> Any:
    """A setting of the probe `semantic`; `NOT_SET` without the probe."""
    probe = audit.config.probes.semantic
    return NOT_SET if probe is None else read(audit.config, probe)


COMPUTED_SETTINGS: Mapping[str, Callable[[MeasuredAudit], Any]] = {
    "direct.temperature": lambda audit: _read_temperatures(audit.config.models, audit.config.direct.temperature),
    "review.temperature": lambda audit: _read_temperatures(
        audit.config.judge_models, audit.config.probes.review.temperature
    ),
    "review.judges": _describe_judges,
    "survey.cells": lambda audit: audit.report.audit.survey.asked,
    **{key: partial(_read_logic_setting, read) for key, read in LOGIC_SETTINGS.items()},
    "logic.repeat_temperature": lambda audit: _read_temperatures(
        audit.config.models, _logic_probe(audit).sample_temperature
    ),
    "semantic.questions": lambda audit: audit.report.semantic.questions if audit.report.semantic else 0,
    "semantic.followed_rules": lambda audit: describe_followed_rules(audit.trials),
    **{key: partial(_read_semantic_setting, read) for key, read in SEMANTIC_SETTINGS.items()},
}
"""Settings that follow from several keys of a configuration."""


def read_setting(audit: MeasuredAudit, key: str, trial: str = "") -> Any:
    """The value of a setting in an audit's stored configuration; `NOT_SET` where a table on its path is missing.

    A key `trials.NAME.KEY` is an option of a trial on the audit, as its result has it; of a result with a row for each
    model, the first row has it. `{trial}` stands for the name of the figure's trial.
    """
    if key in COMPUTED_SETTINGS:
        return COMPUTED_SETTINGS[key](audit)
    path = key.format(trial=trial)
    of_trials = path.removeprefix(TRIALS_PREFIX)
    value: Any = audit.trials if of_trials != path else audit.config.model_dump(mode="json")
    for part in of_trials.split("."):
        value = value[0] if of_trials != path and isinstance(value, list) and value else value
        value = value.get(part, NOT_SET) if isinstance(value, Mapping) else getattr(value, part, NOT_SET)
    return value


def derive_mark(
    experiment: Experiment, parts: frozenset[Part], source: FigureSource, audit: MeasuredAudit
) -> tuple[Mark, list[Departure]]:
    """Compare an audit with the published settings that bear on a figure.

    Args:
        parts: the parts that the figures of the table depend on.

    Returns:
        The mark, and the departures in the order of the preset.
    """
    departures = [
        departure
        for setting in experiment.settings
        if setting.parts & (parts | source.parts) and (departure := _compare(setting, audit, source.trial)) is not None
    ]
    departures += [
        Departure(
            id=fixed.id, description=fixed.description, is_wording=False, size=fixed.size, size_note=fixed.size_note
        )
        for fixed in experiment.departures
        if fixed.id in source.departures
    ]
    return _select_mark(departures), departures


def _select_mark(departures: Sequence[Departure]) -> Mark:
    """The mark of a figure with these departures."""
    if not departures:
        return "same_definition"
    return "other_words" if all(departure.is_wording for departure in departures) else "other_definition"


def _compare(setting: PublishedSetting, audit: MeasuredAudit, trial: str) -> Departure | None:
    """The departure of an audit, or of a trial on it, in one setting; None if it measured as published."""
    name = trial if isinstance(setting.value, dict) and trial in setting.value else audit.name
    published = setting.value.get(name) if isinstance(setting.value, dict) else setting.value
    measured = read_setting(audit, setting.key, trial)
    if measured == published and not setting.is_wording:
        return None
    is_wording = measured == published
    subject = f"{name}: {setting.description}" if isinstance(setting.value, dict) else setting.description
    description = (
        f"{subject}: written anew from the paper's description"
        if is_wording
        else f"{subject}: {_format(measured)}, published {_format(published)}"
    )
    return Departure(
        id=setting.id, description=description, is_wording=is_wording, size=setting.size, size_note=setting.size_note
    )


def _format(value: Any) -> str:
    """A setting's value as text."""
    return (
        ", ".join(map(_format, value))
        if isinstance(value, list)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
