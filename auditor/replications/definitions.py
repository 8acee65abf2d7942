"""Whether an audit measured as a paper describes, and its departures in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from auditor.agents.call_builders import effective_temperature
from auditor.config import AuditConfig
from auditor.probes.logic.settings import LogicProbe
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.probes.semantic.settings import SemanticProbe
from auditor.replications.experiment import Experiment, FigureSource, Part, PublishedSetting
from auditor.replications.full_form import SettingDifference, list_differences
from auditor.replications.settings import (
    LOGIC_SETTINGS,
    NOT_SET,
    SEMANTIC_SETTINGS,
    SURVEY_SETTINGS,
    collapse,
    describe_followed_rules,
    describe_nonresponse,
    list_survey_names,
)
from auditor.reports.data.replication import Departure, Mark
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_count, format_span

MAX_LISTED = 8


def describe_departure(departure: Departure, *audits: str) -> Departure:
    """The departure of audits, with its description in words."""
    description = f"{departure.subject}: {departure.measured}{_describe_published(departure.published)}"
    return departure.model_copy(update={"description": description, "audits": list(audits)})


def _describe_published(published: str) -> str:
    """The published value, after ours; empty if there is none."""
    return f" (published: {published})" if published else ""


def merge_departures(departures: Iterable[Departure]) -> list[Departure]:
    """One departure for each id, with the audits that have it, and the values of each if they differ."""
    by_id: dict[str, list[Departure]] = {}
    for departure in departures:
        by_id.setdefault(departure.id, []).append(departure)
    return [_merge(same) for same in by_id.values()]


def _merge(departures: Sequence[Departure]) -> Departure:
    """Merge departures of one id; values that differ stand with their audits, and a common published one at the end."""
    audits_by_value: dict[tuple[str, str], dict[str, None]] = {}
    for entry in departures:
        audits_by_value.setdefault((entry.measured, entry.published), {}).update(dict.fromkeys(entry.audits))
    first, audits = departures[0], list(dict.fromkeys(name for entry in departures for name in entry.audits))
    if len(audits_by_value) == 1:
        return first.model_copy(update={"audits": audits})
    is_common = len({published for _, published in audits_by_value}) == 1
    texts = [
        f"{', '.join(names)} {measured}{'' if is_common else _describe_published(published)}"
        for (measured, published), names in audits_by_value.items()
    ]
    end = _describe_published(first.published) if is_common else ""
    return first.model_copy(update={"description": f"{first.subject}: {'; '.join(texts)}{end}", "audits": audits})


def format_setting(value: Any) -> str:
    """A setting's value as text; a long list is cut."""
    if isinstance(value, list):
        more = f" and {len(value) - MAX_LISTED} more" if len(value) > MAX_LISTED else ""
        return ", ".join(map(format_setting, value[:MAX_LISTED])) + more
    if isinstance(value, int) and not isinstance(value, bool):
        return format_count(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


TRIALS_PREFIX = "trials."
SURVEY_CELLS = "survey.cells"
"""The only setting that is known of released scores: they have no configuration."""


@dataclass(frozen=True)
class MeasuredAudit:
    """An audit behind a table.

    Attributes:
        name: of its survey or data set, as the paper has it.
        stored_config: the configuration that the database holds for it; None for imported comparisons.
        trials: results of the trials on it, by name: the data that `auditor experiment NAME --json` prints.
        wordings: fewest and most wordings that a question of it was asked in; None if it has no questions.
        n_unknown_nonresponse: number of people's scores without a share of respondents without an answer; scores of
            exactly 0 are not counted, as those of cells in which nobody was asked.
        is_released: whether its scores are those of the paper's authors, imported from their files.
    """

    name: str
    stored_config: AuditConfig | None
    report: Report
    trials: Mapping[str, Any] = field(default_factory=dict)
    wordings: tuple[int, int] | None = None
    n_unknown_nonresponse: int = 0
    is_released: bool = False

    @property
    def config(self) -> AuditConfig:
        """The stored configuration of an audit that was run."""
        assert self.stored_config is not None
        return self.stored_config

    @property
    def models(self) -> list[str]:
        """Names of the audited models; empty for imported comparisons."""
        if self.is_released:
            return list(dict.fromkeys(row.model for row in self.report.alignment))
        return [] if self.stored_config is None else [model.name for model in self.stored_config.models]


def _logic_probe(audit: MeasuredAudit) -> LogicProbe:
    """The settings of the probe `logic`; its defaults without it."""
    return audit.config.probes.find(LogicProbe) or LogicProbe()


def _read_logic_setting(read: Callable[[LogicProbe, Report], Any], audit: MeasuredAudit) -> Any:
    """A setting of the probe `logic`."""
    return read(_logic_probe(audit), audit.report)


def _read_semantic_setting(read: Callable[[AuditConfig, SemanticProbe], Any], audit: MeasuredAudit) -> Any:
    """A setting of the probe `semantic`; `NOT_SET` without the probe."""
    probe = audit.config.probes.find(SemanticProbe)
    return NOT_SET if probe is None else read(audit.config, probe)


def _read_wordings(audit: MeasuredAudit) -> Any:
    """The number of wordings in which the audit's questions were asked: a paraphraser may write too few."""
    return NOT_SET if audit.wordings is None else format_span(*audit.wordings)


def _read_survey_setting(read: Callable[[AuditConfig], Any], audit: MeasuredAudit) -> Any:
    """A setting of an audit of a survey."""
    return read(audit.config)


def _read_repeat_temperature(audit: MeasuredAudit) -> Any:
    """The temperature of repeated comparisons; all values if those of models differ."""
    default = _logic_probe(audit).sample_temperature
    return collapse(effective_temperature(model, default) for model in audit.config.models)


def _count_cells(audit: MeasuredAudit) -> Any:
    """The number of cells that models are asked about; of released scores, of those with people's and the model's."""
    if not audit.is_released:
        return audit.report.audit.survey.asked
    return collapse(row.n for row in audit.report.alignment)


COMPUTED_SETTINGS: Mapping[str, Callable[[MeasuredAudit], Any]] = {
    **{key: partial(_read_survey_setting, read) for key, read in SURVEY_SETTINGS.items()},
    SURVEY_CELLS: _count_cells,
    "survey.names": lambda audit: list_survey_names(audit.report),
    "survey.nonresponse": lambda audit: describe_nonresponse(audit.config, audit.n_unknown_nonresponse),
    **{key: partial(_read_logic_setting, read) for key, read in LOGIC_SETTINGS.items()},
    "logic.repeat_temperature": _read_repeat_temperature,
    "semantic.questions": lambda audit: semantic.questions if (semantic := audit.report.find(SemanticReport)) else 0,
    "semantic.asked_wordings": _read_wordings,
    "semantic.followed_rules": lambda audit: describe_followed_rules(audit.trials),
    **{key: partial(_read_semantic_setting, read) for key, read in SEMANTIC_SETTINGS.items()},
}
"""Settings that follow from several keys of a configuration."""
TEMPERATURES = ("models.temperature", "models.params.temperature")
KEYS_READ: Mapping[str, tuple[str, ...]] = {
    "direct.temperature": ("probes.direct.temperature", *TEMPERATURES),
    "direct.max_tokens": ("probes.direct.max_tokens", "models.params.max_tokens"),
    "direct.top_p": ("probes.direct.top_p", "models.params.top_p"),
    "review.temperature": (
        "probes.review.temperature",
        "judges.temperature",
        "judges.params.temperature",
        "models.params.temperature",
    ),
    "review.max_tokens": ("probes.review.max_tokens", "judges.params.max_tokens", "models.params.max_tokens"),
    "review.judges": ("judges",),
    "survey.cells": ("limits.max_cells",),
    "survey.data": ("survey.source",),
    "survey.names": ("survey.source",),
    "logic.answer": ("probes.logic.answer", "probes.logic.cot"),
    "logic.choices": ("probes.logic.answer", "probes.logic.form", "probes.logic.sample_answer"),
    "logic.pairs": ("probes.logic.max_pairs",),
    "logic.sets": ("probes.logic.sets",),
    "logic.items": ("probes.logic.max_items",),
    "logic.repeat_temperature": ("probes.logic.sample_temperature", *TEMPERATURES),
    "semantic.source": ("probes.semantic.questions",),
    "semantic.wordings": ("probes.semantic.paraphraser", "probes.semantic.questions"),
    "semantic.rot_model": ("probes.semantic.rot_model",),
    "semantic.questions": ("probes.semantic.limit",),
    "semantic.asked_wordings": ("probes.semantic.paraphrases",),
    "semantic.temperature": ("probes.semantic.temperature", *TEMPERATURES),
    "semantic.max_tokens": ("probes.semantic.max_tokens", "models.params.max_tokens"),
    "semantic.encoder": ("probes.semantic.encoder", "embedding.model"),
    "semantic.bertscore": ("probes.semantic.bertscore_model", "probes.semantic.rivals"),
    "consistency.prompt": ("probes.semantic.consistency.form",),
    "consistency.judge": ("judges",),
    "consistency.judge_temperature": ("probes.semantic.consistency.form", "judges.params.temperature"),
    "consistency.judge_tokens": ("probes.semantic.consistency.form", "judges.params.max_tokens"),
    "consistency.temperature": ("probes.semantic.consistency.temperature", *TEMPERATURES),
}
"""Keys of a configuration that computed settings follow from."""
UNPUBLISHED_SIZE_NOTE = "not measured: no value is published"


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
    experiment: Experiment,
    parts: frozenset[Part],
    source: FigureSource,
    audit: MeasuredAudit,
    model: str | None = None,
) -> tuple[Mark, list[Departure]]:
    """Compare an audit with the published settings that bear on a figure, and with the full form in all others.

    Args:
        parts: the parts that the figures of the table depend on.
        model: the model whose figure it is; None for a figure over models.

    Returns:
        The mark, and the departures: first those of published settings in the order of the preset.
    """
    all_parts = parts | source.parts
    relevant = audit if model is None or _judge_each_other(experiment, all_parts, audit) else _narrow(audit, model)
    departures = [
        departure
        for setting in experiment.settings
        if setting.bears_on(all_parts)
        and (setting.key == SURVEY_CELLS or not audit.is_released)
        and (departure := _compare(setting, relevant, source.trial)) is not None
    ]
    departures += _list_unpublished_departures(experiment, all_parts, relevant)
    departures += [
        Departure(**fixed.model_dump(), subject=fixed.description, is_wording=False)
        for fixed in experiment.departures
        if fixed.id in source.departures
    ]
    return _select_mark(departures), departures


def _judge_each_other(experiment: Experiment, parts: frozenset[Part], audit: MeasuredAudit) -> bool:
    """Whether a figure of one model depends on the other models, too, since they judge it."""
    judged_parts = experiment.find_affected_parts("judges")
    is_judged = judged_parts is None or bool(judged_parts & parts)
    return audit.stored_config is not None and audit.config.judges == "peers" and is_judged


def _narrow(audit: MeasuredAudit, model: str) -> MeasuredAudit:
    """The audit with the settings of one model, and of the models that help with its answers."""
    if audit.is_released:
        rows = [row for row in audit.report.alignment if row.model == model]
        return replace(audit, report=audit.report.model_copy(update={"alignment": rows}))
    if audit.stored_config is None:
        return audit
    probe = audit.config.probes.find(SemanticProbe)
    names = {model, *(probe.helper_models.values() if probe else ())}
    models = [section for section in audit.config.models if section.name in names]
    return replace(audit, stored_config=audit.config.model_copy(update={"models": models}))


def _select_mark(departures: Sequence[Departure]) -> Mark:
    """The mark of a figure with these departures."""
    if not departures:
        return "same_definition"
    return "other_words" if all(departure.is_wording for departure in departures) else "other_definition"


def _compare(setting: PublishedSetting, audit: MeasuredAudit, trial: str) -> Departure | None:
    """The departure of an audit, or of a trial on it, in one setting; None if none or if its value is not published."""
    by_name = setting.value if isinstance(setting.value, dict) else {audit.name: setting.value}
    name = trial if trial in by_name else audit.name
    if name not in by_name:
        return None
    published, measured = by_name[name], read_setting(audit, setting.key, trial)
    if setting.is_list_of_names:
        measured, published = sorted(set(measured) - set(published)), []
    if measured == published and not setting.is_wording:
        return None
    is_wording = measured == published
    return describe_departure(
        Departure(
            id=setting.id,
            description="",
            subject=setting.description,
            measured="written anew from the paper's description" if is_wording else format_setting(measured),
            published="" if is_wording else format_setting(published),
            is_wording=is_wording,
            size=setting.size,
            size_note=setting.size_note,
        ),
        name,
    )


def _list_unpublished_departures(
    experiment: Experiment, parts: frozenset[Part], audit: MeasuredAudit
) -> Iterator[Departure]:
    """Yield a departure for each setting that differs from the full form, and has no published value."""
    if audit.stored_config is None:
        return
    compared: dict[str, frozenset[Part]] = {}
    for setting in experiment.settings:
        for key in KEYS_READ.get(setting.key, (setting.key,)):
            compared[key] = compared.get(key, frozenset()) | (setting.parts or parts)
    differences: dict[str, list[SettingDifference]] = {}
    for difference in list_differences(experiment, audit.name, audit.config):
        affected = experiment.find_affected_parts(difference.key)
        if difference.key in compared:
            affected = (affected or frozenset()) - compared[difference.key]
        if affected is None or affected & parts:
            differences.setdefault(difference.key, []).append(difference)
    for key, of_key in differences.items():
        names_by_value: dict[str, list[str]] = {}
        for difference in of_key:
            names_by_value.setdefault(difference.describe(), []).append(difference.model)
        values = [value + (f" ({', '.join(names)})" if any(names) else "") for value, names in names_by_value.items()]
        yield describe_departure(
            Departure(
                id=key, description="", subject=f"`{key}`", measured="; ".join(values), is_wording=False, size=None,
                size_note=UNPUBLISHED_SIZE_NOTE,
            ),
            audit.name,
        )  # fmt: skip
