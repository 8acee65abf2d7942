"""Base classes of the tables of probes, and what a built-in probe contributes besides the interface of all probes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar, cast

from pydantic import ConfigDict, PrivateAttr

from auditor.config.base import ConfigSection
from auditor.domain import Call, Cell, Purpose
from auditor.errors import ProbeError
from auditor.probe_interface import INTERFACE_VERSION, Probe, ProbeAudit

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from auditor.agents.probe_stage import ProbeStage
    from auditor.agents.run_context import RunContext, TextEncoder
    from auditor.config.audit import AuditConfig
    from auditor.config.base import Structure
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.domain.labels import LabelKind, LabelUnit
    from auditor.imports.published import DatasetFormat
    from auditor.models.simulated import PeopleOpinions, World
    from auditor.reports.data.agreement.over_models import FiguresByModel
    from auditor.reports.data.coverage.counts import StageCoverage
    from auditor.reports.data.gates.estimates import GatedFigure
    from auditor.reports.data.judge_quality.build import Decisions
    from auditor.reports.data.report_model import ReportModel
    from auditor.reports.data.report_schema import Report
    from auditor.reports.data.report_source import ReportSource
    from auditor.reports.data.requests import SamplingReport
    from auditor.reports.document import ListItem, Section, Table, Text
    from auditor.review.label_sampling import LabelItem, LabelItemLoader
    from auditor.storage.database import Database
    from auditor.storage.labels import UnitQuery
    from auditor.storage.probe_results import AnswerKind, RepeatedQuestions


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
    """A table under `[probes]` of a built-in probe that has a stage of its own in the graph.

    Attributes:
        keys_hashed_at_defaults: see `auditor.config.result_settings.KEYS_HASHED_AT_DEFAULTS`; by the path below the
            probe's table, such as "" and ".consistency".
    """

    keys_hashed_at_defaults: ClassVar[Mapping[str, str]] = {}

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


class LabelForm(NamedTuple):
    """Labels that people give on the answers of a built-in probe.

    Attributes:
        kind: declared by `LabelKind.of_probe`, one for each such probe.
        questions: what judges are asked about a unit, as in the report.
        parts: names of `LabelUnit.parts`, as columns of imports and exports.
        stratify: what a sample can be stratified by, and is by default.
        noun: one unit in the report, such as "pair of answers".
        plural: several units.
        source: how to get units, as a sentence.
    """

    kind: LabelKind
    questions: tuple[str, ...]
    parts: tuple[str, ...]
    stratify: tuple[str, ...]
    noun: str
    plural: str
    source: str


class StoredEncoder(NamedTuple):
    """The revision of a text encoder, and whether it reads several languages; None if that is not known."""

    revision: str
    is_multilingual: bool | None


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
        progress_label: the stage in the display of progress; empty for the probe's name.
        counted_labels: names of the counted items in the coverage table, by `StageCoverage.method`.
        sampled_purpose: purpose of the questions that are asked several times; None if the spread of their answers is
            no result.
        sampled_figures: the figures that depend on this spread, as the beginning of a sentence.
        label_form: the labels that people give on the answers; None if they give none. The module `labels` of
            the probe's folder then has the functions `query_label_units`, `load_label_item` and `load_pair_decisions`.
        judge_purposes: purposes of the calls that a model is sent as a judge.
        weighs_votes: whether `panel.weights_from` may name the probe, which then has `measure_vote_weights`.
        thresholds: keys under `[check]` that limit the probe's figures, `min_…` or `max_…`, None by default.
        suggested_thresholds: those that a report suggests.
        attribute_figures: names and titles of the figures of `list_attribute_figures`.
    """

    interface_version = INTERFACE_VERSION
    position: ClassVar[int]
    answers_key: ClassVar[str]
    progress_label: ClassVar[str] = ""
    counted_labels: ClassVar[Mapping[str | None, str]]
    sampled_purpose: ClassVar[Purpose | None] = None
    sampled_figures: ClassVar[str] = ""
    label_form: ClassVar[LabelForm | None] = None
    judge_purposes: ClassVar[frozenset[Purpose]] = frozenset()
    weighs_votes: ClassVar[bool] = False
    thresholds: ClassVar[type[ConfigSection]] = ConfigSection
    suggested_thresholds: ClassVar[tuple[str, ...]] = ()
    attribute_figures: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Check what the hooks of a probe return, each time that they are called."""
        super().__init_subclass__(**options)
        for name, hook in list(vars(cls).items()):
            declared = getattr(BuiltInProbe, name, None)
            if inspect.isfunction(hook) and inspect.isfunction(declared) and not name.startswith("_"):
                setattr(cls, name, _check_hook(hook, declared.__annotations__.get("return", "Any")))

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

    def list_schemas(self) -> Sequence[type[Structure]]:
        """List the structures of the probe's answers, by whose names its calls request them."""
        return ()

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

    def list_attribute_figures(self, figures: Any) -> FiguresByModel:
        """List the values of `attribute_figures` by model, from what `build_report` returned."""
        return {}

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

    def load_stored_encoder(self, db: Database, audit_id: int) -> StoredEncoder | None:
        """Load what is stored of the text encoder whose vectors of the answers are stored; None without any."""
        return None

    def load_people_opinions(self, audit: ProbeAudit[Any]) -> PeopleOpinions | None:
        """Load the shares of people's answers that simulated models know; None for none."""
        return None

    def answer_simulated(self, world: World, call: Call) -> str | None:
        """Write the answer of a simulated model to a call of the probe, configured or not; None for any other call."""
        return None

    def query_label_units(self, audit_id: int) -> UnitQuery:
        """Query the units of the kind of `label_form`, with their parts first and the texts that identify them last."""
        query: UnitQuery = self._resolve("labels:query_label_units")(audit_id)
        return query

    def load_label_item(self, loader: LabelItemLoader, unit: LabelUnit) -> LabelItem:
        """Load a unit of the kind of `label_form` as a rater sees it."""
        item: LabelItem = self._resolve("labels:load_label_item")(loader, unit)
        return item

    def load_pair_decisions(self, db: Database, audit_id: int) -> Decisions:
        """Load what judges say of the units of the kind of `label_form`, as people would label them."""
        decisions: Decisions = self._resolve("labels:load_pair_decisions")(db, audit_id)
        return decisions

    def list_dataset_formats(self) -> Mapping[str, DatasetFormat]:
        """List the published data sets that are converted to the probe's files, by name."""
        return {}

    def recompute_results(self, context: RunContext) -> None:
        """Compute again what is derived from the stored answers of a run, without a call; by default nothing is."""

    def recompute_imported(self, db: Database, audit_id: int) -> None:
        """Compute again what is derived from the stored answers of an imported audit; by default nothing is."""

    def _resolve(self, name: str) -> Any:
        """Import what a module of the probe's folder has under a name: "module:name"."""
        return resolve_name(f"{type(self).__module__.rpartition('.')[0]}.{name}")


H = TypeVar("H", bound=Callable[..., Any])
_COLLECTIONS: Mapping[str, type] = {
    "Iterable": Iterable, "Sequence": Sequence, "Mapping": Mapping, "list": list, "tuple": tuple,
}  # fmt: skip
_ALIASES = {"UnitQuery": "tuple", "Decisions": "Mapping", "FiguresByModel": "Mapping"}
"""What names of types in the hooks of a built-in probe stand for."""


def _check_hook(hook: H, expected: str) -> H:
    """Return a hook that raises a ProbeError if it returns a value of another type than it is declared with.

    Args:
        expected: the declared type, such as `Iterable[Table]` or `Section | None`. Classes are compared by their names,
            since the modules of many are loaded by the hook only.
    """

    @functools.wraps(hook)
    def call_hook(self: BuiltInProbe, *arguments: Any, **options: Any) -> Any:
        value = hook(self, *arguments, **options)
        if not any(_is_instance(value, part) for part in expected.split(" | ")):
            raise _wrong_type(self, hook.__name__, value, expected)
        if not expected.startswith(("Iterable[", "Sequence[", "list[")):
            return value
        item_type = expected.partition("[")[2].removesuffix("]")
        checked = _check_items(self, hook.__name__, value, item_type)
        return list(checked) if isinstance(value, list) else tuple(checked) if isinstance(value, tuple) else checked

    return cast(H, call_hook)


def _check_items(probe: BuiltInProbe, hook: str, values: Iterable[Any], expected: str) -> Iterator[Any]:
    """Yield what a hook yields, as long as it is of the declared type."""
    for value in values:
        if not _is_instance(value, expected):
            raise _wrong_type(probe, hook, value, f"values of the type {expected}")
        yield value


def _is_instance(value: object, type_name: str) -> bool:
    """Whether a value is of a class with a name, or of one below it."""
    name = _ALIASES.get(type_name, type_name).partition("[")[0]
    if name in ("Any", "object", "None"):
        return name != "None" or value is None
    if name in _COLLECTIONS:
        return isinstance(value, _COLLECTIONS[name]) and not isinstance(value, str)
    return any(base.__name__ == name for base in type(value).__mro__)


def _wrong_type(probe: BuiltInProbe, hook: str, value: object, expected: str) -> ProbeError:
    """The error of a hook that returned a value of the wrong type."""
    return ProbeError(
        f"the hook '{hook}' of the probe '{probe.name}' returned a value of the type {type(value).__name__}; it must "
        f"return {expected}.",
        "Report this to the authors of auditor.",
    )
