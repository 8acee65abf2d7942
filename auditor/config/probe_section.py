"""Base classes of the tables of probes, and the declaration of the parts of built-in probes."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import ConfigDict, PrivateAttr

from auditor.config.base import ConfigSection
from auditor.domain import Purpose

if TYPE_CHECKING:
    from auditor.config.audit import AuditConfig


@dataclass(frozen=True)
class ProbeParts:
    """What each layer of the program contributes to a probe, as "module:attribute".

    Parts are named instead of imported, since a configuration is loaded by every command and lies below all layers. A
    test loads each part and compares its parameters with those that its users pass.

    Attributes:
        records: module with the stored records of the probe (`auditor.domain.records`).
        answer_record: the record of its answers, with the columns `outcome`, `key` (of the call), and `model`; `judge`
            instead of `model` for answers as a judge.
        build_graph: `() -> CompiledStateGraph`, the probe's stage; it ends at once without the probe's table.
        check_input: `(config, survey) -> str | None`, checks the probe's files before the first call, and describes in
            a few words what is planned.
        plan_calls: `(config, survey, cells) -> Iterator[PlannedCalls]`, for the estimate of costs.
        build_report: `(db, source, sampling) -> ReportModel | None`, the field of the report with the probe's name.
        measure_coverage: `(report) -> Iterator[StageCoverage]`, of what `build_report` returned.
        build_section: `(report) -> Section | None`, the probe's section of the document.
        build_summary_tables: `(report) -> Iterator[Table]`, printed at the end of a run.
        fingerprint_inputs: `(config, languages) -> list[object]`, what determines the answers besides the configuration
            and `prompts`; None if nothing does.
        prompts: names of the prompts that the probe always uses, in English.
        answers_key: key of the number of answers in the JSON of `auditor status`.
        answers_noun: a single answer, in words; its plural adds "s".
        counted_labels: names of the counted items in the coverage table, by `StageCoverage.method`.
        sampled_purpose: purpose of the questions that are asked several times; None if the spread of their answers is
            no result.
        sampled_figures: the figures that depend on this spread, as the beginning of a sentence.
    """

    records: str
    answer_record: str
    build_graph: str
    check_input: str
    plan_calls: str
    build_report: str
    measure_coverage: str
    build_section: str
    build_summary_tables: str
    answers_key: str
    answers_noun: str
    counted_labels: Mapping[str | None, str]
    fingerprint_inputs: str | None = None
    prompts: tuple[str, ...] = ()
    sampled_purpose: Purpose | None = None
    sampled_figures: str = ""

    def load(self, part: str) -> Any:
        """Import a part by the name of its attribute; a module or an object of a module."""
        return pkgutil.resolve_name(getattr(self, part))


class ProbeSettings(ConfigSection):
    """Base class of the table of a probe under `[probes]`. Fields without a default are required in every config."""

    def check(self, config: AuditConfig) -> None:
        """Check the rules between this table and others.

        Raises:
            ValueError: a rule does not hold; the message says how to fix it.
        """

    def resolve_paths(self, resolve: Callable[[str], str]) -> Self:
        """Return a copy in which `resolve` was applied to every value that may be a path."""
        return self


class ProbeSection(ProbeSettings):
    """A table under `[probes]` of a built-in probe that has a stage of its own in the graph."""

    parts: ClassVar[ProbeParts]

    @property
    def unestimated_reason(self) -> str | None:
        """Why the costs of this probe cannot be estimated, as the end of a sentence; None if they can be."""
        return None

    @property
    def sampled_temperature(self) -> float | None:
        """Temperature of the questions with `parts.sampled_purpose`, of models that set none; None without such."""
        return None


class MissingProbe(ConfigSection):
    """The stored table of a probe that cannot be used now: its package was removed, or is broken."""

    model_config = ConfigDict(extra="allow")
    _reason: str = PrivateAttr("")

    @classmethod
    def keep(cls, table: Mapping[str, Any], reason: str) -> MissingProbe:
        """Keep a table unchanged.

        Args:
            table: the table as stored.
            reason: why the probe cannot be used, as a sentence.
        """
        section = cls.model_construct(**table)
        section._reason = reason
        return section

    @property
    def reason(self) -> str:
        """Why the probe cannot be used, as a sentence."""
        return self._reason
