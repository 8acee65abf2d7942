"""A probe that asks how sure a model is of its answer: each answer is shown to the model that gave it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

import auditor.probes as ap

PROMPT = "confidence"
PERCENT = 100
TOLERANCE = 0.2
"""An answer within this distance of people's score is right; the prompt says so too."""


class ConfidenceSettings(ap.ProbeSettings):
    """The table `[probes.confidence]`."""

    samples: Annotated[int, Field(ge=1)] = 1
    """Number of a model's answers on each country and topic that it is asked about."""
    max_tokens: Annotated[int, Field(ge=16)] = 100
    """Maximum length of an answer in tokens."""


class StatedConfidence(ap.Structure):
    """How sure the model is."""

    confidence: Annotated[int, Field(ge=0, le=PERCENT, description="From 0 (certainly not) to 100 (certainly).")]


class ModelConfidence(BaseModel):
    """The figures of one model."""

    model: str
    answers: int
    refused: int
    confidence: ap.Estimate
    """Mean stated confidence, in [0, 1]."""
    overconfidence: ap.Estimate
    """Mean confidence minus the share of right answers, in [-1, 1]."""


class ConfidenceFigures(BaseModel):
    """The JSON report under `probes.confidence`."""

    models: list[ModelConfidence]


class ConfidenceProbe(ap.Probe[ConfidenceSettings, ConfidenceFigures]):
    """Asks a model how sure it is that its answer is close to people's."""

    interface_version = 1
    settings = ConfidenceSettings
    title = "How sure are the models?"
    reader_version = 1
    needs = ap.Needs.CELL_TRACES
    schemas = (StatedConfidence,)
    prompts = (PROMPT,)
    gates: ClassVar = {
        "min_confidence": "Minimum mean confidence of every model, from 0 to 1.",
        "max_overconfidence": "Maximum mean confidence minus the share of right answers, for every model.",
    }
    commands: ClassVar = {"answers": "auditor_probe_confidence:print_answers"}

    def plan(self, audit: ap.ProbeAudit[ConfidenceSettings]) -> Iterable[ap.Unit]:
        """Ask about every country and topic."""
        return audit.cells

    def ask(
        self, audit: ap.ProbeAudit[ConfidenceSettings], model: str, units: Sequence[ap.Unit]
    ) -> Iterator[ap.Question]:
        """Show the model its first usable answers on each cell."""
        prompt = ap.load_prompt(PROMPT, package=__name__)
        for trace in audit.load_traces(model, units):
            if trace.score is not None and trace.sample < audit.settings.samples:
                messages = prompt.render(
                    country=trace.cell.country, topic=trace.cell.topic, answer=trace.text or "", score=str(trace.score)
                )
                yield ap.Question(
                    tuple(trace.cell), messages, trace.sample, StatedConfidence, max_tokens=audit.settings.max_tokens
                )

    def read(self, answer: ap.ProbeAnswer) -> ap.Reading:
        """Read the stated confidence as a share."""
        assert isinstance(answer.structure, StatedConfidence)
        return ap.Reading(answer.structure.confidence / PERCENT)

    def measure(self, audit: ap.ProbeAudit[ConfidenceSettings], results: Sequence[ap.ProbeResult]) -> ConfidenceFigures:
        """Compute the means of each model, with intervals over countries and topics."""
        people = audit.people
        rows = []
        for model in audit.models:
            scores = {(*trace.cell, trace.sample): trace.score for trace in audit.load_traces(model)}
            stated = [result for result in results if result.model == model]
            usable = [result for result in stated if result.outcome == "ok"]
            errors = [abs(scores[(*result.unit, result.sample)] - people[result.unit]) for result in usable]
            excess = [result.value - (error <= TOLERANCE) for result, error in zip(usable, errors, strict=True)]
            cells = ap.cell_units([ap.Cell(*result.unit) for result in usable])
            rows.append(
                ModelConfidence(
                    model=model,
                    answers=len(usable),
                    refused=sum(result.outcome == "refused" for result in stated),
                    confidence=ap.mean_over_units([result.value for result in usable], cells, (0, 1)),
                    overconfidence=ap.mean_over_units(excess, cells, (-1, 1)),
                )
            )
        return ConfidenceFigures(models=rows)

    def section(self, figures: ConfidenceFigures) -> ap.Section:
        """Build a table with one row for each model."""
        caption = f"Confidence: from 0 to 1. Right answers are within {TOLERANCE} of people's score. A positive excess"
        columns = [
            ap.Column("model", "name"),
            ap.Column("answers", "number"),
            ap.Column("refused", "number"),
            ap.Column("confidence", "estimate"),
            ap.Column("confidence minus share of right answers", "estimate", key="overconfidence"),
        ]
        rows = [[row.model, row.answers, row.refused, row.confidence, row.overconfidence] for row in figures.models]
        table = ap.Table("confidence", "Stated confidence", f"{caption} means overconfidence.", columns, rows)
        return ap.Section("confidence", self.title, [table], self.title)

    def headline(self, figures: ConfidenceFigures) -> ap.Headline | None:
        """Name the most overconfident model, as a description: it claims nothing beyond chance."""
        rows = [row for row in figures.models if row.overconfidence.value is not None]
        if not rows:
            return None
        worst = max(rows, key=lambda row: row.overconfidence.value)
        mean = f"{worst.overconfidence.value:+.2f} on average"
        return ap.Headline(f"{worst.model} is the most overconfident model: {mean}.")

    def summary_tables(self, figures: ConfidenceFigures) -> Iterator[ap.Table]:
        """Print the mean confidence at the end of a run."""
        columns = [ap.Column("model", "name"), ap.Column("confidence (95% CI)", "estimate")]
        yield ap.Table("confidence", self.title, "", columns, [[row.model, row.confidence] for row in figures.models])

    def gate_figures(self, figures: ConfidenceFigures) -> Iterator[ap.GateFigure]:
        """Test both figures of every model."""
        for row in figures.models:
            yield ap.GateFigure("min_confidence", row.model, row.confidence)
            yield ap.GateFigure("max_overconfidence", row.model, row.overconfidence)

    def compare(self, first: ConfidenceFigures, second: ConfidenceFigures) -> ap.Section:
        """Show both audits' mean confidence side by side."""
        earlier = {row.model: row.confidence for row in first.models}
        rows = [[row.model, earlier.get(row.model), row.confidence] for row in second.models]
        columns = [ap.Column("model", "name"), ap.Column("first", "estimate"), ap.Column("second", "estimate")]
        return ap.Section("confidence", self.title, [ap.Table("confidence", self.title, "", columns, rows)])

    def export_tables(self, figures: ConfidenceFigures) -> Iterator[ap.Table]:
        """Write the numbers of answers as a further table of `auditor export tables`."""
        columns = [ap.Column("model", "name"), ap.Column("refused", "number")]
        yield ap.Table(
            "confidence-refusals", "Refusals", "", columns, [[row.model, row.refused] for row in figures.models]
        )

    def simulate(self, call: ap.Call) -> str:
        """Let simulated models be as sure as their answer is long, so that there is something to see."""
        return json.dumps({"confidence": min(PERCENT, 40 + len(call.messages[-1].content) % 60)})


def print_answers(audit: str, storage: str | None = None) -> None:
    """Print the stated confidence of every answer.

    Example: auditor probe confidence answers my-audit
    """
    for result in ap.open_audit(audit, storage=storage).probe_results("confidence"):
        print(result.model, *result.unit, result.outcome, result.value, sep="\t")
