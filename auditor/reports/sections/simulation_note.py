"""Label a document of an audit whose models are simulated, as in the worked example."""

from __future__ import annotations

from auditor.reports.document import Callout, Paragraph

SIMULATED_LABEL = (
    "All answers and verdicts below were made by a program, not by a language model. Each simulated model has a known "
    "property, which its name says, so that readers can see how the report shows it. The figures are about no real "
    "model."
)


def build_simulation_note(*, is_simulated: bool) -> list[Callout]:
    """Say that the models are simulated; empty for real models."""
    return [Callout("Worked example: simulated models", [Paragraph(SIMULATED_LABEL)])] if is_simulated else []


def label_kind(kind: str, *, is_simulated: bool) -> str:
    """The kind of a document, with the addition that its models are simulated."""
    return f"{kind} – worked example with simulated models" if is_simulated else kind
