"""The section on figures over models."""

from __future__ import annotations

from auditor.reports.data.report_schema import Report
from auditor.reports.document import Paragraph
from auditor.reports.sections.over_models import build_over_models_section
from auditor.storage.database import Database
from tests.reports.conftest import import_scores

PEOPLE = {(country, topic): score for country, scores in (("Ghana", (-0.9, 0.1, 0.4)), ("Japan", (0.2, 0.8, -0.3)))
          for topic, score in zip("abc", scores, strict=True)}  # fmt: skip


def import_models(db: Database, factors: dict[str, float]) -> Report:
    scores: dict[tuple[str, str, str], float | None] = {
        (model, *cell): factor * score for model, factor in factors.items() for cell, score in PEOPLE.items()
    }
    return import_scores(db, PEOPLE, scores)


def test_the_finding_has_the_mean_and_the_range(db: Database) -> None:
    section = build_over_models_section(import_models(db, {"birch": 0.5, "cedar": -1.0}))
    assert section is not None
    finding = section.blocks[0]
    assert isinstance(finding, Paragraph)
    assert finding.content == "Mean r over 2 models by direct scores: 0.00, from −1.00 to 1.00."
