"""Schema of the figures of judges of pairs that rest on people's labels: pairs of answers, and comparisons."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.config import JsonDict

from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_model import JudgeName, ReportModel
from auditor.reports.document import Column
from auditor.storage.probe_answers import list_label_forms


def _add_kinds(schema: JsonDict) -> None:
    """Add the declared kinds to a JSON schema."""
    schema["enum"] = [form.kind.value for form in list_label_forms()]


def _add_questions(schema: JsonDict) -> None:
    """Add the declared questions to a JSON schema."""
    schema["enum"] = [question for form in list_label_forms() for question in form.questions]


class PairJudgeRow(ReportModel):
    """Agreement of one judge with a random rater on pairs of answers or on comparisons, for these pairs."""

    judge: JudgeName
    question: Annotated[str, Column("Question"), Field(json_schema_extra=_add_questions)]
    """What the judge was asked of each pair."""
    pairs: Annotated[int, Column("Pairs")]
    """Pairs that the judge decided."""
    labels: Annotated[int, Column("Labels")]
    """Pairs of these that people labelled, other than unsure."""
    unsure: Annotated[int, Column("Unsure")]
    """Pairs of these on which a rater is unsure."""
    agreement: Annotated[Estimate, Column("Agreement", emphasis=True)]
    """Share of the pairs on which the judge gives the answer of a random rater."""
    agreement_if_unsure_disagree: Annotated[float | None, Column("Agreement if unsure", "text", "if_unsure")]
    agreement_if_unsure_agree: float | None
    """Bounds of the agreement whatever the answer of raters that are unsure would be."""
    sensitivity: Annotated[Estimate | None, Column("Sensitivity", is_optional=True)]
    """Of the pairs of which people say yes, the share that the judge does too; null of comparisons."""
    specificity: Annotated[Estimate | None, Column("Specificity", is_optional=True)]
    """Of the pairs of which people say no, the share that the judge does too; null of comparisons."""
    kappa: Annotated[Estimate | None, Column("Kappa", is_optional=True)]
    """Agreement with people beyond chance (Cohen); null of comparisons."""


class PairLabelsReport(ReportModel):
    """Judges of pairs of answers, or of comparisons, measured on a random sample that people labelled."""

    kind: Annotated[str, Field(json_schema_extra=_add_kinds)]
    pairs: int
    """Pairs that could be drawn."""
    sampled: int
    labels: int
    """Labelled pairs, by at least one rater that is not unsure."""
    raters: list[str]
    suggested_labels: int
    """Labels that give each judge's agreement an interval of about ± 10 points."""
    judges: list[PairJudgeRow]
    reason: str | None
    """Why the labels cannot be used; null if they can."""
