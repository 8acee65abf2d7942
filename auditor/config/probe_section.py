"""Base classes of the tables of probes, and what a built-in probe contributes besides the interface of all probes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from pydantic import ConfigDict, PrivateAttr

from auditor.config.base import ConfigSection
from auditor.domain import Call, Cell, Purpose
from auditor.probe_interface import INTERFACE_VERSION, Probe, ProbeAudit

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from auditor.agents.probe_stage import ProbeStage
    from auditor.agents.run_context import RunContext, TextEncoder
    from auditor.config.audit import AuditConfig
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.domain.labels import LabelKind, LabelUnit
    from auditor.imports.published.rows import DatasetFormat
    from auditor.models.simulated.world import PeopleOpinions, World
    from auditor.reports.data.coverage.stage_coverage import StageCoverage
    from auditor.reports.data.gates.gate_estimates import GatedFigure
    from auditor.reports.data.judge_quality.pair_labels import Decisions
    from auditor.reports.data.report_model import ReportModel
    from auditor.reports.data.report_schema import Report
    from auditor.reports.data.report_source import ReportSource
    from auditor.reports.data.requests.sampling_settings import SamplingReport
    from auditor.reports.document import ListItem, Section, Table, Text
    from auditor.review.label_item import LabelItem, LabelItemLoader
    from auditor.storage.database import Database
    from auditor.storage.label_units import UnitQuery
    from auditor.storage.probe_answers import AnswerKind, RepeatedQuestions


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

    @property
    def unestimated_reason(self) -> str | None:
        """Why the costs of this probe cannot be estimated, as the end of a sentence; None if they can be."""
        return None

    @property
    def sampled_temperature(self) -> float | None:
        """Temperature of the questions with `BuiltInProbe.sampled_purpose`, of models that set none; else None."""
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


class PageOne(NamedTuple):
    """Title and findings of page one, a finding for each model."""

    title: str
    findings: Sequence[ListItem | Text]


class KeyFinding(NamedTuple):
    """The finding of a built-in probe for page one, in the family of `Headline`.

    Attributes:
        p_value: see `Headline`.
    """

    title: Text
    finding: ListItem | Text
    p_value: float | None = None


class ProbeEncoder(NamedTuple):
    """A text encoder of a probe.

    Attributes:
        name: model of the encoder.
        check: raises an AuditorError if the encoder cannot be used.
        load: loads the encoder once.
    """

    name: str
    check: Callable[[], None]
    load: Callable[[], TextEncoder]


class BuiltInProbe(Probe[Any, Any]):
    """A probe with records, a stage and a field of the report: the class `PROBE` of the module `probe` in its folder.

    The program reaches a built-in probe through this class only. The hooks import what they need when they are called,
    so that a configuration does not load the layers above it.

    Attributes:
        position: number by which the stages, sections and fields of built-in probes are sorted.
        answers_key: key of the number of answers in the JSON of `auditor status`.
        counted_labels: names of the counted items in the coverage table, by `StageCoverage.method`.
        sampled_purpose: purpose of the questions that are asked several times; None if the spread of their answers is
            no result.
        sampled_figures: the figures that depend on this spread, as the beginning of a sentence.
        label_kind: kind of the labels that people give on the answers; None if they give none.
        thresholds: names under `[check]` of limits on the probe's figures, `min_…` or `max_…`.
        suggested_thresholds: those that a report suggests.
    """

    interface_version = INTERFACE_VERSION
    position: ClassVar[int]
    answers_key: ClassVar[str]
    counted_labels: ClassVar[Mapping[str | None, str]]
    sampled_purpose: ClassVar[Purpose | None] = None
    sampled_figures: ClassVar[str] = ""
    label_kind: ClassVar[LabelKind | None] = None
    thresholds: ClassVar[tuple[str, ...]] = ()
    suggested_thresholds: ClassVar[tuple[str, ...]] = ()

    def list_records(self) -> list[type]:
        """List the classes of the probe's stored records (`auditor.domain.records`)."""
        raise NotImplementedError

    def answer_record(self) -> type:
        """The record of the probe's answers.

        Its columns include `outcome`, `key` (of the call), and `model`; `judge` instead for answers as a judge.
        """
        raise NotImplementedError

    def answer_kind(self) -> AnswerKind:
        """How the probe's answers are selected and emptied where people declare them invalid."""
        raise NotImplementedError

    def list_dependents(self) -> Mapping[type, ColumnElement[bool]]:
        """Records that rest on the probe's answers, with the condition that such an answer is excluded."""
        return {}

    def list_repeated_questions(self, audit_id: int) -> Iterable[RepeatedQuestions]:
        """List how the questions of an audit that were asked again are counted, by row of the coverage."""
        raise NotImplementedError

    def build_stage(self) -> ProbeStage:
        """Build the probe's stage."""
        raise NotImplementedError

    def plan_calls(self, audit: ProbeAudit[Any], cells: Sequence[Cell]) -> Iterable[PlannedCalls]:
        """Yield the planned calls about some cells, for the estimate of costs."""
        raise NotImplementedError

    def list_fingerprint_inputs(self, config: AuditConfig, languages: Sequence[str]) -> Sequence[object]:
        """List what determines the answers besides the configuration and `prompts`."""
        return ()

    def report_class(self) -> type[ReportModel]:
        """The class of the report's field with the probe's name."""
        raise NotImplementedError

    def build_report(self, db: Database, source: ReportSource, sampling: SamplingReport) -> ReportModel | None:
        """Compute the field of the report with the probe's name; None without results."""
        raise NotImplementedError

    def measure_coverage(self, figures: Any) -> Iterable[StageCoverage]:
        """Yield the coverage of the answers, from what `build_report` returned."""
        raise NotImplementedError

    def build_section(self, report: Report) -> Section | None:
        """Build the section of the document; None without results."""
        raise NotImplementedError

    def build_summary_tables(self, report: Report) -> Iterable[Table]:
        """Yield the tables that are printed at the end of a run."""
        return ()

    def find_size(self, report: Report) -> tuple[str, int] | None:
        """What the models were asked about, as a noun in the singular and a number; None for cells."""
        return None

    def list_gate_figures(self, report: Report, threshold: str) -> list[GatedFigure]:
        """List the figures that `auditor check` compares with one of `thresholds`."""
        raise NotImplementedError

    def build_page_one(self, report: Report) -> PageOne | None:
        """Build the beginning of page one of an audit without scores; None for none."""
        return None

    def find_key_finding(self, report: Report) -> KeyFinding | None:
        """The finding for page one of any audit; None for none."""
        return None

    def describe_votes(self, report: Report) -> str:
        """Describe the probe's effect on the judges' votes, for the section on conflicts; empty for none."""
        return ""

    def measure_vote_weights(self, db: Database, audit_id: int, config: AuditConfig) -> Mapping[str, float]:
        """Measure the weights of the judges' votes, by judge: where `panel.weights_from` names the probe."""
        raise NotImplementedError

    def find_encoder(self, config: AuditConfig) -> ProbeEncoder | None:
        """Find the text encoder that compares the answers; None if nothing is to be encoded."""
        return None

    def load_encoder_revision(self, db: Database, audit_id: int) -> str | None:
        """Load the revision of the text encoder whose vectors of the answers are stored; None without any."""
        return None

    def load_people_opinions(self, audit: ProbeAudit[Any]) -> PeopleOpinions | None:
        """Load the shares of people's answers that simulated models know; None for none."""
        return None

    def answer_simulated(self, world: World, call: Call) -> str | None:
        """Write the answer of a simulated model to a call of the probe, configured or not; None for any other call."""
        return None

    def query_label_units(self, audit_id: int) -> UnitQuery:
        """Query the units of `label_kind`, with their parts first and the texts that identify them last."""
        raise NotImplementedError

    def load_label_item(self, loader: LabelItemLoader, unit: LabelUnit) -> LabelItem:
        """Load a unit of `label_kind` as a rater sees it."""
        raise NotImplementedError

    def load_pair_decisions(self, db: Database, audit_id: int) -> Decisions:
        """Load what judges say of the units of `label_kind`, as people would label them."""
        raise NotImplementedError

    def list_dataset_formats(self) -> Mapping[str, DatasetFormat]:
        """List the published data sets that are converted to the probe's files, by name."""
        return {}

    def recompute_results(self, context: RunContext) -> None:
        """Compute again what is derived from the stored answers of a run, without a call; by default nothing is."""

    def recompute_imported(self, db: Database, audit_id: int) -> None:
        """Compute again what is derived from the stored answers of an imported audit; by default nothing is."""
