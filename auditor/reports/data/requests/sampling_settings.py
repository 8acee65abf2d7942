"""Sampling settings that models were asked with, and whether these make the spread of their answers comparable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from auditor.config import AuditConfig, ModelSection
from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.domain import Purpose
from auditor.reports.data.report_model import ReportModel
from auditor.storage.costs import CallCounts
from auditor.storage.request_forms import Alteration

SAMPLING_PARAMS = ("temperature", "top_p", "top_k", "min_p")
SAMPLED_PURPOSES = (
    Purpose.DIRECT,
    *(purpose for name in list_built_in_names() if (purpose := load_built_in(name).sampled_purpose) is not None),
)
"""Purposes whose questions are asked several times, so that the spread of the answers is measured."""
INCOMPARABLE_REASON = (
    "the two models were asked with different sampling settings, because one of them rejects a setting"
)
Settings = tuple[tuple[str, str], ...]
"""Sampling parameters as sent, by name."""


class SamplingSettingsRow(ReportModel):
    """Sampling settings of one model's answers for one purpose."""

    model: str
    purpose: Annotated[str, Field(json_schema_extra={"enum": [purpose.value for purpose in SAMPLED_PURPOSES]})]
    requested: dict[str, float]
    """Parameters that the configuration sets, by name."""
    sent: list[dict[str, float | str]]
    """Parameters as sent; one that the model's server refuses is left out. More than one entry if they changed during
    the audit."""
    honoured: bool
    """Whether every request was sent with the settings of the configuration."""
    label: str
    """The settings as sent, in words. Models with equal labels are comparable."""


class SamplingReport(ReportModel):
    """Sampling settings by model, and whether they differ because a model's server refuses one."""

    sampling_settings_differ: bool
    """Whether figures on the spread of answers (self-consistency, variance, agreement of samples) are not comparable
    between the models of some purpose."""
    rows: list[SamplingSettingsRow]

    def labels(self, purpose: Purpose) -> dict[str, str]:
        """Settings in words by model, of a purpose for which they differ; empty where all figures are comparable."""
        rows = [row for row in self.rows if row.purpose == purpose]
        return {row.model: row.label for row in rows} if settings_differ(rows) else {}

    def refusing_models(self, purpose: Purpose) -> list[str]:
        """Models that were not asked with the configured settings, of a purpose for which the settings differ."""
        rows = [row for row in self.rows if row.purpose == purpose]
        return [row.model for row in rows if not row.honoured] if settings_differ(rows) else []

    def are_comparable(self, first: str, second: str, purpose: Purpose) -> bool:
        """Whether the spread of two models' answers is comparable: a difference is one that the configuration sets."""
        rows = {row.model: row for row in self.rows if row.purpose == purpose}
        return first not in rows or second not in rows or not settings_differ([rows[first], rows[second]])


@dataclass(frozen=True, slots=True)
class _SentSettings:
    """The settings of one model's requests.

    Attributes:
        requested: as the configuration sets them.
        sent: one entry for each way in which requests were altered.
    """

    requested: Mapping[str, float]
    sent: Sequence[Mapping[str, float | str]]


def build_sampling_report(config: AuditConfig | None, call_counts: Iterable[CallCounts]) -> SamplingReport:
    """Collect the sampling settings of all answers that the audit uses; no rows for imported scores."""
    alterations = [
        Alteration(counts.name, counts.purpose, counts.altered)
        for counts in call_counts
        if counts.answers and counts.is_current
    ]
    rows = build_sampling_rows(config, alterations)
    differ = any(settings_differ([row for row in rows if row.purpose == purpose]) for purpose in SAMPLED_PURPOSES)
    return SamplingReport(sampling_settings_differ=differ, rows=rows)


def build_sampling_rows(config: AuditConfig | None, alterations: Iterable[Alteration]) -> list[SamplingSettingsRow]:
    """Describe the sampling settings of each model and purpose, in the config's order; empty for imported scores.

    Answers whose requests are not known, as those from a file, have no row.
    """
    if config is None:
        return []
    altered_by_use: dict[tuple[str, str], set[str]] = {}
    for name, purpose, altered in alterations:
        if altered is not None:
            altered_by_use.setdefault((name, purpose), set()).add(altered)
    servers = sorted({model.api_base for model in config.models if model.api_base})
    return [
        _build_row(
            model,
            _describe_source(model, servers),
            purpose,
            _list_settings(_requested_settings(config, model, purpose), alterations_of_use),
        )
        for purpose in SAMPLED_PURPOSES
        for model in config.models
        if (alterations_of_use := altered_by_use.get((model.name, purpose)))
    ]


def parse_alterations(altered: str) -> dict[str, str | None]:
    """Parameters that were not sent as requested, by name: their value as sent, None if they were left out.

    Args:
        altered: as in `auditor.domain.Answer`, such as `seed, temperature=1`.
    """
    settings = (setting.partition("=") for setting in altered.split(", ") if setting)
    return {name: sent_value if separator else None for name, separator, sent_value in settings}


def _requested_settings(config: AuditConfig, model: ModelSection, purpose: Purpose) -> dict[str, float]:
    """Sampling parameters that the configuration sets for a model's answers for a purpose."""
    temperatures = {
        load_built_in(name).sampled_purpose: probe.sampled_temperature for name, probe in config.probes.stages.items()
    }
    default_temperature = config.direct.temperature if purpose is Purpose.DIRECT else temperatures.get(purpose)
    params: dict[str, Any] = {
        "temperature": default_temperature if model.temperature is None else model.temperature,
        "top_p": config.direct.top_p if purpose is Purpose.DIRECT else None,
        **model.params,
    }
    return {name: float(params[name]) for name in SAMPLING_PARAMS if isinstance(params.get(name), (int, float))}


def _list_settings(requested: Mapping[str, float], altered: Collection[str]) -> _SentSettings:
    """The settings as sent, for each way in which requests were altered; equal ones once."""
    distinct: dict[Settings, Mapping[str, float | str]] = {}
    for alteration in sorted(altered):
        changes = parse_alterations(alteration)
        sent = {name: _as_number(changes.get(name, number)) for name, number in requested.items()}
        known = {name: number for name, number in sent.items() if number is not None}
        distinct[tuple(sorted((name, str(number)) for name, number in known.items()))] = known
    return _SentSettings(requested, list(distinct.values()))


def _as_number(sent_value: float | str | None) -> float | str | None:
    """A value as a number where it is one."""
    try:
        return None if sent_value is None else float(sent_value)
    except ValueError:
        return sent_value


def _describe_source(model: ModelSection, servers: Sequence[str]) -> str:
    """Whose defaults a model has; with an address of its own, the provider's name is only that of the protocol.

    Several servers are numbered, as their defaults need not be the same.
    """
    if model.api_base is None:
        return f"{model.provider.prefix}’s"
    return "the server’s" if len(servers) == 1 else f"server {servers.index(model.api_base) + 1}’s"


def _build_row(model: ModelSection, source: str, purpose: Purpose, settings: _SentSettings) -> SamplingSettingsRow:
    """Describe one model's settings."""
    requested, sent = dict(settings.requested), [dict(entry) for entry in settings.sent]
    phrases = [_describe_settings(source, requested, entry) for entry in sent]
    return SamplingSettingsRow(
        model=model.name,
        purpose=purpose.value,
        requested=requested,
        sent=sent,
        honoured=all(entry == requested for entry in sent),
        label=" or ".join(phrases),
    )


def _describe_settings(source: str, requested: Mapping[str, float], sent: Mapping[str, float | str]) -> str:
    """The settings in words; one that was left out is the default of `source`, which is not known."""
    phrases = []
    for name in requested:
        number = sent.get(name)
        sent_text = f"{number:g}" if isinstance(number, float) else number
        phrases.append(f"{source} default {name}" if sent_text is None else f"{name} {sent_text}")
    return ", ".join(phrases)


def settings_differ(rows: Sequence[SamplingSettingsRow]) -> bool:
    """Whether settings differ because a model's server refuses one; differences that the user set do not count.

    Settings that changed during the audit are equal to no other model's.
    """
    if len(rows) < 2 or all(row.honoured for row in rows):
        return False
    return len({row.label for row in rows}) > 1 or any(len(row.sent) > 1 for row in rows)
