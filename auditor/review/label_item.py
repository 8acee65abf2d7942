"""A unit of the labelling sample as a rater sees it: the request that a judge gets about it, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from auditor.config import AuditConfig, ModelSection, SurveySection, load_stored_config
from auditor.domain import Cell, Message, Outcome, Trace
from auditor.domain.labels import LabelKind, LabelUnit
from auditor.domain.review_aspects import aspect_questions
from auditor.storage import audits, results, transcripts
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.probe_answers import find_labelled_probe

if TYPE_CHECKING:
    from auditor.domain import Survey

NO_SUCH_UNIT = "It no longer exists, since the audit was run again."
TRACE_QUESTION = "Can the reasoning stand as a whole?"
TASK_TRACE_QUESTION = "Can reasoning and answer stand?"


@dataclass(frozen=True, slots=True)
class LabelItem:
    """A unit as a rater sees it.

    Attributes:
        question: what the rater answers, in one line.
        instructions: the judge's system message.
        material: the judge's user message, with the text to judge.
        aspects: question by name of each aspect that the judge is asked about.
        missing: why there is nothing to label; empty if there is.
    """

    unit: LabelUnit
    question: str
    instructions: str = ""
    material: str = ""
    aspects: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""

    @property
    def text_hash(self) -> str:
        """SHA-256 of the text that the rater reads, in hexadecimal digits."""
        text = f"{self.instructions}\n\n{self.material}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class LabelItemLoader:
    """Loads the units of an audit's samples as one rater sees them.

    Attributes:
        config: the audit's configuration; with the defaults for an imported audit.
    """

    def __init__(self, db: Database, audit: Audit, rater: str) -> None:
        self.db, self.audit, self.rater = db, audit, rater
        self._survey: Survey = audits.load_audit_survey(db, audit)
        self._is_task_audit = self._survey.task is not None
        self.config = load_stored_config(audit.config) or _build_import_config(db, audit)

    def load(self, unit: LabelUnit) -> LabelItem:
        """Load a unit; its `missing` says why if it cannot be labelled."""
        if unit.kind is LabelKind.TRACE:
            return self._load_trace(unit)
        return find_labelled_probe(unit.kind).load_label_item(self, unit)

    # --- traces

    def _load_trace(self, unit: LabelUnit) -> LabelItem:
        """Load a trace as its judges read it: their recorded request, or the one that they would get."""
        model, country, topic, sample = unit.parts
        question = TASK_TRACE_QUESTION if self._is_task_audit else TRACE_QUESTION
        cell = Cell(country, topic)
        stored_traces = results.load_traces(self.db, self.audit.id, [cell], model=model)
        trace = next((stored for stored in stored_traces if stored.sample == int(sample)), None)
        if trace is None:
            return LabelItem(unit, question, missing=NO_SUCH_UNIT)
        if trace.outcome is not Outcome.OK or not trace.text:
            return LabelItem(unit, question, missing=f"It has no text to judge (outcome: {trace.outcome}).")
        verdicts = [
            verdict
            for verdict in results.load_verdicts(self.db, self.audit.id, [cell], model=model)
            if verdict.sample == trace.sample and verdict.key is not None
        ]
        verdicts.sort(key=lambda verdict: (self._has_custom_prompt(verdict.judge), verdict.judge))
        messages = self.find_messages([verdict.key or "" for verdict in verdicts]) or self._build_review(trace)
        return self.fill_in(unit, question, messages)

    def _has_custom_prompt(self, judge_name: str) -> bool:
        """Whether a judge has a review prompt or a system text of its own, which other judges do not see."""
        judge = self.config.models_by_name.get(judge_name)
        return judge is not None and (judge.review_prompt is not None or judge.system is not None)

    def _build_review(self, trace: Trace) -> Sequence[Message]:
        """Build the request about a trace on which no judge was asked."""
        from auditor.agents.call_builders import blind_trace, build_review_call  # loads word lists

        reader = stand_in_judge()
        text = blind_trace(self.config, self._survey, trace)
        return build_review_call(self.config, self._survey, reader, trace, text).messages

    # --- requests

    def find_messages(self, keys: Sequence[str]) -> Sequence[Message]:
        """Return the recorded messages of the first call that has any; empty if none has."""
        recorded = transcripts.load_transcripts(self.db, keys)
        return next((recorded[key].messages for key in keys if key in recorded and recorded[key].messages), ())

    def fill_in(self, unit: LabelUnit, question: str, messages: Sequence[Message]) -> LabelItem:
        """Build the item from a judge's messages, with the aspects that they ask for."""
        instructions = "\n\n".join(message.content for message in messages if message.role == "system")
        material = "\n\n".join(message.content for message in messages if message.role == "user")
        aspects = {
            name: asked.question
            for name, asked in aspect_questions(for_task=self._is_task_audit).items()
            if unit.kind is LabelKind.TRACE and f'"{asked.key}"' in instructions
        }
        return LabelItem(unit, question, instructions, material, aspects)


def stand_in_judge() -> ModelSection:
    """A judge with no prompt of its own, in whose place the rater stands."""
    return ModelSection(name="rater", model="person/rater")


def _build_import_config(db: Database, audit: Audit) -> AuditConfig:
    """Configuration with the defaults and an imported audit's models, whose names are masked in the texts."""
    names = sorted({model for model, *_ in results.load_mean_scores(db, audit.id)}) or ["unknown"]
    models = [ModelSection.model_construct(name=name, model=f"imported/{'-'.join(name.split())}") for name in names]
    return AuditConfig(name="imported", survey=SurveySection(source="imported"), models=models, judges=[])
