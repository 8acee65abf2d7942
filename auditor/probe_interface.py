"""The interface of a probe: what a package contributes to ask models something else, and to report on it.

`auditor.probes` exports these names to other packages, with the base class of settings, the nodes of documents and
`Estimate`; see docs/probes.md. A probe is a class below `Probe`. Its steps say what is asked and what the answers say;
requests, retries, the ledger, storage and the formats of reports are the program's part.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from auditor.domain import ENGLISH, Call, Cell, CellScore, Message, Outcome, Survey, Trace
from auditor.domain.records import CallKey, Key, LongText, Nullable, RowOwner, stored

if TYPE_CHECKING:
    from pydantic import BaseModel

    from auditor.config import AuditConfig
    from auditor.config.base import ConfigSection
    from auditor.metrics.intervals.estimate import Estimate
    from auditor.reports.document import Section, Table

INTERFACE_VERSION = 1
"""Version of this interface; a probe that was written for another one is not used."""
Unit: TypeAlias = tuple[str, ...]
"""What a question is about, such as a cell (country and topic): texts that no other unit of the probe has."""
S = TypeVar("S", bound="ConfigSection")
F = TypeVar("F", bound="BaseModel")


class Needs(StrEnum):
    """What must be recorded before the questions of a probe can be asked."""

    NOTHING = "nothing"
    CELL_TRACES = "cell_traces"
    """All answers of the model to the direct questions on the cell. The units of the probe are cells."""
    ALL_TRACES = "all_traces"
    """All answers of all models to the direct questions."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question to one model.

    Attributes:
        messages: the chat, in order. An answer that the model is told to have given is a message of the role
            `assistant`. As the last message it is the beginning of the answer, which the model continues; only where
            `ProbeAudit.can_continue` says so.
        sample: number of this question among equal ones, from 0.
        schema: the structure of the answer, one of `Probe.schemas`; None for free text.
        temperature: sampling temperature, from 0 to 2; a model's own setting takes precedence.
        max_tokens: limit on the length of the answer.
        language: ISO 639-1 code of the messages' language.
    """

    unit: Unit
    messages: tuple[Message, ...]
    sample: int = 0
    schema: type[BaseModel] | None = None
    temperature: float = 0.0
    max_tokens: int = 400
    language: str = ENGLISH


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """An answer that is to be read.

    Attributes:
        turn: number of the question among those that were put one after another, from 0.
        request: the messages of the system and the user, as one text.
        text: what the model wrote, without hidden reasoning, and without the beginning that it was to continue.
        structure: the validated structure, if the question has a schema.
    """

    model: str
    unit: Unit
    sample: int
    turn: int
    request: str
    text: str
    structure: BaseModel | None = None
    prefill: str = ""
    """The beginning of the answer that the model was to continue; empty without one."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer says: a value that JSON can represent, or the reason why there is none.

    Attributes:
        value: None unless the outcome is `ok`.
        outcome: `ok`, `refused`, `unparsed` or `not_measurable`.
    """

    value: Any = None
    outcome: Outcome = Outcome.OK


@stored("probe_result", owner=RowOwner.PROBE)
@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What was read from one answer, as stored. Only an `ok` result has a value.

    Attributes:
        key: key of the call in the ledger; None for an imported result.
        reader_version: `Probe.reader_version` at the time of reading.
        repeat_key: key of the call that asked the question again (`auditor run --ask-again`); None without one.
        first_outcome: outcome before the question was asked again; None if it was not.
    """

    model: Key[str]
    unit: Key[Unit]
    sample: Key[int]
    turn: Key[int]
    outcome: Outcome
    key: Annotated[str | None, CallKey(None, "model")]
    value: Nullable[LongText[Any]]
    reader_version: int
    repeat_key: Annotated[str | None, CallKey(None, "model")] = None
    first_outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A question that was answered: the text of the answer, and what was read from it."""

    question: Question
    text: str
    result: ProbeResult

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the question, followed by the answer: the beginning of the next question."""
        return (*self.question.messages, Message("assistant", self.text))


@dataclass(frozen=True, slots=True)
class GateFigure:
    """A figure that `auditor check` compares with the threshold of this name under `[check.probes.NAME]`.

    Attributes:
        name: `min_…` for a lower limit, `max_…` for an upper limit.
        subject: what the figure is of, such as a model.
    """

    name: str
    subject: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Headline:
    """The finding of a probe in one sentence, for page one of the report.

    The sentences of all probes of an audit are one family of tests (Holm): page one has those with a p-value only where
    the adjusted one is at most 0.05, and all that have none. A probe that claims nothing counts as a p-value of 1.

    Attributes:
        p_value: of the claim that the sentence makes, in [0, 1], adjusted by the probe for the models, or whatever
            else, among which it names one; None for a description that claims nothing beyond chance.
        is_caution: whether the sentence is a reason to doubt the figures of the audit; it is then among these reasons.
    """

    sentence: str
    p_value: float | None = None
    is_caution: bool = False


class TraceLoader(Protocol):
    """Loads a model's recorded answers to the direct questions."""

    def __call__(self, model: str, cells: Iterable[Unit] | None = None, /) -> Sequence[Trace]:
        """Return a model's answers on some cells (country and topic) or on all, in the order of cells and samples."""
        ...


def _no_traces(model: str, cells: Iterable[Unit] | None = None, /) -> Sequence[Trace]:
    """Return no answer of a model."""
    return ()


def _no_messages(trace: Trace) -> Sequence[Message]:
    """Return no message of a question."""
    return ()


def _is_unknown(model: str) -> bool:
    """Return that no hidden reasoning of a model is known."""
    return False


@dataclass(frozen=True)
class ProbeAudit(Generic[S]):
    """The audit that a probe is part of; read-only.

    Attributes:
        settings: the probe's table of the configuration.
        config: the whole configuration.
        survey: the survey, or a task's items as a survey; without either it is empty.
        load_traces: returns the recorded answers of a model to the direct questions, in the order of cells and samples.
            `ask` loads those of its units only, since it runs once for each batch of units. In an estimate, each
            planned answer has the text of a stand-in.
        load_scores: returns the scores of all models.
        mask: returns the text of an answer as judges see it, without the country, the topic and the author.
        load_question: returns the messages that a recorded answer to a direct question replies to, for a conversation
            that goes on from it. The model's own system message is left out: every question gets it. Empty where
            questions are only counted.
        load_hidden_reasoning: returns whether a model's recorded direct answers follow hidden reasoning, as far as the
            provider says so.
    """

    settings: S
    config: AuditConfig
    survey: Survey
    load_traces: TraceLoader = _no_traces
    load_scores: Callable[[], Sequence[CellScore]] = tuple
    mask: Callable[[Trace], str] = field(default=lambda trace: trace.text or "")
    load_question: Callable[[Trace], Sequence[Message]] = _no_messages
    load_hidden_reasoning: Callable[[str], bool] = _is_unknown

    @property
    def cells(self) -> Sequence[Cell]:
        """The countries and topics that models are asked about, or a task's items."""
        return list(self.survey.asked_cells)

    def draw_cells(self, n: int, among: Iterable[Cell] | None = None) -> Sequence[Cell]:
        """Draw at most n cells by lot, as evenly over countries and over topics as the survey allows, in its order.

        The lot depends on the audit's seed and the cells only.

        Args:
            among: the cells that may be drawn, such as those with a published figure; None for all.
        """
        eligible = None if among is None else set(among)
        rng = random.Random(f"{self.config.seed} cells")
        remaining: dict[str, list[Cell]] = {}
        for cell in self.cells:
            if eligible is None or cell in eligible:
                remaining.setdefault(cell.country, []).append(cell)
        for cells in remaining.values():
            rng.shuffle(cells)
        drawn: set[Cell] = set()
        n_by_topic = Counter[str]()
        while len(drawn) < n and any(remaining.values()):
            countries = [country for country, cells in remaining.items() if cells]
            rng.shuffle(countries)
            for country in countries[: n - len(drawn)]:
                cell = min(remaining[country], key=lambda cell: n_by_topic[cell.topic])
                remaining[country].remove(cell)
                drawn.add(cell)
                n_by_topic[cell.topic] += 1
        return [cell for cell in self.cells if cell in drawn]

    @property
    def people(self) -> Mapping[Cell, float | None]:
        """People's score of each cell, in [-1, 1]; None where people were not asked."""
        return {survey_cell.cell: survey_cell.score for survey_cell in self.survey.cells}

    @property
    def models(self) -> Sequence[str]:
        """Names of the audited models."""
        return [model.name for model in self.config.models]

    def can_continue(self, model: str) -> bool:
        """Whether a model continues an answer whose beginning is the last message of a question."""
        return self.config.model(model).prefill is not None

    def hides_reasoning(self, model: str) -> bool:
        """Whether a model reasons before it answers: it is set to, or its recorded direct answers say so."""
        return self.config.model(model).is_set_to_reason or self.load_hidden_reasoning(model)

    @property
    def judges(self) -> Sequence[str]:
        """Names of the judges."""
        return [judge.name for judge in self.config.judge_models]


class Probe(Generic[S, F]):
    """Base class of probes: a question of one's own in an audit. See docs/probes.md for an example.

    A package names its class as the entry point of a name in the group `auditor.probes`. The class is created without
    arguments, once a configuration or a database names it. Importing its module should load no numpy.

    Attributes:
        interface_version: `INTERFACE_VERSION` for which the probe was written.
        settings: class of the table `[probes.NAME]`.
        name: set by the program to the name of the entry point.
        title: what the probe measures, for headings; empty for the name.
        noun: one answer in words, with "s" in the plural.
        reader_version: version of `read`; to be raised whenever `read` reads an answer differently.
        needs: what must be recorded before `ask`.
        max_turns: largest number of questions that are put one after another, each with the answers before it.
        schemas: the structures of answers. Their fields are sent to models as a JSON schema.
        prompts: names of the templates of this package (`prompts/en/NAME.md`) that questions are made of. A change of
            their text makes another audit.
        gates: names of the thresholds of `auditor check`, such as `max_gap`, with a description of each.
        commands: commands `auditor probe NAME COMMAND`: a function as for typer, or its "module:name", by the command.
    """

    interface_version: ClassVar[int]
    settings: ClassVar[type[Any]]
    name: str = ""
    title: ClassVar[str] = ""
    noun: ClassVar[str] = "answer"
    reader_version: ClassVar[int] = 1
    needs: ClassVar[Needs] = Needs.NOTHING
    max_turns: ClassVar[int] = 1
    schemas: ClassVar[tuple[type[BaseModel], ...]] = ()
    prompts: ClassVar[tuple[str, ...]] = ()
    gates: ClassVar[Mapping[str, str]] = {}
    commands: ClassVar[Mapping[str, Callable[..., None] | str]] = {}

    # --- steps --------------------------------------------------------------------------------------------------------

    def plan(self, audit: ProbeAudit[S]) -> Iterable[Unit]:
        """List what models are asked about, in order. Without an override: every cell."""
        return audit.cells

    def respondents(self, audit: ProbeAudit[S]) -> Iterable[str]:
        """List the models or judges that are asked, by name. Without an override: all audited models."""
        return audit.models

    def ask(self, audit: ProbeAudit[S], model: str, units: Sequence[Unit]) -> Iterable[Question]:
        """Build the questions to a model about some units. They must not depend on the model's name."""
        raise NotImplementedError

    def ask_next(self, audit: ProbeAudit[S], turns: Sequence[Turn]) -> Question | None:
        """Build the question that follows answered ones; None to end. Only called for fewer than `max_turns`."""
        return None

    def read(self, answer: ProbeAnswer) -> Reading:
        """Read an answer. It must not depend on anything but the answer, so that it can be read again."""
        raise NotImplementedError

    def measure(self, audit: ProbeAudit[S], results: Sequence[ProbeResult]) -> F:
        """Compute the figures: the probe's part of the JSON report."""
        raise NotImplementedError

    def section(self, figures: F) -> Section | None:
        """Write the section of the report; None for no section."""
        return None

    def report_class(self) -> type[BaseModel] | None:
        """Name the class of the figures for the JSON schema of reports, which has the probes in folders of the program.

        It is imported here rather than with the module, which a configuration loads.
        """
        return None

    # --- before a run -------------------------------------------------------------------------------------------------

    def check_input(self, audit: ProbeAudit[S]) -> str | None:
        """Check files that the settings name, before the first call; describe in a few words what is planned.

        Raises:
            ConfigError: something is missing or invalid.
        """
        return None

    def unmeasurable(self, audit: ProbeAudit[S]) -> Iterable[str]:
        """Say what cannot be measured in this audit, in sentences; they are shown before the first call."""
        return ()

    def fingerprint_inputs(self, audit: ProbeAudit[S]) -> Sequence[Any]:
        """List what determines the questions besides settings and prompts, such as the content of a file, as JSON."""
        return ()

    def count_calls(self, audit: ProbeAudit[S], model: str) -> tuple[int, int] | None:
        """Count the least and the most calls of a model, for the estimate.

        Without an override, the program counts the questions of `ask`, and those that may follow.
        """
        return None

    def simulate(self, call: Call) -> str:
        """Write the answer of a simulated model to a question; a structured one as JSON."""
        return ""

    # --- after a run --------------------------------------------------------------------------------------------------

    def summary_tables(self, figures: F) -> Iterable[Table]:
        """Build tables for the end of a run; narrow enough for a terminal."""
        return ()

    def headline(self, figures: F) -> Headline | None:
        """Say the finding in one sentence for page one of the report; None for no sentence."""
        return None

    def gate_figures(self, figures: F) -> Iterable[GateFigure]:
        """List the figures that `auditor check` compares with thresholds, by the names of `gates`."""
        return ()

    def compare(self, first: F, second: F) -> Section | None:
        """Compare the figures of two audits, for `auditor compare`; None for no section."""
        return None

    def export_tables(self, figures: F) -> Iterable[Table]:
        """Build tables that `auditor export tables` writes as CSV besides those of the section."""
        return ()
