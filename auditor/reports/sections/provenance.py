"""How the audit was made: the question, models and settings; and the mark of simulated models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from auditor.reports.data.coverage.counts import ModelVersionRow, find_models_with_version_changes
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Callout, Column, Disclosure, Name, Paragraph, Section, Table, Text
from auditor.reports.number_format import pluralize
from auditor.reports.sections.page_one import describe_asked_question
from auditor.reports.sections.phrasing import tabulate
from auditor.reports.sections.probe_sections import find_page_one
from auditor.reports.sections.requests import build_requests_subsection

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


HASH_DIGITS = 16
"""Digits of the configuration's hash that are shown."""


def build_provenance_section(report: Report) -> Section:
    """Build the section on how the audit was made, which every report has."""
    models = tabulate(
        "models",
        "Models",
        "Models and judges of this audit.",
        report.audit.models,
        [Column("Name", "name"), Column("Provider and model", key="model"), Column("Audited"), Column("Judge")],
        {
            "model": lambda row: Name(row.model) if row.model else "results were imported",
            "audited": lambda row: "yes" if row.audited else "no",
            "judge": lambda row: "yes" if row.judge else "no",
        },
    )
    settings = Disclosure("Settings and versions", [_build_settings_table(report)])
    blocks: list[Block] = [*map(Paragraph, _describe_question(report)), models, settings]
    if (requests := build_requests_subsection(report)) is not None:
        blocks.append(requests)
    if versions := [*_describe_version_changes(report.served)]:
        blocks.append(Section("model-versions", "Model versions that answered", [*map(Paragraph, versions)]))
    return Section("made", "How was this report made?", blocks, "How it was made")


def _describe_question(report: Report) -> Iterator[Text]:
    """Yield the question, the source of people's scores, and a sentence for each rewording of the configuration."""
    summary, survey = report.audit.survey, report.audit.survey.survey
    if survey.title:
        if find_page_one(report) is not None:  # else page one has the question
            yield describe_asked_question(report)
        for topic, question in summary.topic_questions.items():
            low, high = question.scale
            yield ["Asked about “", Name(topic), "”: “", Name(question.wording), f"”, from “{low}” to “{high}”."]
        yield ["Source of people’s scores: ", Name(survey.source)]
    for code, questions in survey.wordings.items():
        unread = ", in a translation that no native speaker has read" if code in summary.unread_wordings else ""
        listed = "; ".join(f"“{question}”" for question in questions)
        yield f"Samples took {len(questions) + 1} wordings in turn; the further ones in “{code}”{unread}: {listed}."
    for code, rewording in summary.rephrased.items():
        topics = "".join(f"; “{topic}” as “{wording}”" for topic, wording in rewording.topics.items())
        scale = f"from “{rewording.scale[0]}” to “{rewording.scale[1]}”"
        yield f"The configuration rewords the question in “{code}”: “{rewording.wording}”, {scale}{topics}."


def _build_settings_table(report: Report) -> Table:
    """Build the table of settings and versions needed to reproduce the audit."""
    audit = report.audit
    settings = {
        "started": audit.created_at,
        "finished": audit.finished_at,
        "samples per item" if report.task else "samples per cell and language": audit.samples,
        "seed": audit.seed,
        f"configuration hash (first {HASH_DIGITS} digits)": audit.config_hash and audit.config_hash[:HASH_DIGITS],
    }
    rows = [(name, str(value)) for name, value in settings.items() if value is not None]
    rows += sorted((str(name), str(value)) for name, value in report.environment.items())
    columns = [Column("Setting", "name"), Column("Value")]
    return Table("environment", "Environment", "Settings and versions when the audit ran.", columns, rows)


def _describe_version_changes(rows: Sequence[ModelVersionRow]) -> Iterator[Text]:
    """Yield a sentence for each model of which the provider reports several versions, with answers per version."""
    for name in find_models_with_version_changes(rows):
        answers = Counter[str]()
        for row, version in ((row, row.version) for row in rows):
            if version.name == name:
                fingerprint = f" ({version.fingerprint})" if version.fingerprint else ""
                answers[f"{version.served_model or 'an unnamed version'}{fingerprint}"] += row.answers
        versions = ", ".join(f"{version} for {pluralize(n, 'answer')}" for version, n in answers.items())
        yield [
            "The version of ",
            Name(name),
            f" changed: the provider reports {versions}. Its figures are a mixture of these versions.",
        ]
